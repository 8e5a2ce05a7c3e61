//! The log in memory: slots, times, conditions.

use futures::executor::block_on;
use ringfence_core::{
    Append, Appended, CommandRecord, Consistency, Envelope, EventLog, EventRef, LogError,
    MemoryLog, Plan, Query, QueryItem, Seen, SequencedEvent, Tag, prelude::*,
};
use serde_json::json;

use crate::shop::{Opened, booked, catalog, cleaned, closed};

fn append(
    log: &MemoryLog,
    events: Vec<NewEvent>,
    seen: Option<&Seen>,
    envelope: &Envelope,
) -> Result<Vec<SequencedEvent>, String> {
    match block_on(log.append(Append { events, seen, record: None, envelope })) {
        Ok(Appended::Committed(events)) => Ok(events),
        Ok(repeated) => panic!("{repeated:?}"),
        Err(error) => Err(error.to_string()),
    }
}

fn put(log: &MemoryLog, events: Vec<NewEvent>) -> Vec<SequencedEvent> {
    append(log, events, None, &Envelope::default()).unwrap()
}

/// The current state of these boundaries and types, as a decision sees it.
fn seen(log: &MemoryLog, items: &[(&'static str, &str, &'static str)]) -> Seen {
    let item = |(key, value, event_type): &(&'static str, &str, &'static str)| QueryItem {
        tags: vec![Tag::new(*key, *value)],
        types: vec![(*event_type).into()],
    };
    let query = Query { items: items.iter().map(item).collect() };
    let plan = Plan::new(&query, &catalog().unwrap()).unwrap();
    let envelope = Envelope::default();
    block_on(log.read_with_seen(&plan, Consistency::Strong, &envelope)).unwrap().1
}

fn log() -> MemoryLog {
    MemoryLog::new(catalog().unwrap())
}

#[test]
fn events_have_slots_from_one_and_count_their_followers_in_the_append() {
    let log = log();
    put(&log, events![cleaned("r1", 1)]);
    put(&log, events![cleaned("r1", 2), cleaned("r2", 1), cleaned("r1", 3)]);
    let events: Vec<_> = log.events().iter().map(|event| (event.id(), event.rest)).collect();
    let expected = [("roomId:r1/1", 0), ("roomId:r1/2", 1), ("roomId:r2/1", 0), ("roomId:r1/3", 0)];
    assert_eq!(events, expected.map(|(id, rest)| (id.to_owned(), rest)));
}

#[test]
fn a_time_is_later_than_earlier_events_and_than_its_cause() {
    let log = log();
    let at = |now_ms: u64, cause_ms: Option<u64>| {
        let context = CommandContext { now_ms, ..CommandContext::default() };
        let envelope = Envelope { context, cause_ms, ..Envelope::default() };
        let events = events![cleaned("r1", 1), cleaned("r2", 1)];
        let put = append(&log, events, None, &envelope).unwrap();
        (put[0].at, put[1].at)
    };
    assert_eq!(at(1_000, None), (1_000, 1_001));
    assert_eq!(at(900, None), (1_002, 1_003));
    assert_eq!(at(2_000, Some(5_000)), (5_001, 5_002));
    assert_eq!(log.events()[0].recorded_at(), "1970-01-01T00:00:01.000Z");
}

#[test]
fn a_conflict_names_every_change_since_the_read() {
    let log = log();
    put(&log, events![cleaned("r1", 1), booked("r2", "g1")]);
    let items =
        [("roomId", "r1", "Cleaned"), ("roomId", "r3", "Closed"), ("guestId", "g1", "Booked")];
    let before = seen(&log, &items);
    put(&log, events![booked("r1", "g2"), closed("r3"), booked("r4", "g1")]);
    let text = "roomId:r1 has Booked in slot 2, which was free; guestId:g1 holds 2 Booked, seen 1; \
                roomId:r3 holds 1 Closed, seen 0";
    let envelope = Envelope::default();
    for events in [events![cleaned("r1", 2)], events![cleaned("r9", 1)]] {
        let appended = append(&log, events, Some(&before), &envelope);
        assert_eq!(appended, Err(format!("conflict: {text}")));
    }
    let conflict = block_on(log.verify(&before, &envelope)).unwrap();
    assert_eq!(conflict.unwrap().to_string(), text);
    assert_eq!(log.events().len(), 5, "nothing was appended");
    let now = seen(&log, &items);
    assert_eq!(block_on(log.verify(&now, &envelope)).unwrap(), None);
    append(&log, events![cleaned("r1", 2)], Some(&now), &envelope).unwrap();
}

#[test]
fn other_events_of_a_partition_do_not_concern_a_decision_on_its_fenced_types() {
    let log = log();
    let before = seen(&log, &[("roomId", "r1", "Closed")]);
    put(&log, events![cleaned("r1", 1)]);
    let envelope = Envelope::default();
    assert_eq!(block_on(log.verify(&before, &envelope)).unwrap(), None);
    append(&log, events![cleaned("r2", 1)], Some(&before), &envelope).unwrap();
    // Its own partition takes the slot after the last one seen.
    let own = append(&log, events![closed("r1")], Some(&before), &envelope);
    assert_eq!(own, Err("conflict: roomId:r1 has Cleaned in slot 1, which was free".to_owned()));
}

#[test]
fn an_append_to_an_unread_partition_takes_the_next_slot() {
    let log = log();
    let before = seen(&log, &[("guestId", "g1", "Booked")]);
    put(&log, events![cleaned("r1", 1), cleaned("r1", 2)]);
    let own = append(&log, events![booked("r1", "g1")], Some(&before), &Envelope::default());
    assert_eq!(own.unwrap()[0].id(), "roomId:r1/3");
}

#[test]
fn a_log_with_given_events_continues_after_them() {
    let first = log();
    put(&first, events![cleaned("r1", 1), booked("r1", "g1"), booked("r2", "g1")]);
    let mut events = first.events();
    let (catalog, last_ms) = (catalog().unwrap(), events[2].at);
    events.reverse();
    let second = MemoryLog::of(catalog.clone(), events.clone()).unwrap();
    assert_eq!(second.events(), first.events());
    let of_guest = [("guestId", "g1", "Booked")];
    let both = seen(&second, &of_guest);
    assert_eq!(both, seen(&first, &of_guest));
    let next = append(&second, events![booked("r1", "g1")], Some(&both), &Envelope::default());
    assert_eq!((next.as_ref().unwrap()[0].slot, next.unwrap()[0].at), (3, last_ms + 1));

    let refused = |events: Vec<SequencedEvent>| {
        MemoryLog::of(catalog.clone(), events).err().unwrap().to_string()
    };
    let advice =
        "by its tags and the events before it; give all events of its partition, as they are";
    let gap = refused(events[..2].to_vec());
    assert_eq!(gap, format!("event roomId:r1/2 would be roomId:r1/1 {advice}"));
    events[0].tags[0].value = "r3".to_owned();
    let elsewhere = refused(events[..1].to_vec());
    assert_eq!(elsewhere, format!("event roomId:r2/1 would be roomId:r3/1 {advice}"));
}

#[test]
fn an_append_with_a_record_takes_effect_once() {
    let (log, envelope) = (log(), Envelope::default());
    let record = |n: u32| CommandRecord::new("clean", "k", &n);
    let append = |record: &CommandRecord| {
        let events = events![cleaned("r1", 1)];
        block_on(log.append(Append {
            events,
            seen: None,
            record: Some(record),
            envelope: &envelope,
        }))
    };
    let Appended::Committed(events) = append(&record(1)).unwrap() else { panic!("a repeat") };
    let events: Vec<EventRef> = events.iter().map(EventRef::from).collect();
    assert_eq!(append(&record(1)).unwrap(), Appended::Repeated(events.clone()));
    assert!(matches!(append(&record(2)), Err(LogError::KeyReused(_))));
    assert_eq!(log.events().len(), 1);
    let recorded = |record: &CommandRecord| block_on(log.recorded(record, &envelope));
    assert_eq!(recorded(&record(1)).unwrap(), Some(events));
    assert!(matches!(recorded(&record(2)), Err(LogError::KeyReused(_))));
    assert_eq!(recorded(&CommandRecord::new("clean", "other", &1)).unwrap(), None);
}

#[test]
fn the_log_in_memory_refuses_with_the_errors_of_the_log_on_dynamodb() {
    let log = log();
    let opened = |bytes: usize| NewEvent::from(Opened { name: "x".repeat(bytes) });
    let error = |events: Vec<NewEvent>| {
        append(&log, events, None, &Envelope::default()).map(drop).unwrap_err()
    };
    assert_eq!(
        error((0..101).map(|_| cleaned("r1", 1).into()).collect()),
        "the command's transaction: 101 actions, limit 100; \
         read and write fewer things in one decision"
    );
    let advice = "keep large payloads elsewhere and refer to them";
    assert_eq!(
        error(vec![opened(358_296)]),
        format!("Opened: 358401 bytes, limit 358400; {advice}")
    );
    put(&log, vec![opened(358_295)]);
    let advice = "write fewer or smaller events in one decision";
    let all = error((0..12).map(|_| opened(350_000)).collect());
    assert!(all.starts_with("the command's transaction: 4201"), "{all}");
    assert!(all.ends_with(&format!("bytes, limit 4194304; {advice}")), "{all}");
    put(&log, (0..11).map(|_| opened(350_000)).collect());
    let data = json!({ "name": ["x", 1e126] });
    assert_eq!(
        error(vec![NewEvent { data, ..opened(1) }]),
        "data.name[1]: the number is of the order 1E126, the limits are 1E-130 and 9.99E+125; \
         send it as text"
    );
    assert_eq!(log.events().len(), 12, "nothing else was appended");
}

#[test]
fn a_key_that_is_too_long_for_an_item_is_refused() {
    let (log, envelope) = (log(), Envelope::default());
    let append = |key: usize| {
        let record = CommandRecord::new("write", &"k".repeat(key), &json!({}));
        let (events, record) = (events![cleaned("r1", 1)], Some(&record));
        let appended =
            block_on(log.append(Append { events, seen: None, record, envelope: &envelope }));
        appended.map(drop).map_err(|error| error.to_string())
    };
    let longest = 2_048 - "command#write#".len();
    let error = "the idempotency key: 2049 bytes, limit 2048; use a shorter one".to_owned();
    assert_eq!(append(longest + 1), Err(error));
    assert_eq!(append(longest), Ok(()));
}
