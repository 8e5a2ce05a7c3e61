//! Runs a case's command under an idempotency key, and repeats it (rule 10). If the command appends events, the
//! repeat returns these events. Otherwise the repeat is decided again, with the same result.

use serde_json::{Value, json};

use super::same::assert_same;
use crate::{Envelope, Handled, OnLog, Outcome, Slice, decide::case::Case};

impl<S: Slice> Case<S> {
    /// Runs the command twice under an idempotency key, on an empty log to which it first adds the case's facts.
    /// Panics if the repeat takes effect too, or if the command writes events that a repeat would not find.
    pub async fn check_once(&self, on: &impl OnLog<S>, set_clock: &dyn Fn(u64)) {
        self.prepare(on, set_clock).await;
        let first = self.with_key(on).await;
        let (Outcome::Accepted(events) | Outcome::Rejected { events, .. }) = &first.outcome;
        let repeated = !events.is_empty();
        let first = json(&Handled { repeated, ..first });
        let what = format!("{}: its repeat under an idempotency key", self.at);
        assert_same(what, &first, &json(&self.with_key(on).await));
    }

    /// Repeats the command of [`Case::check_once`] on its log and on a copy of the log. Panics if the answers differ.
    pub(super) async fn check_copied(&self, on: &impl OnLog<S>, copy: &impl OnLog<S>) {
        let [there, copied] = [self.with_key(on).await, self.with_key(copy).await];
        let what = format!("{}: its repeat on a copy of the events", self.at);
        assert_same(what, &json(&there), &json(&copied));
    }

    async fn with_key(&self, on: &impl OnLog<S>) -> Handled {
        let (context, idempotency_key) = (self.context.clone(), Some("key".to_owned()));
        let envelope = Envelope { context, idempotency_key, ..Envelope::default() };
        let handled = on.handle(&self.command, &envelope).await;
        handled.unwrap_or_else(|error| self.fail("with an idempotency key", error))
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
