//! A command with an idempotency key takes effect once. Its events or an item are the record.

use futures::executor::block_on;
use ringfence_core::{
    Decisions, Envelope, EventRef, HandleError, Handled, KEY_KEPT_SECONDS, LogError, Outcome,
    SequencedEvent, Slice, events_are_record, handle, kit::check_in_memory, prelude::*,
    reaction_key,
};

use crate::decide::{ALL, Faulty, Invite, Note, append, code, run, run_warm};
use crate::shop::{
    Book, Cleaned, Closed, Count, Priced, Rated, RoomId, Rooms, book, booked, catalog, cleaned,
    closed,
};

/// The ids of the command's events, and whether it is a repeat.
fn ids(handled: &Handled) -> (Vec<String>, bool) {
    let Outcome::Accepted(events) = &handled.outcome else { panic!("{handled:?}") };
    let id = |event: &EventRef| format!("{}/{}", event.partition, event.slot);
    (events.iter().map(id).collect(), handled.repeated)
}

/// The result of [`ids`] for events of these rooms and slots.
fn at(rooms: &[(&str, u64)], repeated: bool) -> (Vec<String>, bool) {
    (rooms.iter().map(|(room, slot)| format!("roomId:{room}/{slot}")).collect(), repeated)
}

fn note(log: &Faulty, key: Option<&str>, decisions: &Decisions<Note>) -> (Vec<String>, bool) {
    ids(&run_warm(log, &Note { room_id: id("r1") }, key, decisions).unwrap())
}

#[test]
fn a_repeat_gets_the_events_of_the_first_run_despite_later_events() {
    let (log, cold) = (Faulty::new([]), || Decisions::new(0));
    assert_eq!(note(&log, Some("k"), &cold()), at(&[("r1", 1)], false));
    append(&log.log, cleaned("r1", 2).into());
    let _ = log.calls();
    assert_eq!(note(&log, Some("k"), &cold()), at(&[("r1", 1)], true));
    assert_eq!(log.calls(), "read verify");
    assert_eq!(note(&log, Some("other"), &cold()), at(&[("r1", 3)], false));
    assert_eq!(log.log.events().len(), 3);
}

#[test]
fn a_command_that_appended_nothing_is_decided_again() {
    let log = Faulty::new(events![booked("r1", "g2")]);
    for _ in 0..2 {
        let rejected = run(&log, &book("r1", "g1"), Some("k")).unwrap();
        assert_eq!((code(&rejected), rejected.repeated), ("Taken", false));
    }
    let nothing = run(&log, &book("r1", "g2"), Some("k2")).unwrap();
    assert_eq!((code(&nothing), nothing.repeated), ("nothing", false));
    assert_eq!(log.log.events().len(), 1);
}

#[test]
fn another_command_under_the_key_is_refused_if_it_reads_the_events_of_the_first() {
    let log = Faulty::new([]);
    run(&log, &book("r1", "g1"), Some("k")).unwrap();
    let reused = run(&log, &book("r1", "g2"), Some("k")).unwrap_err();
    assert!(matches!(reused, HandleError::Log(LogError::KeyReused(_))), "{reused:?}");
    // A command of another slice is a different command. A command about another partition is different too, even if
    // the decision reads the first one's event by another tag.
    assert_eq!(note(&log, Some("k"), &Decisions::new(0)), at(&[("r1", 2)], false));
    let other = run(&log, &book("r2", "g1"), Some("k")).unwrap();
    assert_eq!((code(&other), other.repeated), ("accepted", false));
}

#[test]
fn a_stale_read_does_not_let_a_repeat_take_effect() {
    let log = Faulty::new([]).lagging([|_| false, ALL, ALL]);
    let handled = || run(&log, &Note { room_id: id("r1") }, Some("k")).unwrap();
    assert_eq!(ids(&handled()), at(&[("r1", 1)], false));
    let _ = log.calls();
    // It is found in the tail, or the slot that it took refuses the append again.
    assert_eq!(ids(&handled()), at(&[("r1", 1)], true));
    let tail = "pause read!(roomId:r1)";
    assert_eq!(log.calls(), format!("read append {tail} append {tail}"));
}

#[test]
fn a_warm_handler_knows_the_keys_of_the_events_that_it_has_read() {
    let (log, decisions) = (Faulty::new([]), Decisions::new(10));
    let noted = |key, expected: (Vec<String>, bool), calls: &str| {
        assert_eq!(note(&log, key, &decisions), expected, "{key:?}");
        assert_eq!(log.calls(), calls, "{key:?}");
    };
    noted(Some("k1"), at(&[("r1", 1)], false), "read append");
    noted(Some("k2"), at(&[("r1", 2)], false), "append");
    noted(Some("k1"), at(&[("r1", 1)], true), "read verify");
    noted(Some("k2"), at(&[("r1", 2)], true), "read verify");
    // Another handler appends, and a command without the key reads that event.
    note(&log, Some("k3"), &Decisions::new(0));
    let _ = log.calls();
    noted(None, at(&[("r1", 4)], false), "append pause read!(roomId:r1 after 2) append");
    noted(Some("k3"), at(&[("r1", 3)], true), "read verify");
    noted(Some("k4"), at(&[("r1", 5)], false), "append");
    assert_eq!(log.log.events().len(), 5);
}

#[test]
fn a_warm_handler_whose_clock_is_ahead_forgets_no_key() {
    let (log, decisions) = (Faulty::new([]), Decisions::new(10));
    let noted = |(key, now_ms): (&str, u64)| {
        let context = CommandContext { now_ms, ..CommandContext::default() };
        let idempotency_key = Some(key.to_owned());
        let envelope = Envelope { context, idempotency_key, ..Envelope::default() };
        let (note, catalog) = (Note { room_id: id("r1") }, catalog().unwrap());
        block_on(handle(&log, &catalog, &decisions, &note, &envelope)).unwrap().repeated
    };
    let ahead_ms = 2 * KEY_KEPT_SECONDS * 1_000;
    let commands = [("k1", 1_000), ("k2", ahead_ms), ("k1", 3_000), ("k1", ahead_ms)];
    assert_eq!(commands.map(noted), [false, false, true, true]);
    // Its event moves the partition ahead, and the next command still finds the key.
    assert_eq!([("k3", 4_000), ("k1", 5_000)].map(noted), [false, true]);
}

#[test]
fn a_reaction_is_recognized_after_any_time_and_costs_a_read_only_if_it_may_be_forgotten() {
    const DAY_MS: u64 = 24 * 3_600 * 1_000;
    let (log, decisions) = (Faulty::new([]), Decisions::new(10));
    let noted = |key: &str, cause_day: Option<u64>, day: u64| {
        let now_ms = day * DAY_MS + 1_000;
        let envelope = Envelope {
            context: CommandContext { now_ms, ..CommandContext::default() },
            idempotency_key: Some(key.to_owned()),
            cause_ms: cause_day.map(|day| day * DAY_MS),
            ..Envelope::default()
        };
        let (note, catalog) = (Note { room_id: id("r1") }, catalog().unwrap());
        block_on(handle(&log, &catalog, &decisions, &note, &envelope)).unwrap().repeated
    };
    let key = |event: &str| reaction_key(event, "roomId:r1");
    assert!(!noted(&key("o/1"), Some(0), 0));
    for day in 1..=30 {
        assert!(!noted(&format!("k{day}"), None, day));
    }
    let _ = log.calls();
    assert!(!noted(&key("o/2"), Some(30), 31));
    assert_eq!(log.calls(), "append");
    assert!(noted(&key("o/1"), Some(0), 32));
    assert!(noted(&key("o/2"), Some(30), 33));
}

/// Cleans two rooms at once.
#[derive(Clone, Debug, PartialEq, Command)]
struct CleanBoth {
    #[tag(key = "roomId", partition)]
    first: RoomId,
    #[tag(key = "roomId", partition)]
    second: RoomId,
}

/// Cleans the room beside the named one, which the decision does not read.
#[derive(Clone, Debug, PartialEq, Command)]
struct CleanBeside {
    #[tag(partition)]
    room_id: RoomId,
}

/// Notes a cleaning of a room that it reads by a fence that does not count cleanings.
#[derive(Clone, Debug, PartialEq, Command)]
struct CleanUnlessClosed {
    #[tag(partition)]
    room_id: RoomId,
}

#[derive(Clone, Debug, PartialEq, Command)]
struct Close {
    #[tag(partition)]
    room_id: RoomId,
}

#[derive(Clone, Debug, PartialEq, Command)]
struct CleanSome {
    #[tag(skip)]
    guest_id: String,
    room_id: Option<RoomId>,
}

#[derive(Clone, Debug, PartialEq, Command)]
struct CleanAll {
    room_ids: Vec<RoomId>,
}

/// A review of a room, which is read as a composite.
#[derive(Clone, Debug, PartialEq, Command)]
struct Rate {
    #[tag(partition)]
    room_id: RoomId,
    review_id: String,
}

/// A price for a night: both are the partition.
#[derive(Clone, Debug, PartialEq, Command)]
struct SetPrice {
    #[tag(partition)]
    room_id: RoomId,
    #[tag(partition, key = "night")]
    night: String,
}

/// Reads the reviews of a room and not the room.
#[derive(Clone, Debug, PartialEq, Command)]
struct CleanByGuest {
    #[tag(skip)]
    room_id: RoomId,
    #[tag(cross_partition)]
    guest_id: String,
}

#[derive(Reads)]
enum Cleanings {
    Cleaned,
}

#[derive(Reads)]
enum Closings {
    Closed,
}

#[derive(Reads)]
enum Reviews {
    Rated,
}

#[derive(Reads)]
enum Prices {
    Priced,
}

#[derive(Reads)]
enum Bookings {
    Booked,
}

/// A slice whose state is the number of events.
macro_rules! slice {
    ($slice:ident reads $reads:ident, writes $writes:ident, decides $decide:expr) => {
        impl Slice for $slice {
            const NAME: &'static str = stringify!($slice);
            type Context = Rooms;
            type State = Count<$reads>;
            type Writes = $writes;
            type Rejection = Never;

            fn decide(&self, n: &Count<$reads>, _: &CommandContext) -> Result<Vec<$writes>, Never> {
                Ok($decide(self, n.0))
            }
        }
    };
}

slice!(CleanBoth reads Cleanings, writes Cleaned, decides |it: &CleanBoth, n| {
    let clean = |room: &RoomId| cleaned(&room.to_string(), n + 1);
    vec![clean(&it.first), clean(&it.second)]
});
slice!(CleanUnlessClosed reads Closings, writes Cleaned, decides |_: &_, _| vec![]);
slice!(Close reads Closings, writes Closed, decides |_: &_, _| vec![]);
slice!(CleanSome reads Cleanings, writes Cleaned, decides |_: &_, _| vec![]);
slice!(CleanAll reads Cleanings, writes Cleaned, decides |_: &_, _| vec![]);
slice!(Rate reads Reviews, writes Rated, decides |_: &_, _| vec![]);
slice!(SetPrice reads Prices, writes Priced, decides |_: &_, _| vec![]);
slice!(CleanByGuest reads Bookings, writes Cleaned, decides |_: &_, _| vec![]);

impl Slice for CleanBeside {
    const NAME: &'static str = "clean-beside";
    type Context = Rooms;
    type State = Count<Cleanings>;
    type Writes = Cleaned;
    type Rejection = Never;

    fn decide(&self, _: &Count<Cleanings>, _: &CommandContext) -> Result<Vec<Cleaned>, Never> {
        Ok(vec![cleaned(&format!("{}b", self.room_id), 1)])
    }

    fn cases() -> Vec<Case<Self>> {
        vec![given([]).when(CleanBeside { room_id: id("r1") }).then([cleaned("r1b", 1)])]
    }
}

#[test]
fn the_events_are_the_record_if_the_decision_reads_its_own_events() {
    fn is<S: Slice>() -> (&'static str, bool) {
        ringfence_core::check::<S>(&catalog().unwrap()).unwrap();
        (S::NAME, events_are_record::<S>(&catalog().unwrap()))
    }
    let found = [
        is::<Book>(),
        is::<Note>(),
        is::<SetPrice>(),
        is::<Close>(),
        is::<CleanBoth>(),
        // The partition has other tags than the command, or tags that some commands lack.
        is::<Invite>(),
        is::<CleanSome>(),
        is::<CleanAll>(),
        // The decision does not read it, or depends on a fence that does not count what it writes.
        is::<Rate>(),
        is::<CleanByGuest>(),
        is::<CleanUnlessClosed>(),
    ];
    let expected = [
        ("book", true),
        ("Note", true),
        ("SetPrice", true),
        ("Close", true),
        ("CleanBoth", true),
        ("Invite", false),
        ("CleanSome", false),
        ("CleanAll", false),
        ("Rate", false),
        ("CleanByGuest", false),
        ("CleanUnlessClosed", false),
    ];
    assert_eq!(found, expected);
}

#[test]
fn the_answer_to_a_repeat_has_all_events_even_if_a_read_shows_some() {
    let is_of_r2 = |event: &SequencedEvent| event.partition.as_str() == "roomId:r2";
    let log = Faulty::new([]).lagging([|_| false, is_of_r2]);
    let clean = || run(&log, &CleanBoth { first: id("r2"), second: id("r1") }, Some("k")).unwrap();
    let rooms = [("r2", 1), ("r1", 1)];
    assert_eq!(ids(&clean()), at(&rooms, false));
    let _ = log.calls();
    assert_eq!(ids(&clean()), at(&rooms, true));
    assert_eq!(
        log.calls(),
        "read verify pause read!(roomId:r2) read!(roomId:r1, roomId:r2) verify"
    );
}

#[test]
fn an_event_that_a_repeat_would_not_find_is_refused_with_a_key() {
    let log = Faulty::new([]);
    let clean = |key| run(&log, &CleanBeside { room_id: id("r1") }, key);
    let error = clean(Some("k")).unwrap_err().to_string();
    let expected = "clean-beside writes Cleaned to roomId:r1b, which it does not read, so a repeat under an \
                    idempotency key would not find it: give the command a tag that names the partition, or \
                    read it in `query`";
    assert_eq!(error, expected);
    assert!(log.log.events().is_empty());
    assert_eq!(ids(&clean(None).unwrap()), at(&[("r1b", 1)], false));
}

#[test]
#[should_panic(expected = "which it does not read")]
fn the_kit_finds_a_slice_whose_repeats_would_not_be_found() {
    check_in_memory::<CleanBeside>();
}

#[test]
fn an_item_is_the_record_if_the_events_are_not() {
    let log = Faulty::new([]);
    let invite = |key, expected: (&str, bool), calls: &str| {
        let handled = run(&log, &Invite { room_id: id("r1") }, Some(key)).unwrap();
        assert_eq!((code(&handled), handled.repeated), expected);
        assert_eq!(log.calls(), calls);
    };
    invite("k", ("accepted", false), "read append");
    invite("k", ("accepted", true), "read append");
    append(&log.log, closed("r1").into());
    // A command that is rejected leaves no record. A repeat of one that took effect is not rejected.
    invite("k", ("accepted", true), "read verify recorded");
    for _ in 0..2 {
        invite("k2", ("Closed", false), "read verify recorded");
    }
    assert_eq!(log.log.events().len(), 2);
}
