//! The context of a decision, and its limits on events and rejections.

use std::{cell::RefCell, collections::BTreeSet};

use futures::executor::block_on;
use ringfence_core::{
    AHEAD_MAX_MS, Consistency, Decisions, Envelope, Event, EventLog, FilingError, HandleError,
    LogError, MemoryLog, NewEvent, Outcome, Plan, Query, QueryItem, Tag, handle,
    kit::{BEGIN_MS, check_in_memory},
    prelude::*,
};
use serde::Serialize;

use crate::shop::{Cleaned, Rated, RoomId, booked, catalog};

#[derive(Clone, Debug, PartialEq, Event)]
struct Measured {
    #[tag(partition)]
    room_id: RoomId,
    mean_age_ms: f64,
}

thread_local! {
    /// The times of its decisions.
    static TIMES: RefCell<BTreeSet<u64>> = const { RefCell::new(BTreeSet::new()) };
}

/// How long ago a room was booked, on average; NaN without bookings.
#[derive(Clone, Debug, PartialEq, Command)]
struct Measure {
    #[tag(partition)]
    room_id: RoomId,
}

#[derive(Reads)]
enum Bookings {
    Booked {
        #[time]
        at_ms: u64,
    },
}

#[derive(Debug, Serialize, thiserror::Error)]
#[serde(untagged)]
enum Rejection {
    #[error("booked in the future")]
    Future { code: &'static str },
    #[error("has a field that the answer has")]
    Clash { code: &'static str, title: &'static str },
    #[error("is not an object")]
    Bare,
}

pub(crate) struct Rooms;

impl Context for Rooms {
    const NAME: &'static str = "rooms";
    type Log = crate::shop::Dcb;

    fn catalog() -> Result<Catalog, CatalogError> {
        Catalog::compose([catalog()?, Catalog::new("measures", [Measured::SCHEMA])?])
    }
}

/// When the room was booked, in milliseconds since 1970.
#[derive(Default)]
struct Times(Vec<u64>);

impl State for Times {
    type Reads = Bookings;

    fn evolve(mut self, event: Bookings) -> Self {
        let Bookings::Booked { at_ms } = event;
        self.0.push(at_ms);
        self
    }
}

impl Slice for Measure {
    const NAME: &'static str = "measure";
    type Context = Rooms;
    type State = Times;
    type Writes = Measured;
    type Rejection = Rejection;

    fn decide(
        &self,
        Times(state): &Times,
        context: &CommandContext,
    ) -> Result<Vec<Measured>, Rejection> {
        TIMES.with_borrow_mut(|times| times.insert(context.now_ms));
        let ages: Option<Vec<u64>> =
            state.iter().map(|at_ms| context.now_ms.checked_sub(*at_ms)).collect();
        let ages = ages.ok_or(Rejection::Future { code: "Future" })?;
        let ages: Vec<f64> = ages.into_iter().map(|age| age as f64).collect();
        let mean_age_ms = ages.iter().sum::<f64>() / ages.len() as f64;
        Ok(vec![Measured { room_id: self.room_id.clone(), mean_age_ms }])
    }

    fn cases() -> Vec<Case<Self>> {
        let measured = |mean_age_ms| [Measured { room_id: id("r1"), mean_age_ms }];
        let given = || given(events![booked("r1", "g1")]).wait(10).and(events![booked("r1", "g2")]);
        vec![
            given().when(measure()).at(BEGIN_MS - 1_000).then(measured(5.0)),
            given().wait(1).when(measure()).then(measured(6.0)),
        ]
    }
}

fn measure() -> Measure {
    Measure { room_id: id("r1") }
}

#[test]
fn an_event_that_can_not_be_read_back_is_not_written() {
    let catalog = Rooms::catalog().unwrap();
    let log = MemoryLog::new(catalog.clone());
    let envelope = Envelope::default();
    let decisions = Decisions::new(0);
    let error = block_on(handle(&log, &catalog, &decisions, &measure(), &envelope)).unwrap_err();
    let HandleError::Event(error) = error else { panic!("{error:?}") };
    assert_eq!(error.to_string(), "an event of type Measured can't be read back from its JSON");
    assert_eq!(error.source.to_string(), "invalid type: null, expected f64");
    assert!(log.events().is_empty());
}

#[test]
fn json_holds_no_integer_above_64_bits() {
    #[derive(Event)]
    struct Counted {
        many: u128,
    }
    let counted = |many| NewEvent::new(&Counted { many });
    assert_eq!(counted(u64::MAX.into()).unwrap().data["many"], u64::MAX);
    assert_eq!(counted(u128::MAX).unwrap_err().source.to_string(), "number out of range");
}

#[test]
fn the_time_of_a_decision_is_not_before_its_events() {
    check_in_memory::<Measure>();
}

#[test]
fn an_event_far_ahead_of_the_clock_does_not_move_the_time_of_a_decision() {
    let catalog = Rooms::catalog().unwrap();
    let log = MemoryLog::new(catalog.clone());
    let at = |now_ms| Envelope {
        context: CommandContext { now_ms, ..CommandContext::default() },
        ..Envelope::default()
    };
    let ahead = at(BEGIN_MS + AHEAD_MAX_MS);
    let (events, envelope) = (events![booked("r1", "g1")], &ahead);
    block_on(log.append(ringfence_core::Append { events, seen: None, record: None, envelope }))
        .unwrap();
    let age = |now_ms| {
        let (decisions, envelope) = (Decisions::new(0), at(now_ms));
        let handled = block_on(handle(&log, &catalog, &decisions, &measure(), &envelope)).unwrap();
        match handled.outcome {
            Outcome::Accepted(_) => "not in the future".to_owned(),
            Outcome::Rejected { rejected, .. } => rejected.message,
        }
    };
    assert_eq!(age(BEGIN_MS - 1), "booked in the future");
    assert_eq!(age(BEGIN_MS), "not in the future");
}

/// The last event of each boundary counts, in the log and in the kit's other orders.
#[test]
fn an_event_far_ahead_hides_the_time_of_a_nearer_one_in_its_boundary() {
    TIMES.take();
    let facts = given(events![booked("r1", "g1")]).wait(AHEAD_MAX_MS + 1);
    let facts = facts.and(events![booked("r1", "g2")]);
    let case = facts.when(measure()).at(BEGIN_MS - 1_000);
    let case = case.then_rejected(Rejection::Future { code: "Future" });
    block_on(case.check_in_memory());
    let before_all = BEGIN_MS - AHEAD_MAX_MS - 1;
    assert_eq!(TIMES.take(), [before_all, BEGIN_MS - 1_000].into());
}

/// How long a room was closed, computed wrongly.
#[derive(Clone, Debug, PartialEq, Command)]
struct Reckon {
    #[tag(partition)]
    room_id: RoomId,
}

impl Slice for Reckon {
    const NAME: &'static str = "reckon";
    type Context = Rooms;
    type State = Times;
    type Writes = Measured;
    type Rejection = Never;

    fn decide(&self, Times(at): &Times, context: &CommandContext) -> Result<Vec<Measured>, Never> {
        let mean_age_ms = at.iter().map(|at_ms| context.now_ms - at_ms).sum::<u64>() as f64;
        Ok(vec![Measured { room_id: self.room_id.clone(), mean_age_ms }])
    }

    fn cases() -> Vec<Case<Self>> {
        let measured = [Measured { room_id: id("r1"), mean_age_ms: 0.0 }];
        vec![given(events![booked("r1", "g1")]).when(Self { room_id: id("r1") }).then(measured)]
    }
}

#[test]
#[should_panic(expected = "Take an age with `saturating_sub`")]
fn a_decision_must_not_panic_if_its_facts_are_far_ahead() {
    check_in_memory::<Reckon>();
}

#[test]
#[should_panic(expected = "a rejection is an object with a `code`")]
fn a_rejection_has_a_code() {
    given([]).when(measure()).then_rejected(Rejection::Bare);
}

#[test]
#[should_panic(expected = "field `title` of the rejection")]
fn a_rejection_must_not_have_fields_named_like_members_of_the_answer() {
    given([]).when(measure()).then_rejected(Rejection::Clash { code: "Clash", title: "x" });
}

#[test]
fn an_event_made_by_hand_has_the_tags_of_its_type() {
    let log = MemoryLog::new(catalog().unwrap());
    let envelope = &Envelope::default();
    let append_with = |mut event: NewEvent, change: &dyn Fn(&mut Vec<Tag>)| {
        change(&mut event.tags);
        let append =
            ringfence_core::Append { events: vec![event], seen: None, record: None, envelope };
        block_on(log.append(append)).map(|_| ())
    };
    let append = |event: NewEvent, key: &'static str, value: &str| {
        append_with(event, &|tags| tags.push(Tag::new(key, value)))
    };
    let booked = || NewEvent::from(booked("r1", "g1"));
    for (key, value) in [("roomId", "r2"), ("guestId", "g2")] {
        let error = append(booked(), key, value).unwrap_err();
        let LogError::Filing(error) = error else { panic!("{error:?}") };
        let several = FilingError::SeveralValues { event_type: "Booked".into(), key: key.into() };
        assert_eq!(error, several);
        // An event that is already in a log is filed as it was.
        let mut stored = booked();
        stored.tags.push(Tag::new(key, value));
        catalog().unwrap().filing(&stored).unwrap();
    }
    append(booked(), "guestId", "g1").unwrap();
    let cleaned = Cleaned { room_id: id("r1"), helper_ids: vec!["h1".to_owned()], shift_id: None };
    append(cleaned.into(), "helperId", "h2").unwrap();

    // A type that is read as a composite. With a missing or an additional tag, it would be in another composite.
    let rated = || NewEvent::from(Rated { room_id: id("r1"), review_id: "v1".to_owned() });
    let undeclared = append(rated(), "guestId", "g1").unwrap_err().to_string();
    let expected = "Rated has the tag guestId, which the type does not declare: declare a field for it, or leave the \
                    tag out";
    assert_eq!(undeclared, expected);
    let lacks = append_with(rated(), &|tags| drop(tags.pop())).unwrap_err().to_string();
    assert_eq!(lacks, "Rated has no tag reviewId, which each event of the type has");
    // A repeated tag counts once.
    append(rated(), "roomId", "r1").unwrap();
    assert_eq!(log.events().last().unwrap().tags, rated().tags);
    let items = vec![QueryItem { tags: rated().tags, types: vec!["Rated".into()] }];
    let plan = Plan::new(&Query { items }, &catalog().unwrap()).unwrap();
    let (read, seen) = block_on(log.read_with_seen(&plan, Consistency::Strong, envelope)).unwrap();
    assert_eq!(read.len(), 1);
    assert_eq!(block_on(log.verify(&seen, envelope)).unwrap(), None);
}
