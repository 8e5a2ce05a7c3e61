//! A case's command under an idempotency key, and its repeat (rule 10). If it appends events, the repeat gets
//! these events again; otherwise it is decided again, and alike.

use serde_json::{Value, json};

use super::{on_events::OnEvents, same::assert_same};
use crate::{Catalog, Decisions, Envelope, Handled, MemoryLog, Outcome, Slice, case::Case, handle};

/// Runs the command twice under a key, on a log with the case's facts. Panics if the repeat takes effect too, or
/// if the command writes what a repeat would not find.
pub(super) async fn check<S: Slice>(case: &Case<S>, catalog: &Catalog) {
    let log = MemoryLog::new(catalog.clone());
    case.prepare(&OnEvents { log: &log, set_clock: |_| {} }).await;
    let idempotency_key = Some("key".to_owned());
    let envelope =
        Envelope { context: case.context.clone(), idempotency_key, ..Envelope::default() };
    let run = async || {
        let handled = handle(&log, catalog, &Decisions::new(0), &case.command, &envelope).await;
        handled.unwrap_or_else(|error| case.fail("with an idempotency key", error))
    };
    let first = run().await;
    let (Outcome::Accepted(events) | Outcome::Rejected { events, .. }) = &first.outcome;
    let repeated = !events.is_empty();
    let what = format!("case at {}: its repeat under an idempotency key", case.at);
    assert_same(what, &json(&Handled { repeated, ..first }), &json(&run().await));
}

fn json(handled: &Handled) -> Value {
    let Handled { outcome, attempts, repeated, conflicts } = handled;
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
