//! A case's command under an idempotency key, and its repeat (rule 10). If it appends events, the repeat gets
//! these events again; otherwise it is decided again, and alike.

use serde_json::{Value, json};

use super::same::assert_same;
use crate::{Envelope, Handled, OnLog, Outcome, Slice, case::Case};

impl<S: Slice> Case<S> {
    /// Runs the command twice under an idempotency key, on an empty log to which the case's facts are added. Panics if
    /// the repeat takes effect too, or if the command writes what a repeat would not find.
    pub async fn check_once(&self, on: &impl OnLog<S>, set_clock: &dyn Fn(u64)) {
        self.prepare(on, set_clock).await;
        let (context, idempotency_key) = (self.context.clone(), Some("key".to_owned()));
        let envelope = Envelope { context, idempotency_key, ..Envelope::default() };
        let run = async || {
            let handled = on.handle(&self.command, &envelope).await;
            handled.unwrap_or_else(|error| self.fail("with an idempotency key", error))
        };
        let first = run().await;
        let (Outcome::Accepted(events) | Outcome::Rejected { events, .. }) = &first.outcome;
        let repeated = !events.is_empty();
        let what = format!("case at {}: its repeat under an idempotency key", self.at);
        assert_same(what, &json(&Handled { repeated, ..first }), &json(&run().await));
    }
}

fn json(handled: &Handled) -> Value {
    let Handled { outcome, attempts, repeated, conflicts, .. } = handled;
    let (rejection, events) = match outcome {
        Outcome::Accepted(events) => (None, events),
        Outcome::Rejected { rejected, events } => (Some(&rejected.rejection), events),
    };
    let conflicts: Vec<String> = conflicts.iter().map(ToString::to_string).collect();
    json!({
        "rejection": rejection,
        "events": events,
        "repeated": repeated,
        "attempts": attempts,
        "conflicts": conflicts,
    })
}
