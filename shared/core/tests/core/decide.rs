//! The decide loop against a log that lags, conflicts and loses answers.

use std::sync::Mutex;

use futures::{FutureExt, StreamExt, executor::block_on, future::BoxFuture, stream::BoxStream};
use ringfence::{
    ATTEMPTS_MAX, Append, Appended, CommandRecord, Conflict, Consistency, Decisions, Envelope,
    EventLog, HandleError, Handled, LogError, MemoryLog, NewEvent, Outcome, Plan, Seen,
    SequencedEvent, Settled, StoreError, handle,
};

use crate::shop::{Book, book, booked, catalog};

/// A memory log whose next reads miss events. Others append to it just before the next appends.
pub(crate) struct Faulty {
    pub(crate) log: MemoryLog,
    /// How many of the next reads return nothing.
    stale_reads: Mutex<u32>,
    /// Appended by others just before the next appends of the log's user.
    intruders: Mutex<Vec<NewEvent>>,
    calls: Mutex<Vec<String>>,
}

impl Faulty {
    pub(crate) fn new(given: impl IntoIterator<Item = NewEvent>) -> Self {
        let log = MemoryLog::new(catalog().unwrap());
        given.into_iter().for_each(|event| append(&log, event));
        Self { log, stale_reads: 0.into(), intruders: Mutex::default(), calls: Mutex::default() }
    }

    fn note(&self, call: &str) {
        self.calls.lock().unwrap().push(call.to_owned());
    }

    pub(crate) fn calls(&self) -> String {
        std::mem::take(&mut *self.calls.lock().unwrap()).join(" ")
    }
}

fn append(log: &MemoryLog, event: NewEvent) {
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
        self.note(if consistency == Consistency::Strong { "read!" } else { "read" });
        let mut stale = self.stale_reads.lock().unwrap();
        if *stale > 0 {
            *stale -= 1;
            return futures::stream::empty().boxed();
        }
        self.log.read(plan, consistency, envelope)
    }

    fn append<'a>(&'a self, new: Append<'a>) -> BoxFuture<'a, Result<Appended, LogError>> {
        self.note("append");
        if let Some(intruder) = self.intruders.lock().unwrap().pop() {
            append(&self.log, intruder);
        }
        self.log.append(new)
    }

    fn verify<'a>(
        &'a self,
        seen: &'a Seen,
        envelope: &'a Envelope,
    ) -> BoxFuture<'a, Result<Option<Conflict>, LogError>> {
        self.note("verify");
        self.log.verify(seen, envelope)
    }

    fn settle<'a>(
        &'a self,
        record: &'a CommandRecord,
        outcome: &'a Outcome,
        envelope: &'a Envelope,
    ) -> BoxFuture<'a, Result<Settled, LogError>> {
        self.note("settle");
        self.log.settle(record, outcome, envelope)
    }

    fn pause<'a>(&'a self, _: u32, _: &'a Envelope) -> BoxFuture<'a, bool> {
        self.note("pause");
        futures::future::ready(true).boxed()
    }
}

fn run(log: &Faulty, command: &Book, key: Option<&str>) -> Result<Handled, HandleError> {
    run_warm(log, command, key, &Decisions::new(0))
}

fn run_warm(
    log: &Faulty,
    command: &Book,
    key: Option<&str>,
    decisions: &Decisions<Book>,
) -> Result<Handled, HandleError> {
    let envelope = Envelope { idempotency_key: key.map(str::to_owned), ..Envelope::default() };
    block_on(handle(log, &catalog().unwrap(), decisions, command, &envelope))
}

fn code(handled: &Handled) -> &str {
    match &handled.outcome {
        Outcome::Accepted(events) if events.is_empty() => "nothing",
        Outcome::Accepted(_) => "accepted",
        Outcome::Rejected { rejection, .. } => rejection["code"].as_str().unwrap(),
    }
}

#[test]
fn a_stale_read_costs_a_retry_and_no_wrong_write() {
    let log = Faulty::new([booked("r1", "g2").into()]);
    *log.stale_reads.lock().unwrap() = 1;
    let handled = run(&log, &book("r1", "g1"), None).unwrap();
    assert_eq!((code(&handled), handled.attempts), ("Taken", 2));
    assert_eq!(log.calls(), "read append pause read! verify");
}

#[test]
fn a_rejection_decided_on_stale_reads_is_never_answered() {
    // Two rooms are booked, but a stale read shows neither: to change nothing would be wrong too.
    let log = Faulty::new([booked("r1", "g1").into()]);
    let decisions = Decisions::new(10);
    let first = run_warm(&log, &book("r1", "g1"), None, &decisions).unwrap();
    assert_eq!((code(&first), log.calls().as_str()), ("nothing", "read verify"));
    // The warm model does not know of the second guest's booking of another room by g1.
    append(&log.log, booked("r2", "g1").into());
    let second = run_warm(&log, &book("r1", "g1"), None, &decisions).unwrap();
    assert_eq!((code(&second), second.attempts), ("nothing", 2));
    assert_eq!(log.calls(), "verify pause read! verify");
}

#[test]
fn a_conflict_is_read_again_and_decided_again() {
    let log = Faulty::new([]);
    log.intruders.lock().unwrap().push(booked("r1", "g2").into());
    let handled = run(&log, &book("r1", "g1"), None).unwrap();
    assert_eq!((code(&handled), handled.attempts), ("Taken", 2));
}

#[test]
fn a_read_that_lags_behind_the_fence_is_not_decided_on() {
    let log = Faulty::new([booked("r1", "g2").into()]);
    *log.stale_reads.lock().unwrap() = 3;
    let handled = run(&log, &book("r1", "g1"), None).unwrap();
    assert_eq!((code(&handled), handled.attempts), ("Taken", 4));
    assert_eq!(log.calls(), "read append pause read! pause read! pause read! verify");
}

#[test]
fn a_command_that_always_loses_gives_up_with_contention() {
    let log = Faulty::new([]);
    let others = (0..ATTEMPTS_MAX).map(|n| booked(&format!("x{n}"), "g1").into());
    // Before every append comes a booking of the guest that the last read did not see. Two visible bookings
    // would lead to a refusal, so reads see none.
    *log.stale_reads.lock().unwrap() = ATTEMPTS_MAX;
    log.intruders.lock().unwrap().extend(others);
    let error = run(&log, &book("r1", "g1"), None).unwrap_err();
    let HandleError::Log(LogError::Store(StoreError::Contention { attempts, over })) = error else {
        panic!("{error:?}");
    };
    assert_eq!(attempts, ATTEMPTS_MAX);
    let conflict = over.unwrap().downcast::<Conflict>().unwrap();
    assert_eq!(conflict.to_string(), "guestId:g1 holds 1 Booked, seen 0");
    assert!(log.log.events().iter().all(|event| event.tags[0].value != "r1"));
}

#[test]
fn a_warm_handler_appends_without_reading() {
    let log = Faulty::new([]);
    let decisions = Decisions::new(10);
    run_warm(&log, &book("r1", "g1"), None, &decisions).unwrap();
    log.calls();
    let again = run_warm(&log, &book("r1", "g1"), None, &decisions).unwrap();
    assert_eq!((code(&again), log.calls().as_str()), ("nothing", "verify"));
    // A booking of another writer makes the model wrong: a conflict, and then a correct answer.
    append(&log.log, booked("r9", "g1").into());
    let again = run_warm(&log, &book("r1", "g1"), None, &decisions).unwrap();
    assert_eq!((code(&again), log.calls().as_str()), ("nothing", "verify pause read! verify"));
}

#[test]
fn one_key_has_one_effect_and_one_answer() {
    let log = Faulty::new([]);
    let first = run(&log, &book("r1", "g1"), Some("k1")).unwrap();
    let second = run(&log, &book("r1", "g1"), Some("k1")).unwrap();
    assert_eq!((&first.outcome, second.repeated), (&second.outcome, true));
    assert_eq!(log.log.events().len(), 1);
    // A refusal is recorded as well: it stays the answer although the room is free for others.
    let refused = run(&log, &book("r1", "g2"), Some("k2")).unwrap();
    assert_eq!((code(&refused), refused.repeated), ("Taken", false));
    let refused = run(&log, &book("r1", "g2"), Some("k2")).unwrap();
    assert_eq!((code(&refused), refused.repeated), ("Taken", true));
    let reused = run(&log, &book("r2", "g2"), Some("k1")).unwrap_err();
    assert!(matches!(reused, HandleError::Log(LogError::KeyReused(_))), "{reused:?}");
}
