//! Logs through references, boxes and `Arc`s, and a read with the condition of an append.

use std::sync::Arc;

use futures::executor::block_on;
use ringfence_core::{
    Append, Consistency, Decisions, Envelope, EventLog, LogError, MemoryLog, Outcome, Plan, Query,
    QueryItem, Tag, handle,
};

use crate::shop::{book, booked, catalog};

fn check(log: impl EventLog) {
    let (catalog, envelope) = (catalog().unwrap(), Envelope::default());
    let (decisions, command) = (Decisions::new(0), book("r1", "g1"));
    let handled = block_on(handle(&log, &catalog, &decisions, &command, &envelope)).unwrap();
    assert!(matches!(handled.outcome, Outcome::Accepted(events) if events.len() == 1));
}

#[allow(clippy::needless_borrows_for_generic_args, reason = "references are what is tested")]
#[test]
fn references_boxes_and_arcs_of_a_log_are_logs() {
    let log = || MemoryLog::new(catalog().unwrap());
    check(&log());
    check(&&log());
    check(Box::new(log()));
    check(Box::new(log()) as Box<dyn EventLog>);
    check(Arc::new(log()));
    let shared: Arc<dyn EventLog> = Arc::new(log());
    check(shared.clone());
    let (catalog, envelope) = (catalog().unwrap(), Envelope::default());
    let (decisions, command) = (Decisions::new(0), book("r1", "g1"));
    let again = block_on(handle(&*shared, &catalog, &decisions, &command, &envelope));
    assert_eq!(again.unwrap().outcome, Outcome::Accepted(Vec::new()), "it is there");
}

#[test]
fn a_read_with_its_condition_counts_the_events_that_it_leaves_out() {
    let (catalog, envelope) = (catalog().unwrap(), Envelope::default());
    let log = MemoryLog::new(catalog.clone());
    let append = |seen| Append {
        events: vec![booked("r1", "g2").into()],
        seen,
        record: None,
        envelope: &envelope,
    };
    block_on(log.append(append(None))).unwrap();
    // With both tags the room's boundary is read, which also contains the booking of another guest.
    let tags = vec![Tag::new("guestId", "g1"), Tag::new("roomId", "r1")];
    let items = vec![QueryItem { tags, types: vec!["Booked".into()] }];
    let plan = Plan::new(&Query { items }, &catalog).unwrap();
    let read = || block_on(log.read_with_seen(&plan, Consistency::Strong, &envelope)).unwrap();
    let (events, before) = read();
    assert!(events.is_empty(), "{events:?}");
    assert_eq!(before.prefix(&plan.reads[0].boundary).unwrap().slot, 1);
    block_on(log.append(append(Some(&before)))).unwrap();
    let late = block_on(log.append(append(Some(&before))));
    assert!(matches!(late, Err(LogError::Conflict(_))), "{late:?}");
    block_on(log.append(append(Some(&read().1)))).unwrap();
}
