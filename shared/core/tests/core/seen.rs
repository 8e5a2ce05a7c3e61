//! The record of a decision's reads, for every kind of read.

use ringfence_core::{
    AHEAD_MAX_MS, Access, BoundaryId, Extent, Metadata, Plan, Prefix, Query, QueryItem, Seen,
    SequencedEvent, prelude::*,
};

use crate::shop::{Rated, booked, catalog, cleaned, closed};

/// The event in a slot of its partition, recorded `at`, with `rest` further events in its append.
fn event(event: impl Into<NewEvent>, slot: u64, at: u64, rest: u64) -> SequencedEvent {
    let event = event.into();
    SequencedEvent {
        partition: catalog().unwrap().filing(&event).unwrap().partition,
        slot,
        at,
        rest,
        event_type: event.event_type.into_owned(),
        context: "rooms".to_owned(),
        tags: event.tags,
        version: 1,
        data: event.data,
        metadata: Metadata::default(),
    }
}

fn item(key: &'static str, value: &str, types: &[&'static str]) -> QueryItem {
    let types = types.iter().copied().map(Into::into).collect();
    QueryItem { tags: vec![ringfence_core::Tag::new(key, value)], types }
}

fn plan(items: &[QueryItem]) -> Plan {
    Plan::new(&Query { items: items.to_vec() }, &catalog().unwrap()).unwrap()
}

/// A room as a partition, and a guest by a fence.
fn room_and_guest() -> Plan {
    plan(&[item("roomId", "r1", &["Booked"]), item("guestId", "g1", &["Booked"])])
}

/// The slot up to which a read of these slots shows the room.
fn prefix(slots: &[u64]) -> u64 {
    let plan = room_and_guest();
    let mut seen = Seen::nothing(&plan);
    for slot in slots {
        seen.observe(&plan, &event(cleaned("r1", 1), *slot, *slot, 0));
    }
    seen.prefix(&BoundaryId::tag("roomId", "r1")).unwrap().slot
}

/// The number of the guest's bookings that were seen, and the largest slot in a partition with the guest's name.
fn guest(seen: &Seen) -> (u64, u64) {
    match seen.of(&BoundaryId::tag("guestId", "g1")) {
        Some(Extent::Fence { counts, slot, .. }) => (counts["Booked"], *slot),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_slots_of_a_partition_before_the_first_gap_are_seen() {
    for (slots, seen) in [
        (&[][..], 0),
        (&[1, 2, 3], 3),
        (&[2, 3], 0),
        (&[1, 3], 1),
        (&[1, 2, 4, 5], 2),
        (&[1, 1, 2, 2], 2),
        (&[1, 3, 2], 2),
    ] {
        assert_eq!(prefix(slots), seen, "{slots:?}");
    }
}

#[test]
fn an_event_beyond_a_gap_counts_in_no_read() {
    let plan = room_and_guest();
    let mut seen = Seen::nothing(&plan);
    assert!(seen.observe(&plan, &event(booked("r1", "g1"), 1, 10, 0)));
    assert!(!seen.observe(&plan, &event(booked("r1", "g1"), 3, 12, 0)));
    assert_eq!((guest(&seen), seen.newest_ms(0)), ((1, 0), 10));
    let of_elsewhere = |seen: &Seen| match seen.of(&BoundaryId::tag("guestId", "g1")) {
        Some(Extent::Fence { at, .. }) => *at,
        other => panic!("{other:?}"),
    };
    assert_eq!(of_elsewhere(&seen), 0);
    // A partition without a read shows the events in the guest's read.
    assert!(seen.observe(&plan, &event(booked("r2", "g1"), 7, 13, 0)));
    assert_eq!((guest(&seen), seen.newest_ms(0)), ((2, 0), 13));
    assert_eq!(of_elsewhere(&seen), 13);
    // Missed events of the partition can be added later, with any times.
    assert!(seen.observe(&plan, &event(cleaned("r1", 1), 2, 12, 0)));
    assert_eq!(seen.newest_ms(0), 13);
    // A time counts only if it is at most a minute ahead of the clock.
    assert!(seen.observe(&plan, &event(booked("r1", "g2"), 3, 14 + AHEAD_MAX_MS, 0)));
    assert_eq!(
        [0, 13, 14, 15].map(|now| seen.newest_ms(now)),
        [13, 13, 14 + AHEAD_MAX_MS, 14 + AHEAD_MAX_MS]
    );
}

#[test]
fn an_event_that_was_stored_with_a_tag_twice_is_seen_in_its_composite() {
    let rated = Rated { room_id: id("r1"), review_id: "v1".to_owned() };
    let mut stored = NewEvent::from(rated);
    stored.tags.push(stored.tags[0].clone());
    let tags = stored.tags[..2].to_vec();
    let plan = plan(&[QueryItem { tags, types: vec!["Rated".into()] }]);
    let mut seen = Seen::nothing(&plan);
    assert!(seen.observe(&plan, &event(stored, 1, 10, 0)));
    let counts = [("Rated".into(), 1)].into();
    let composite = seen.of(&plan.reads[0].boundary);
    assert_eq!(composite, Some(&Extent::Fence { counts, slot: 0, at: 10 }));
}

#[test]
fn an_event_that_is_seen_again_is_not_counted_again() {
    let plan = room_and_guest();
    let mut seen = Seen::nothing(&plan);
    let first = event(booked("r1", "g1"), 1, 10, 0);
    assert!(seen.observe(&plan, &first));
    let once = seen.clone();
    assert!(!seen.observe(&plan, &first));
    assert_eq!(seen, once);
}

#[test]
fn the_prefix_counts_the_following_events_of_its_last_append() {
    let plan = room_and_guest();
    let mut seen = Seen::nothing(&plan);
    let rests = [2, 1, 0].into_iter().zip(1..).map(|(rest, slot)| {
        assert!(seen.observe(&plan, &event(cleaned("r1", 1), slot, slot, rest)));
        seen.prefix(&BoundaryId::tag("roomId", "r1")).unwrap().rest
    });
    assert_eq!(rests.collect::<Vec<_>>(), [2, 1, 0]);
}

#[test]
fn fenced_types_are_counted_up_to_the_gap_if_only_they_are_read() {
    let room = BoundaryId::tag("roomId", "r1");
    let observed = |types: &[&'static str]| {
        let plan = plan(&[item("roomId", "r1", types)]);
        let mut seen = Seen::nothing(&plan);
        for (slot, event_of) in [
            (1, NewEvent::from(cleaned("r1", 1))),
            (2, closed("r1").into()),
            (4, closed("r1").into()),
        ] {
            seen.observe(&plan, &event(event_of, slot, slot, 0));
        }
        seen.prefix(&room).unwrap().clone()
    };
    let fenced = Some([("Closed".into(), 1)].into());
    assert_eq!(observed(&["Closed"]), Prefix { slot: 2, at: 2, rest: 0, fenced });
    assert_eq!(observed(&["Closed", "Cleaned"]), Prefix { slot: 2, at: 2, rest: 0, fenced: None });
}

#[test]
fn a_decision_that_has_seen_nothing_depends_on_every_boundary() {
    let plan = plan(&[item("roomId", "r1", &["Closed"]), item("guestId", "g1", &["Booked"])]);
    let seen = Seen::nothing(&plan);
    let counts = |name: &'static str| [(name.into(), 0)].into();
    let guest = Extent::Fence { counts: counts("Booked"), slot: 0, at: 0 };
    let room = Extent::Prefix(Prefix { slot: 0, at: 0, rest: 0, fenced: Some(counts("Closed")) });
    let all: Vec<_> = seen.iter().map(|(id, extent)| (id.as_str(), extent)).collect();
    assert_eq!(all, [("guestId:g1", &guest), ("roomId:r1", &room)]);
    assert_eq!(seen.newest_ms(0), 0);
}

#[test]
fn the_largest_slot_of_a_fence_with_the_name_of_a_partition_is_kept_as_a_hint() {
    #[derive(Event)]
    struct Joined {
        #[tag(partition, cross_partition)]
        guest_id: String,
    }
    let catalog = Catalog::new("guests", [Joined::SCHEMA]).unwrap();
    let items = vec![item("guestId", "g1", &["Joined"])];
    let plan = Plan::new(&Query { items }, &catalog).unwrap();
    assert!(matches!(plan.reads[0].access, Access::TagIndex(_)));
    let joined = NewEvent::from(Joined { guest_id: "g1".to_owned() });
    let partition = BoundaryId::tag("guestId", "g1");
    let mut seen = Seen::nothing(&plan);
    for slot in [2, 5, 3] {
        let base = event(cleaned("r1", 1), slot, slot, 0);
        let NewEvent { event_type, tags, data } = joined.clone();
        let (partition, event_type) = (partition.clone(), event_type.into_owned());
        assert!(seen.observe(&plan, &SequencedEvent { partition, event_type, tags, data, ..base }));
    }
    let counts = [("Joined".into(), 3)].into();
    assert_eq!(seen.of(&partition), Some(&Extent::Fence { counts, slot: 5, at: 5 }));
    assert_eq!(seen.prefix(&partition), None);
}
