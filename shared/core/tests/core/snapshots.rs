//! Snapshots: a decision on a stored state and the events after it equals the decision on all events.

use std::sync::Mutex;

use futures::{FutureExt, StreamExt, executor::block_on, future::BoxFuture, stream::BoxStream};
use ringfence_core::{
    Append, Appended, CommandRecord, Conflict, Consistency, Decisions, Envelope, EventLog,
    EventRef, Handled, KEY_KEPT_SECONDS, LogError, MemoryLog, NewEvent, Outcome, Plan, Query,
    QueryItem, Seen, SequencedEvent, Snapshots, Tag, events, handle, prelude::*,
};
use serde_json::{Value, json};

use crate::decide::append;
use crate::shop::{Cleaned, GuestId, RoomId, Rooms, booked, catalog, cleaned, closed};

/// Notes in a room which events it has read of the room and of a guest.
#[derive(Clone, Debug, PartialEq, Command)]
struct Survey {
    #[tag(partition)]
    room_id: RoomId,
    #[tag(cross_partition)]
    guest_id: GuestId,
}

#[derive(Reads)]
enum Consumed {
    Booked { room_id: RoomId, guest_id: GuestId },
    Cleaned { shift_id: Option<u32> },
}

/// The events that were read, in fold order.
#[ringfence::value]
#[derive(Default)]
struct Known(Vec<String>);

impl State for Known {
    const SNAPSHOTS: Option<Snapshots<Self>> = Some(Snapshots::every(1));
    type Reads = Consumed;

    fn evolve(mut self, event: Consumed) -> Self {
        self.0.push(match event {
            Consumed::Booked { room_id, guest_id } => format!("{room_id} by {guest_id}"),
            Consumed::Cleaned { shift_id } => format!("{shift_id:?}"),
        });
        self
    }
}

impl Slice for Survey {
    const NAME: &'static str = "survey";
    type Context = Rooms;
    type State = Known;
    type Writes = Cleaned;
    type Rejection = Never;

    fn decide(&self, Known(known): &Known, _: &CommandContext) -> Result<Vec<Cleaned>, Never> {
        let room_id = self.room_id.clone();
        Ok(vec![Cleaned { room_id, helper_ids: known.clone(), shift_id: None }])
    }

    // Cleanings belong only to the room.
    fn query(_: &[ringfence_core::TagSchema], tags: Vec<Tag>, _: &Catalog) -> Query {
        let of = |tag: &Tag, types: &[&'static str]| QueryItem {
            tags: vec![tag.clone()],
            types: types.iter().map(|name| (*name).into()).collect(),
        };
        Query { items: vec![of(&tags[0], &["Booked", "Cleaned"]), of(&tags[1], &["Booked"])] }
    }
}

/// Changes the text of a snapshot on its way to a reader.
type Tamper = fn(&str) -> Option<String>;

/// A log in memory that counts the events of its reads, and tampers with snapshots.
struct Watched {
    log: MemoryLog,
    tamper: Tamper,
    read: Mutex<usize>,
    kept: Mutex<Vec<String>>,
}

impl Watched {
    fn new(given: impl IntoIterator<Item = NewEvent>) -> Self {
        let log = MemoryLog::new(catalog().unwrap());
        given.into_iter().for_each(|event| append(&log, event));
        let tamper: Tamper = |text| Some(text.to_owned());
        Self { log, tamper, read: Mutex::default(), kept: Mutex::default() }
    }

    /// Surveys room r1 and guest g1. Returns how many events that read, and how often it decided.
    #[track_caller]
    fn survey(&self, decisions: &Decisions<Survey>) -> (usize, u32) {
        let expected = self.known();
        let command = Survey { room_id: id("r1"), guest_id: id("g1") };
        let (catalog, envelope) = (catalog().unwrap(), Envelope::default());
        let handled = handle(self, &catalog, decisions, &command, &envelope);
        let Handled { outcome, attempts, .. } = block_on(handled).unwrap();
        let Outcome::Accepted(events) = outcome else { panic!("{outcome:?}") };
        let noted = self.log.events().into_iter().find(|event| events == [event.into()]);
        let noted = noted.unwrap().data["helperIds"].clone();
        assert_eq!(noted, json!(expected));
        (std::mem::take(&mut *self.read.lock().unwrap()), attempts)
    }

    /// The events that a survey must know, in fold order.
    fn known(&self) -> Vec<String> {
        let is_of = |event: &SequencedEvent, key, value: &str| {
            event.tags.contains(&Tag::new(key, value.to_owned()))
        };
        let name = |event: SequencedEvent| match &*event.event_type {
            "Booked" if is_of(&event, "roomId", "r1") || is_of(&event, "guestId", "g1") => {
                let text = |field: &str| event.data[field].as_str().unwrap().to_owned();
                Some(format!("{} by {}", text("roomId"), text("guestId")))
            }
            "Cleaned" if is_of(&event, "roomId", "r1") => {
                Some(format!("{:?}", event.data["shiftId"].as_u64()))
            }
            _ => None,
        };
        self.log.events().into_iter().filter_map(name).collect()
    }
}

impl EventLog for Watched {
    fn read<'a>(
        &'a self,
        plan: &'a Plan,
        consistency: Consistency,
        envelope: &'a Envelope,
    ) -> BoxStream<'a, Result<SequencedEvent, LogError>> {
        let read = self.log.read(plan, consistency, envelope);
        read.inspect(|_| *self.read.lock().unwrap() += 1).boxed()
    }

    fn append<'a>(&'a self, append: Append<'a>) -> BoxFuture<'a, Result<Appended, LogError>> {
        self.log.append(append)
    }

    fn verify<'a>(
        &'a self,
        seen: &'a Seen,
        envelope: &'a Envelope,
    ) -> BoxFuture<'a, Result<Option<Conflict>, LogError>> {
        self.log.verify(seen, envelope)
    }

    fn recorded<'a>(
        &'a self,
        record: &'a CommandRecord,
        envelope: &'a Envelope,
    ) -> BoxFuture<'a, Result<Option<Vec<EventRef>>, LogError>> {
        self.log.recorded(record, envelope)
    }

    fn snapshot<'a>(
        &'a self,
        id: &'a str,
        envelope: &'a Envelope,
    ) -> BoxFuture<'a, Result<Option<String>, LogError>> {
        let kept = self.log.snapshot(id, envelope);
        kept.map(|text| Ok(text?.as_deref().and_then(self.tamper))).boxed()
    }

    fn keep_snapshot(&self, id: String, snapshot: String) {
        self.kept.lock().unwrap().push(snapshot.clone());
        self.log.keep_snapshot(id, snapshot);
    }

    fn pause<'a>(&'a self, attempt: u32, envelope: &'a Envelope) -> BoxFuture<'a, bool> {
        self.log.pause(attempt, envelope)
    }
}

fn cold() -> Decisions<Survey> {
    Decisions::new(0)
}

/// Four events of room r1 and two of guest g1.
fn given() -> Vec<NewEvent> {
    let [shift, other] = [1, 2].map(|shift| cleaned("r1", shift));
    events![shift, booked("r1", "g1"), booked("r2", "g1"), booked("r1", "g2"), other]
}

#[test]
fn a_cold_handler_reads_the_last_event_of_each_boundary_and_later_events() {
    let log = Watched::new(given());
    assert_eq!(log.survey(&cold()), (5, 1));
    // The snapshot has the events of the command too. Only the last events of the room and of the guest are read.
    assert_eq!(log.survey(&cold()), (2, 1));
    // One event after a snapshot is not enough for the next one.
    assert_eq!(log.kept.lock().unwrap().len(), 1);
    append(&log.log, booked("r3", "g1").into());
    append(&log.log, booked("r1", "g3").into());
    assert_eq!(log.survey(&cold()), (2 + 3, 1));
    assert_eq!(log.kept.lock().unwrap().len(), 2);
    assert_eq!(log.survey(&cold()), (2, 1));
}

#[test]
fn a_warm_handler_keeps_snapshots_that_include_its_appends() {
    let (log, warm) = (Watched::new([]), Decisions::new(1));
    for kept in [0, 1, 1, 2, 2, 3] {
        log.survey(&warm);
        assert_eq!(log.kept.lock().unwrap().len(), kept);
    }
}

/// An event of a writer whose clock is thirty days ahead.
fn append_far_ahead(log: &MemoryLog, event: NewEvent) {
    let context = CommandContext { now_ms: 30 * 24 * 3_600_000, ..CommandContext::default() };
    let envelope = &Envelope { context, ..Envelope::default() };
    let append = Append { events: vec![event], seen: None, record: None, envelope };
    block_on(log.append(append)).unwrap();
}

/// Tries every order of other writers' events, one of them far ahead of the clocks, and of commands of cold and warm
/// handlers.
#[test]
fn a_command_knows_all_events_in_their_order_with_every_snapshot() {
    const STEPS: u32 = 3;
    for n in 0..8_u32.pow(STEPS) {
        let (log, warm) = (Watched::new([]), Decisions::new(1));
        for step in 0..STEPS {
            match n / 8_u32.pow(step) % 8 {
                0 => append(&log.log, booked("r1", "g1").into()),
                1 => append(&log.log, booked("r1", "g2").into()),
                2 => append(&log.log, booked("r2", "g1").into()),
                3 => append(&log.log, cleaned("r1", step).into()),
                4 => append(&log.log, cleaned("r2", step).into()),
                5 => drop(log.survey(&warm)),
                6 => append_far_ahead(&log.log, booked("r2", "g1").into()),
                _ => assert_eq!(log.survey(&cold()).1, 1, "{n}"),
            }
        }
        assert_eq!(log.survey(&cold()).1, 1, "{n}");
    }
}

#[test]
fn a_repeat_of_a_command_whose_events_a_snapshot_holds_takes_no_effect() {
    let log = Watched::new(given());
    let run = |key: &str, now_ms| {
        let context = CommandContext { now_ms, ..CommandContext::default() };
        let idempotency_key = Some(key.to_owned());
        let envelope = Envelope { context, idempotency_key, ..Envelope::default() };
        let command = Survey { room_id: id("r1"), guest_id: id("g1") };
        block_on(handle(&log, &catalog().unwrap(), &cold(), &command, &envelope)).unwrap()
    };
    let first = run("k", 1_000);
    assert_eq!(log.kept.lock().unwrap().len(), 1);
    // A handler whose clock is ahead keeps the next one.
    let [other, _] = ["l", "m"].map(|key| run(key, 2 * KEY_KEPT_SECONDS * 1_000));
    assert!(!other.repeated && other.outcome != first.outcome);
    assert_eq!(log.kept.lock().unwrap().len(), 2);
    assert_eq!(run("k", 3_000), Handled { repeated: true, written: vec![], ..first });
    assert_eq!(run("l", 3_000), Handled { repeated: true, written: vec![], ..other });
}

/// Applies `change` to the snapshot's guest.
fn of_guest(text: &str, change: impl FnOnce(&mut Value)) -> Option<String> {
    let mut snapshot: Value = serde_json::from_str(text).unwrap();
    change(snapshot.pointer_mut("/seen/boundaries/guestId:g1/Fence").unwrap());
    Some(snapshot.to_string())
}

#[test]
fn a_wrong_snapshot_costs_a_full_read_and_is_replaced() {
    let all = 6;
    let cases: [(&str, Tamper, (usize, u32)); 5] = [
        ("lost", |_| None, (all, 1)),
        ("no snapshot", |_| Some("[".to_owned()), (all, 1)),
        ("another state", |text| Some(text.replace("\"state\":[", "\"state\":[7,")), (all, 1)),
        // The last event of the snapshot is missing in the log, as after a restore.
        (
            "ahead of the log",
            |text| of_guest(text, |guest| guest["at"] = json!(1_000)),
            (1 + all, 1),
        ),
        // It counts one event less than it has, so the append finds one that seems new.
        ("torn", |text| of_guest(text, |guest| guest["counts"]["Booked"] = json!(1)), (2 + all, 2)),
    ];
    for (name, tamper, expected) in cases {
        let mut log = Watched::new(given());
        log.survey(&cold());
        log.tamper = tamper;
        assert_eq!(log.survey(&cold()), expected, "{name}");
        log.tamper = |text| Some(text.to_owned());
        assert_eq!(log.survey(&cold()), (2, 1), "{name}");
    }
}

/// The catalog of a version of the program that does not have the type.
fn without(event_type: &str) -> Catalog {
    let all = catalog().unwrap();
    let schemas = all.schemas().filter(|schema| schema.name != event_type).cloned();
    Catalog::new("rooms", schemas).unwrap()
}

/// An event of the slice's context whose type the slice does not read and only a newer version declares.
#[test]
fn a_decision_fails_at_an_event_of_its_context_with_an_unknown_type() {
    let (new, old) = (catalog().unwrap(), without("Closed"));
    let survey = |log: &Watched, decisions: &Decisions<Survey>, catalog: &Catalog| {
        let command = Survey { room_id: id("r1"), guest_id: id("g1") };
        let envelope = Envelope::default();
        let handled = block_on(handle(log, catalog, decisions, &command, &envelope));
        handled.map(|handled| handled.attempts).map_err(|error| error.to_string())
    };
    let unknown = |slot: u64| {
        let event = format!("event roomId:r1/{slot} is of the type Closed");
        Err(format!("{event}, which the catalog of rooms does not have"))
    };
    // A cold handler, and a warm one that meets it in a conflict.
    let log = Watched::new(events![cleaned("r1", 1)]);
    let warm = Decisions::new(1);
    assert_eq!(survey(&log, &warm, &old), Ok(1));
    append(&log.log, closed("r1").into());
    assert_eq!(survey(&log, &warm, &old), unknown(3));
    assert_eq!(survey(&log, &cold(), &old), unknown(3));
    let before = log.log.events().len();
    assert_eq!(survey(&log, &cold(), &new), Ok(1));
    assert_eq!(log.log.events().len(), before + 1);
    // The newer version stores snapshots with the event, and the older one does not use them.
    assert_eq!(survey(&log, &cold(), &new), Ok(1));
    assert!(!log.kept.lock().unwrap().is_empty());
    assert_eq!(survey(&log, &cold(), &old), unknown(3));
    // Such an event in an unread room or of another context does not concern the decision.
    let log = Watched::new(events![closed("r2"), booked("r2", "g1")]);
    assert_eq!(survey(&log, &cold(), &old), Ok(1));
    append(&log.log, closed("r1").into());
    let mut events = log.log.events();
    for event in &mut events {
        event.context = if event.event_type == "Closed" { "doors" } else { "rooms" }.to_owned();
    }
    let shared = Watched { log: MemoryLog::of(new, events).unwrap(), ..Watched::new([]) };
    assert_eq!(survey(&shared, &cold(), &old), Ok(1));
}
