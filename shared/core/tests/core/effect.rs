//! The writes and conditions of an append.

use ringfence_core::{
    ACTIONS_MAX, BoundaryId, Effect, Event as _, FenceEffect, LogError, MemoryLog, Metadata, Plan,
    Query, QueryItem, Seen, Tag, Target, prelude::*,
};

use crate::shop::{booked, catalog, cleaned, closed};

/// The boundaries and types that a decision has seen in a log with these events.
fn seen(given: Vec<NewEvent>, items: &[(&'static str, &str, &'static str)]) -> Seen {
    let log = MemoryLog::new(catalog().unwrap());
    given.into_iter().for_each(|event| crate::decide::append(&log, event));
    let item = |(key, value, event_type): &(&'static str, &str, &'static str)| QueryItem {
        tags: vec![Tag::new(*key, *value)],
        types: vec![(*event_type).into()],
    };
    let query = Query { items: items.iter().map(item).collect() };
    let plan = Plan::new(&query, &catalog().unwrap()).unwrap();
    observed(&log, &plan)
}

fn observed(log: &MemoryLog, plan: &Plan) -> Seen {
    let mut seen = Seen::nothing(plan);
    log.events().iter().for_each(|event| {
        seen.observe(plan, event);
    });
    seen
}

fn effect(events: Vec<NewEvent>, seen: Option<&Seen>) -> Effect {
    Effect::new(&catalog().unwrap(), events, &Metadata::default(), seen, 0).unwrap()
}

fn look(seen: &Seen) -> Effect {
    Effect::look(&catalog().unwrap(), seen).unwrap()
}

fn room(room: &str) -> BoundaryId {
    BoundaryId::tag("roomId", room)
}

fn fence(requires: &[(&'static str, u64)], adds: &[(&'static str, u64)]) -> FenceEffect {
    let counts = |of: &[(&'static str, u64)]| {
        of.iter().map(|(event_type, count)| ((*event_type).into(), *count)).collect()
    };
    FenceEffect { requires: counts(requires), adds: counts(adds), copies: 0 }
}

#[test]
fn events_of_a_read_partition_follow_the_last_seen_slot() {
    let given = events![cleaned("r1", 1), cleaned("r1", 2)];
    let seen = seen(given, &[("roomId", "r1", "Cleaned")]);
    let effect = effect(events![cleaned("r1", 3), cleaned("r1", 4)], Some(&seen));
    let target = Target { events: 2, seen: Some(2), hint: None };
    assert_eq!(effect.targets, [(room("r1"), target)].into());
    assert!(effect.checks.is_empty() && effect.fences.is_empty(), "{effect:?}");
}

#[test]
fn the_events_of_each_partition_are_numbered_after_its_last_slot_in_their_order() {
    let seen = seen(events![cleaned("r1", 1), cleaned("r1", 2)], &[("roomId", "r1", "Cleaned")]);
    let new = events![cleaned("r1", 3), closed("r2"), cleaned("r1", 4), closed("r2")];
    let mut effect = effect(new, Some(&seen));
    // The effect asks only for the end of the unread partition. A refused append is minted once more.
    for (first_ms, end) in [(70, 0), (90, 5)] {
        effect.mint(first_ms, |partition| if *partition == room("r2") { end } else { 99 });
        let places = effect.events.iter().map(|(event, _)| (event.id(), event.rest, event.at));
        let expected = [
            ("roomId:r1/3".to_owned(), 1, first_ms),
            (format!("roomId:r2/{}", end + 1), 1, first_ms + 1),
            ("roomId:r1/4".to_owned(), 0, first_ms + 2),
            (format!("roomId:r2/{}", end + 2), 0, first_ms + 3),
        ];
        assert_eq!(Vec::from_iter(places), expected);
    }
}

#[test]
fn a_partition_that_is_only_read_is_checked() {
    let given = events![cleaned("r1", 1), cleaned("r1", 2)];
    let seen = seen(given, &[("roomId", "r1", "Cleaned"), ("roomId", "r2", "Cleaned")]);
    let effect = effect(events![cleaned("r3", 1)], Some(&seen));
    assert_eq!(effect.checks, [(room("r1"), 2), (room("r2"), 0)].into());
    assert_eq!(effect.targets[&room("r3")], Target { events: 1, seen: None, hint: None });
    assert!(effect.fences.is_empty(), "{:?}", effect.fences);
}

#[test]
fn a_partition_read_by_fenced_types_alone_is_guarded_by_their_counts() {
    let given = || events![cleaned("r1", 1), closed("r1")];
    let only = seen(given(), &[("roomId", "r1", "Closed")]);
    let elsewhere = effect(events![cleaned("r2", 1)], Some(&only));
    assert!(elsewhere.checks.is_empty(), "{:?}", elsewhere.checks);
    assert_eq!(elsewhere.fences, [(room("r1"), fence(&[("Closed", 1)], &[]))].into());
    // The slot is the condition if the decision writes there.
    let own = effect(events![cleaned("r1", 2)], Some(&only));
    assert_eq!(own.targets[&room("r1")].seen, Some(2));
    assert!(own.fences.is_empty(), "{:?}", own.fences);
    // The slot is also the condition if the decision reads another type there.
    let both = seen(given(), &[("roomId", "r1", "Closed"), ("roomId", "r1", "Cleaned")]);
    let elsewhere = effect(events![cleaned("r2", 1)], Some(&both));
    assert_eq!(elsewhere.checks, [(room("r1"), 2)].into());
    assert!(elsewhere.fences.is_empty(), "{:?}", elsewhere.fences);
}

/// A tag that partitions events and is read across partitions also counts events of other partitions.
#[derive(Event)]
#[event(fenced)]
struct Joined {
    #[tag(partition, cross_partition)]
    guest_id: String,
}

fn joined() -> NewEvent {
    Joined { guest_id: "g1".to_owned() }.into()
}

#[test]
fn a_partitions_fence_counts_its_fenced_types_alone() {
    let counted = effect(events![booked("r1", "g1"), closed("r1"), booked("r2", "g1")], None);
    let of_room = fence(&[], &[("Closed", 1)]);
    let of_guest = fence(&[], &[("Booked", 2)]);
    let expected = [(room("r1"), of_room), (BoundaryId::tag("guestId", "g1"), of_guest)];
    assert_eq!(counted.fences, expected.into());
    let guests = Catalog::new("guests", [Joined::SCHEMA]).unwrap();
    let joined = Effect::new(&guests, vec![joined()], &Metadata::default(), None, 0).unwrap();
    let of_guest = fence(&[], &[("Joined", 1)]);
    assert_eq!(joined.fences, [(BoundaryId::tag("guestId", "g1"), of_guest)].into());
}

#[test]
fn a_slot_in_a_read_by_tag_is_a_hint_for_the_put_and_not_a_condition() {
    let catalog = Catalog::new("guests", [Joined::SCHEMA]).unwrap();
    let log = MemoryLog::new(catalog.clone());
    [joined(), joined()].into_iter().for_each(|event| crate::decide::append(&log, event));
    let guest = Tag::new("guestId", "g1");
    let items = vec![QueryItem { tags: vec![guest], types: vec!["Joined".into()] }];
    let plan = Plan::new(&Query { items }, &catalog).unwrap();
    assert!(!plan.reads[0].fenced, "it is not read as a partition");
    let seen = observed(&log, &plan);
    let guest = BoundaryId::tag("guestId", "g1");
    let effect =
        Effect::new(&catalog, vec![joined()], &Metadata::default(), Some(&seen), 0).unwrap();
    let target = Target { events: 1, seen: None, hint: Some(2) };
    assert_eq!(effect.targets, [(guest.clone(), target)].into());
    assert_eq!(effect.fences, [(guest, fence(&[("Joined", 2)], &[("Joined", 1)]))].into());
}

#[test]
fn a_fence_that_is_checked_and_advanced_is_one_action() {
    let items = [("guestId", "g1", "Booked"), ("roomId", "r1", "Booked")];
    let seen = seen(events![booked("r2", "g1")], &items);
    let effect = effect(events![booked("r1", "g1")], Some(&seen));
    let of_guest = fence(&[("Booked", 1)], &[("Booked", 1)]);
    assert_eq!(effect.fences, [(BoundaryId::tag("guestId", "g1"), of_guest)].into());
    assert_eq!(effect.targets[&room("r1")].seen, Some(0));
    assert!(effect.checks.is_empty(), "{:?}", effect.checks);
}

#[test]
fn an_answer_without_events_depends_on_all_reads() {
    let items = [("guestId", "g1", "Booked"), ("roomId", "r1", "Booked")];
    let seen = seen(events![booked("r1", "g2")], &items);
    let effect = look(&seen);
    assert_eq!(effect.checks, [(room("r1"), 1)].into());
    let of_guest = fence(&[("Booked", 0)], &[]);
    assert_eq!(effect.fences, [(BoundaryId::tag("guestId", "g1"), of_guest)].into());
}

#[test]
fn an_append_may_have_as_many_actions_as_a_transaction() {
    let catalog = catalog().unwrap();
    let actions = |events: Vec<NewEvent>, seen: Option<&Seen>, marks: usize| match Effect::new(
        &catalog,
        events,
        &Metadata::default(),
        seen,
        marks,
    ) {
        Ok(_) => Ok(()),
        Err(LogError::Limit(limit)) => Err(limit.to_string()),
        Err(error) => panic!("{error}"),
    };
    let events = |n: usize| (0..n).map(|_| cleaned("r1", 1).into()).collect::<Vec<_>>();
    let too_many = "the command's transaction: 101 actions, limit 100; \
                    read and write fewer things in one decision";
    assert_eq!(actions(events(ACTIONS_MAX), None, 0), Ok(()));
    assert_eq!(actions(events(ACTIONS_MAX + 1), None, 0), Err(too_many.to_owned()));
    assert_eq!(actions(events(ACTIONS_MAX), None, 1), Err(too_many.to_owned()));
    // A partition that is read and written takes no separate action; one that is only read does.
    let own = seen(vec![], &[("roomId", "r1", "Cleaned")]);
    assert_eq!(actions(events(ACTIONS_MAX), Some(&own), 0), Ok(()));
    let other = seen(vec![], &[("roomId", "r2", "Cleaned")]);
    assert_eq!(actions(events(ACTIONS_MAX), Some(&other), 0), Err(too_many.to_owned()));
    // A fence is one action, however many events it counts.
    let booked = (0..ACTIONS_MAX - 1).map(|_| booked("r1", "g1").into()).collect();
    assert_eq!(actions(booked, None, 0), Ok(()));
    let closed = (0..ACTIONS_MAX).map(|_| closed("r1").into()).collect();
    assert_eq!(actions(closed, None, 0), Err(too_many.to_owned()));
}
