//! A case's command under an idempotency key, and its repeat (rule 10). If it appends events, the repeat gets
//! these events again; otherwise it is decided again, and alike.

use super::{Case, OnEvents};
use crate::{Catalog, DcbSlice, Decisions, Envelope, Handled, MemoryLog, Outcome, handle};

/// Runs the command twice under a key, on a log with the case's facts. Panics if the repeat takes effect too, or
/// if the command writes what a repeat would not find.
pub(super) async fn check<S: DcbSlice>(case: &Case<S>, catalog: &Catalog) {
    let log = MemoryLog::new(catalog.clone());
    case.prepare(&OnEvents { log: &log, set_clock: |_| {} }).await;
    let idempotency_key = Some("key".to_owned());
    let envelope =
        Envelope { context: case.context.clone(), idempotency_key, ..Envelope::default() };
    let run = async || {
        let handled = handle(&log, catalog, &Decisions::new(0), &case.command, &envelope).await;
        handled.unwrap_or_else(|error| panic!("case at {}: {error}", case.at))
    };
    let first = run().await;
    let (Outcome::Accepted(events) | Outcome::Rejected { events, .. }) = &first.outcome;
    let repeated = !events.is_empty();
    assert_eq!(run().await, Handled { repeated, ..first }, "case at {}: its repeat", case.at);
}
