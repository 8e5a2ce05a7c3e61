//! Decisions on reads that return more than the query asks for, and on tags without a value.

use futures::executor::block_on;
use ringfence_core::{
    ACTIONS_MAX, BOUNDARIES_MAX, Consistency, Decisions, Envelope, HandleError, Handled, LimitKind,
    LogError, Outcome, PlanError, Slice, SliceError, handle, prelude::*,
};
use serde::Serialize;

use crate::decide::Faulty;
use crate::shop::{Cleaned, Count, GuestId, Opened, RoomId, catalog, cleaned};

/// A room is cleaned once a shift: the partition is read, and filtered by the shift.
#[derive(Clone, Debug, PartialEq, Command)]
struct Clean {
    #[tag(partition)]
    room_id: RoomId,
    shift_id: u32,
}

#[derive(Reads)]
enum Shifts {
    Cleaned { shift_id: Option<u32> },
}

#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code")]
enum Rejection {
    #[error("cleaned in shift {shift:?}")]
    Clean { shift: Option<u32> },
}

pub(crate) struct Rooms;

impl Context for Rooms {
    const NAME: &'static str = "rooms";
    type Log = crate::shop::Dcb;

    fn catalog() -> Result<Catalog, CatalogError> {
        catalog()
    }
}

/// The shifts that have cleaned.
#[derive(Default)]
struct Cleaners(Vec<Option<u32>>);

impl State for Cleaners {
    type Reads = Shifts;

    fn evolve(mut self, event: Shifts) -> Self {
        let Shifts::Cleaned { shift_id } = event;
        self.0.push(shift_id);
        self
    }
}

impl Slice for Clean {
    const NAME: &'static str = "clean";
    const CONSISTENCY: Consistency = Consistency::Strong;
    type Context = Rooms;
    type State = Cleaners;
    type Writes = Cleaned;
    type Rejection = Rejection;

    fn decide(&self, state: &Self::State, _: &CommandContext) -> Result<Vec<Cleaned>, Rejection> {
        match state.0.first() {
            Some(shift) => Err(Rejection::Clean { shift: *shift }),
            None => Ok(vec![cleaned(&self.room_id.to_string(), self.shift_id)]),
        }
    }
}

/// Opens a house for any guests.
#[derive(Clone, Debug, PartialEq, Command)]
struct Open {
    #[tag(cross_partition)]
    guest_ids: Vec<GuestId>,
}

#[derive(Reads)]
enum Bookings {
    Booked,
}

impl Slice for Open {
    const NAME: &'static str = "open";
    type Context = Rooms;
    type State = Count<Bookings>;
    type Writes = Opened;
    type Rejection = Never;

    fn decide(&self, _: &Count<Bookings>, _: &CommandContext) -> Result<Vec<Opened>, Never> {
        Ok(vec![Opened { name: "house".to_owned() }])
    }
}

fn run<S: Slice>(log: &Faulty, command: &S, key: Option<&str>) -> Result<Handled, HandleError> {
    ringfence_core::check::<S>(&catalog().unwrap()).unwrap();
    let envelope = Envelope { idempotency_key: key.map(str::to_owned), ..Envelope::default() };
    block_on(handle(log, &catalog().unwrap(), &Decisions::new(0), command, &envelope))
}

#[test]
fn events_beyond_the_query_are_counted_and_not_folded() {
    let log = Faulty::new(events![cleaned("r1", 1), cleaned("r1", 2)]);
    let accepted = run(&log, &Clean { room_id: id("r1"), shift_id: 3 }, None).unwrap();
    assert_eq!(accepted.attempts, 1);
    assert!(matches!(accepted.outcome, Outcome::Accepted(events) if events.len() == 1));
    // The slice asks for strong reads, also in the first attempt.
    assert_eq!(log.calls(), "read!(roomId:r1) append");
    let handled = run(&log, &Clean { room_id: id("r1"), shift_id: 2 }, None).unwrap();
    let Outcome::Rejected { rejected, .. } = handled.outcome else { panic!("{handled:?}") };
    assert_eq!(rejected.message, "cleaned in shift Some(2)");
}

#[test]
fn a_decision_may_have_as_many_boundaries_as_fit_into_its_transaction() {
    let open =
        |guests: usize| Open { guest_ids: (0..guests).map(|n| id(&format!("g{n}"))).collect() };
    for (key, most) in [(None, BOUNDARIES_MAX), (Some("k"), BOUNDARIES_MAX - 1)] {
        let log = Faulty::new([]);
        let refused = |guests| match run(&log, &open(guests), key) {
            Err(HandleError::Log(LogError::Limit(limit))) => (limit.kind, limit.found, limit.limit),
            other => panic!("{other:?}"),
        };
        let (all, found) = (ACTIONS_MAX as u64, most as u64 + 1);
        assert_eq!(refused(most + 1), (LimitKind::Boundaries, found, most as u64));
        assert_eq!(log.calls(), "", "it is refused before any read");
        // It is put beside the fences, and its partition is not a fence.
        assert_eq!(refused(most), (LimitKind::Append, all + 1, all));
        run(&log, &open(most - 1), key).unwrap();
    }
}

#[test]
fn a_command_whose_tags_have_no_value_depends_on_nothing() {
    let log = Faulty::new([]);
    let error = run(&log, &Open { guest_ids: vec![] }, None).unwrap_err();
    assert!(matches!(error, HandleError::Plan(PlanError::Nothing)), "{error:?}");
    assert_eq!(log.calls(), "");
}

/// Withdraws a review, with or without its room.
#[derive(Clone, Debug, PartialEq, Command)]
struct Withdraw {
    review_id: String,
    room_id: Option<RoomId>,
}

#[derive(Reads)]
enum Reviews {
    Rated,
}

impl Slice for Withdraw {
    const NAME: &'static str = "withdraw";
    type Context = Rooms;
    type State = Count<Reviews>;
    type Writes = Opened;
    type Rejection = Never;

    fn decide(&self, _: &Count<Reviews>, _: &CommandContext) -> Result<Vec<Opened>, Never> {
        Ok(vec![])
    }
}

#[test]
fn a_slice_does_not_start_if_a_command_without_a_value_has_no_plan() {
    let error = ringfence_core::check::<Withdraw>(&catalog().unwrap()).unwrap_err();
    let SliceError::Omitted { without, reason, .. } = &error else { panic!("{error:?}") };
    let keys = "reviewId".to_owned();
    assert_eq!(*reason, PlanError::NoRoute { event_type: "Rated".into(), keys });
    assert_eq!(without, "roomId");
    assert!(error.to_string().starts_with("withdraw, when a command has no roomId: no read"));
}
