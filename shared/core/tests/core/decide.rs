//! The decide loop against a log that lags and conflicts.

use std::{collections::VecDeque, future::ready, sync::Mutex};

use futures::{FutureExt, StreamExt, executor::block_on, future::BoxFuture, stream::BoxStream};
use ringfence_core::{
    ATTEMPTS_MAX, Append, Appended, CommandRecord, Conflict, Consistency, Decisions, Envelope,
    EventLog, EventRef, HandleError, Handled, LogError, MemoryLog, Metadata, NewEvent, Outcome,
    Plan, Read, Seen, SequencedEvent, Slice, StoreError, events, handle, prelude::*,
    storable::event_bytes,
};

use crate::shop::{Cleaned, Opened, RoomId, book, booked, catalog, cleaned, closed};

/// The events that a lagging read does not show yet.
pub(crate) type Hidden = fn(&SequencedEvent) -> bool;

/// A memory log whose next reads miss events. Other writers append before its next appends and looks.
pub(crate) struct Faulty {
    pub(crate) log: MemoryLog,
    /// The events that the next reads miss.
    lags: Mutex<VecDeque<Hidden>>,
    /// Events of other writers, one just before each append and each look.
    intruders: Mutex<VecDeque<NewEvent>>,
    /// Whether no time is left for a further attempt.
    is_late: bool,
    calls: Mutex<Vec<String>>,
}

impl Faulty {
    pub(crate) fn new(given: impl IntoIterator<Item = NewEvent>) -> Self {
        let log = MemoryLog::new(catalog().unwrap());
        given.into_iter().for_each(|event| append(&log, event));
        let (lags, intruders, calls) = (Mutex::default(), Mutex::default(), Mutex::default());
        Self { log, lags, intruders, is_late: false, calls }
    }

    /// Makes the next reads miss these events.
    pub(crate) fn lagging<const N: usize>(self, hidden: [Hidden; N]) -> Self {
        self.lags.lock().unwrap().extend(hidden);
        self
    }

    /// Makes others append these events, one before each append and each look.
    pub(crate) fn meeting(self, intruders: impl IntoIterator<Item = NewEvent>) -> Self {
        self.intruders.lock().unwrap().extend(intruders);
        self
    }

    fn intrude(&self) {
        if let Some(intruder) = self.intruders.lock().unwrap().pop_front() {
            append(&self.log, intruder);
        }
    }

    fn note(&self, call: &str) {
        self.calls.lock().unwrap().push(call.to_owned());
    }

    /// The calls since the last call. `read` is eventually consistent. A strong read names its boundaries and, for a
    /// tail, the slot after which it begins.
    pub(crate) fn calls(&self) -> String {
        std::mem::take(&mut *self.calls.lock().unwrap()).join(" ")
    }
}

pub(crate) fn append(log: &MemoryLog, event: NewEvent) {
    let envelope = Envelope::default();
    let append = Append { events: vec![event], seen: None, record: None, envelope: &envelope };
    log.append(append).now_or_never().unwrap().unwrap();
}

impl EventLog for Faulty {
    fn read<'a>(
        &'a self,
        plan: &'a Plan,
        consistency: Consistency,
        envelope: &'a Envelope,
    ) -> BoxStream<'a, Result<SequencedEvent, LogError>> {
        let boundary = |Read { boundary, after, .. }: &Read| match after {
            0 => boundary.to_string(),
            after => format!("{boundary} after {after}"),
        };
        let boundaries: Vec<_> = plan.reads.iter().map(boundary).collect();
        match consistency {
            Consistency::Eventual => self.note("read"),
            Consistency::Strong => self.note(&format!("read!({})", boundaries.join(", "))),
        }
        let hidden = self.lags.lock().unwrap().pop_front().unwrap_or(|_| false);
        let read = self.log.read(plan, consistency, envelope);
        read.filter(move |event| ready(!event.as_ref().is_ok_and(hidden))).boxed()
    }

    fn append<'a>(&'a self, new: Append<'a>) -> BoxFuture<'a, Result<Appended, LogError>> {
        self.note("append");
        self.intrude();
        self.log.append(new)
    }

    fn verify<'a>(
        &'a self,
        seen: &'a Seen,
        envelope: &'a Envelope,
    ) -> BoxFuture<'a, Result<Option<Conflict>, LogError>> {
        self.note("verify");
        self.intrude();
        self.log.verify(seen, envelope)
    }

    fn recorded<'a>(
        &'a self,
        record: &'a CommandRecord,
        envelope: &'a Envelope,
    ) -> BoxFuture<'a, Result<Option<Vec<EventRef>>, LogError>> {
        self.note("recorded");
        self.log.recorded(record, envelope)
    }

    fn pause<'a>(&'a self, _: u32, _: &'a Envelope) -> BoxFuture<'a, bool> {
        self.note("pause");
        ready(!self.is_late).boxed()
    }
}

pub(crate) fn run<S: Slice>(
    log: &Faulty,
    command: &S,
    key: Option<&str>,
) -> Result<Handled, HandleError> {
    run_warm(log, command, key, &Decisions::new(0))
}

pub(crate) fn run_warm<S: Slice>(
    log: &Faulty,
    command: &S,
    key: Option<&str>,
    decisions: &Decisions<S>,
) -> Result<Handled, HandleError> {
    let envelope = Envelope { idempotency_key: key.map(str::to_owned), ..Envelope::default() };
    block_on(handle(log, &catalog().unwrap(), decisions, command, &envelope))
}

pub(crate) fn code(handled: &Handled) -> &str {
    match &handled.outcome {
        Outcome::Accepted(events) if events.is_empty() => "nothing",
        Outcome::Accepted(_) => "accepted",
        Outcome::Rejected { rejected, .. } => rejected.rejection["code"].as_str().unwrap(),
    }
}

/// Books room r1 for guest g1, and checks the outcome, the attempts and the calls.
#[track_caller]
fn check_booking(log: &Faulty, expected: (&str, u32), calls: &str) {
    let handled = run(log, &book("r1", "g1"), None).unwrap();
    assert_eq!((code(&handled), handled.attempts), expected);
    assert_eq!(log.calls(), calls);
}

pub(crate) const ALL: Hidden = |_| true;

pub(crate) fn is_of_r1(event: &SequencedEvent) -> bool {
    event.partition.as_str() == "roomId:r1"
}

#[test]
fn the_slice_in_the_metadata_costs_five_bytes_and_the_name() {
    let log = Faulty::new([]);
    run(&log, &book("r1", "g1"), None).unwrap();
    let event = log.log.events().remove(0);
    let metadata = serde_json::to_value(&event.metadata).unwrap();
    assert_eq!(metadata, serde_json::json!({ "slice": "book" }));
    let bare = SequencedEvent { metadata: Metadata::default(), ..event.clone() };
    let catalog = catalog().unwrap();
    let new = catalog.current(&event).unwrap().into();
    let filing = catalog.filing_of_new(&new).unwrap();
    let [bytes, bare] = [event, bare].map(|event| event_bytes(&event, &filing));
    assert_eq!(bytes - bare, "slice".len() + "book".len());
}

#[test]
fn a_stale_read_costs_a_retry_and_no_wrong_write() {
    let log = Faulty::new(events![booked("r1", "g2")]).lagging([ALL]);
    check_booking(&log, ("Taken", 2), "read append pause read!(roomId:r1) verify");
}

#[test]
fn if_only_a_partition_changed_its_tail_is_read_and_folded_on_top() {
    let given = || events![cleaned("r1", 1), booked("r2", "g1")];
    let log = Faulty::new(given()).meeting(events![booked("r1", "g2")]);
    check_booking(&log, ("Taken", 2), "read append pause read!(roomId:r1 after 1) verify");
    // An event that does not concern the decision does not change it.
    let log = Faulty::new(given()).meeting(events![cleaned("r1", 2), cleaned("r1", 3)]);
    let calls = "read append pause read!(roomId:r1 after 1) append pause \
                 read!(roomId:r1 after 2) append";
    check_booking(&log, ("accepted", 3), calls);
    assert_eq!(log.log.events().last().unwrap().id(), "roomId:r1/4");
}

#[test]
fn a_missed_event_before_a_folded_one_makes_a_full_read() {
    let given = events![booked("r1", "g2"), booked("r2", "g1")];
    let log = Faulty::new(given).lagging([is_of_r1]);
    let calls = "read append pause read!(roomId:r1) read!(guestId:g1, roomId:r1) verify";
    check_booking(&log, ("Taken", 2), calls);
    // An event that is not folded can be missed anywhere.
    let given = events![cleaned("r1", 1), booked("r2", "g1")];
    let log = Faulty::new(given).lagging([is_of_r1]);
    check_booking(&log, ("accepted", 2), "read append pause read!(roomId:r1) append");
}

#[test]
fn a_changed_fence_makes_a_full_read() {
    let log = Faulty::new(events![booked("r2", "g1")]).meeting(events![booked("r3", "g1")]);
    check_booking(&log, ("TwoRooms", 2), "read append pause read!(guestId:g1, roomId:r1) verify");
    // The same holds if a partition changed as well.
    let log = Faulty::new([]).meeting(events![booked("r1", "g1")]);
    check_booking(&log, ("nothing", 2), "read append pause read!(guestId:g1, roomId:r1) verify");
    // The conflicts of all attempts are reported.
    let log = Faulty::new(events![booked("r2", "g1")])
        .meeting(events![booked("r3", "g1"), cleaned("r1", 1)]);
    let handled = run(&log, &book("r1", "g1"), None).unwrap();
    let conflicts: Vec<_> = handled.conflicts.iter().map(ToString::to_string).collect();
    assert_eq!(
        (code(&handled), conflicts),
        ("TwoRooms", vec!["guestId:g1".into(), "roomId:r1".into()])
    );
}

#[test]
fn an_index_that_lags_behind_its_fence_is_read_again_and_not_decided_on() {
    let given = events![booked("r2", "g1"), booked("r3", "g1")];
    let log = Faulty::new(given).lagging([ALL; 3]);
    let read = "pause read!(guestId:g1, roomId:r1)";
    check_booking(&log, ("TwoRooms", 4), &format!("read append {read} {read} {read} verify"));
}

#[test]
fn an_answer_without_events_is_returned_if_a_look_shows_nothing_new() {
    let log = Faulty::new(events![booked("r1", "g2")]).meeting(events![cleaned("r1", 1)]);
    let calls = "read verify pause read!(roomId:r1 after 1) verify";
    check_booking(&log, ("Taken", 2), calls);
    // The events that the answer depends on are gone, so it is not returned.
    let log = Faulty::new(events![booked("r1", "g1"), booked("r2", "g1")])
        .lagging([|event: &SequencedEvent| event.slot == 1 && !is_of_r1(event)]);
    check_booking(&log, ("nothing", 2), "read verify pause read!(guestId:g1, roomId:r1) verify");
}

#[test]
fn a_command_that_always_loses_or_has_no_time_gives_up_and_names_the_changes() {
    let contention = |log: &Faulty, expected: u32| {
        let error = run(log, &book("r1", "g1"), None).unwrap_err();
        let HandleError::Log(LogError::Store(StoreError::Contention { attempts, over })) = error
        else {
            panic!("{error:?}");
        };
        assert_eq!(attempts, expected);
        assert!(
            log.log.events().iter().all(|event| event.event_type != "Booked" || !is_of_r1(event))
        );
        over.unwrap().downcast::<Conflict>().unwrap().to_string()
    };
    let log = Faulty::new([]).meeting((1..9).map(|shift| cleaned("r1", shift).into()));
    let expected = "roomId:r1 has Cleaned in slot 8, which was free";
    assert_eq!(contention(&log, ATTEMPTS_MAX), expected);
    // The index never shows what its fence counts.
    let log = Faulty::new(events![booked("r2", "g1")]).lagging([ALL; 9]);
    assert_eq!(contention(&log, ATTEMPTS_MAX), "guestId:g1 holds 1 Booked, seen 0");
    let log = Faulty::new([]).meeting(events![cleaned("r1", 1)]);
    let log = Faulty { is_late: true, ..log };
    assert_eq!(contention(&log, 1), "roomId:r1 has Cleaned in slot 1, which was free");
}

/// Notes that a room was cleaned, as often as the command says.
#[derive(Clone, Debug, PartialEq, Command)]
pub(crate) struct Note {
    #[tag(partition)]
    pub(crate) room_id: RoomId,
}

/// Opens a house unless the room is closed. It reads the room and does not write to it.
#[derive(Clone, Debug, PartialEq, Command)]
pub(crate) struct Invite {
    pub(crate) room_id: RoomId,
}

#[derive(Reads)]
pub(crate) enum Cleanings {
    Cleaned,
}

#[derive(Reads)]
pub(crate) enum Closings {
    Closed,
}

#[derive(Clone, Debug, PartialEq, serde::Serialize, thiserror::Error)]
#[serde(tag = "code")]
pub(crate) enum Rejection {
    #[error("closed")]
    Closed,
}

/// A slice whose state is the number of events.
macro_rules! slice {
    ($command:ident reads $reads:ident, writes $writes:ty, decides $decide:expr) => {
        impl Slice for $command {
            const NAME: &'static str = stringify!($command);
            type Context = crate::shop::Rooms;
            type State = crate::shop::Count<$reads>;
            type Writes = $writes;
            type Rejection = Rejection;

            fn decide(
                &self,
                n: &Self::State,
                _: &CommandContext,
            ) -> Result<Vec<$writes>, Rejection> {
                $decide(self, n.0)
            }
        }
    };
}

slice!(Note reads Cleanings, writes Cleaned, decides |it: &Note, n| {
    Ok(vec![cleaned(&it.room_id.to_string(), n + 1)])
});

slice!(Invite reads Closings, writes Opened, decides |_: &Invite, n| match n {
    0 => Ok(vec![Opened { name: "house".to_owned() }]),
    _ => Err(Rejection::Closed),
});

#[test]
fn a_warm_handler_appends_without_reading() {
    let (log, decisions) = (Faulty::new([]), Decisions::new(10));
    let note = |expected: (u64, u32), calls: &str| {
        let handled = run_warm(&log, &Note { room_id: id("r1") }, None, &decisions).unwrap();
        let Outcome::Accepted(events) = handled.outcome else { panic!("{:?}", handled.outcome) };
        assert_eq!((events[0].slot, handled.attempts), expected);
        assert_eq!(log.calls(), calls);
        assert_eq!(log.log.events().last().unwrap().data["shiftId"], log.log.events().len());
    };
    note((1, 1), "read append");
    note((2, 1), "append");
    note((3, 1), "append");
    // Another handler's append is read after the cached model.
    append(&log.log, cleaned("r1", 4).into());
    note((5, 2), "append pause read!(roomId:r1 after 3) append");
    note((6, 1), "append");
}

#[test]
fn a_warm_handler_needs_no_read_for_a_key_of_another_slice() {
    let (log, decisions) = (Faulty::new([]), Decisions::new(10));
    run(&log, &book("r1", "g1"), Some("k")).unwrap();
    log.calls();
    for (key, calls) in [(None, "read append"), (Some("k"), "append"), (Some("k"), "read verify")] {
        run_warm(&log, &Note { room_id: id("r1") }, key, &decisions).unwrap();
        assert_eq!(log.calls(), calls, "{key:?}");
    }
}

#[test]
fn a_warm_answer_without_events_needs_a_look_and_no_read() {
    let (log, decisions) = (Faulty::new([]), Decisions::new(10));
    let booking = |expected: &str, calls: &str| {
        let handled = run_warm(&log, &book("r1", "g1"), None, &decisions).unwrap();
        assert_eq!((code(&handled), log.calls().as_str()), (expected, calls));
    };
    booking("accepted", "read append");
    booking("nothing", "verify");
    append(&log.log, booked("r2", "g1").into());
    booking("nothing", "verify pause read!(guestId:g1, roomId:r1) verify");
    booking("nothing", "verify");
}

#[test]
fn only_fenced_types_change_a_partition_that_is_read_only_by_them() {
    let invite = |log: &Faulty, expected: (&str, u32), calls: &str| {
        let handled = run(log, &Invite { room_id: id("r1") }, None).unwrap();
        assert_eq!((code(&handled), handled.attempts), expected);
        assert_eq!(log.calls(), calls);
    };
    let log = Faulty::new(events![cleaned("r1", 1)]).meeting(events![cleaned("r1", 2)]);
    invite(&log, ("accepted", 1), "read append");
    let log = Faulty::new(events![cleaned("r1", 1)]).meeting(events![closed("r1")]);
    invite(&log, ("Closed", 2), "read append pause read!(roomId:r1 after 1)");
    // It is not decided on a lagging read.
    let log = Faulty::new(events![closed("r1")]).lagging([ALL]).meeting(events![cleaned("r1", 2)]);
    invite(&log, ("Closed", 2), "read append pause read!(roomId:r1)");
    // An event beyond a gap is not folded, and the event in the gap is not skipped.
    let log = Faulty::new(events![closed("r1"), closed("r1")])
        .lagging([|event: &SequencedEvent| event.slot == 1]);
    invite(&log, ("Closed", 2), "read append pause read!(roomId:r1)");
}
