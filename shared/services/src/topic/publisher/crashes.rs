//! Runs against a bus, a queue and a Lambda that break off anywhere. A run follows from its number, which a failure
//! names.

use std::{
    collections::BTreeSet,
    error::Error,
    future::pending,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use futures::FutureExt;
use ringfence_aws::Random;
use ringfence_harness::bound;
use tokio::sync::Notify;

use super::{
    tests::{catalog, event_id, poison, record, sources, unreachable_now},
    *,
};

const RECORDS_MAX: u64 = 30;
/// Most faults of a run; then everything works, so that each run ends.
const FAULTS_MAX: u64 = 60;
/// The time of an invocation.
const TIME: Duration = Duration::from_secs(58);
/// The longest call that gets an answer, in milliseconds.
const LATENCY_MS_MAX: u64 = 8_000;

/// How a call fails as a whole.
#[derive(Clone, Copy)]
enum Fault {
    Unreachable,
    Refused,
    /// The answer never comes.
    Hang,
    /// The process ends.
    Crash,
}

struct World {
    random: Mutex<Random>,
    faults_left: AtomicUsize,
    sent: Mutex<BTreeSet<String>>,
    kept: Mutex<BTreeSet<String>>,
    in_flight: AtomicUsize,
    crashed: Notify,
}

/// A call on its way, until it is answered or given up.
struct Flight<'a>(&'a AtomicUsize);

impl<'a> Flight<'a> {
    fn of(world: &'a World) -> Self {
        let others = world.in_flight.fetch_add(1, Ordering::Relaxed);
        assert_eq!(others, 0, "two calls in flight");
        Self(&world.in_flight)
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl World {
    fn new(random: Random, faults: u64) -> Self {
        Self {
            random: Mutex::new(random),
            faults_left: AtomicUsize::new(usize::try_from(faults).unwrap()),
            sent: Mutex::default(),
            kept: Mutex::default(),
            in_flight: AtomicUsize::new(0),
            crashed: Notify::new(),
        }
    }

    fn below(&self, end: u64) -> u64 {
        self.random.lock().unwrap().below(end)
    }

    /// Whether something goes wrong now, if it goes wrong `percent` times out of a hundred.
    fn goes_wrong(&self, percent: u64) -> bool {
        let left = self.faults_left.load(Ordering::Relaxed);
        let wrong = left > 0 && self.below(100) < percent;
        self.faults_left.store(left - usize::from(wrong), Ordering::Relaxed);
        wrong
    }

    fn fault(&self) -> Option<Fault> {
        let faults = [Fault::Unreachable, Fault::Refused, Fault::Hang, Fault::Crash];
        self.goes_wrong(30).then(|| faults[usize::try_from(self.below(4)).unwrap()])
    }

    async fn fail(&self, fault: Fault) -> Unreachable {
        match fault {
            Fault::Unreachable => return unreachable_now(),
            Fault::Refused => return Unreachable { refused: true, ..unreachable_now() },
            Fault::Hang => {}
            Fault::Crash => self.crashed.notify_one(),
        }
        pending().await
    }

    /// One call: it takes some time, and fails before its effect, after it, or not at all.
    async fn call<T>(&self, effect: impl FnOnce() -> T) -> Result<T, Unreachable> {
        let _flight = Flight::of(self);
        let latency = self.below(LATENCY_MS_MAX);
        tokio::time::sleep(Duration::from_millis(latency)).await;
        let fault = self.fault();
        let before = self.below(2) == 0;
        match fault {
            // A refused call has no effect.
            Some(fault) if before || matches!(fault, Fault::Refused) => {
                return Err(self.fail(fault).await);
            }
            _ => {}
        }
        let answer = effect();
        match fault {
            Some(fault) => Err(self.fail(fault).await),
            None => Ok(answer),
        }
    }

    fn verdict(&self, entry: &TopicEntry) -> Verdict {
        if self.goes_wrong(20) {
            return Verdict::Later("ThrottlingException".to_owned());
        }
        if self.goes_wrong(3) {
            return Verdict::Never("InvalidArgument".to_owned());
        }
        self.sent.lock().unwrap().insert(entry.id.clone());
        Verdict::Sent
    }

    fn is_done(&self, record: usize) -> bool {
        self.kept.lock().unwrap().contains(&record.to_string())
            || self.sent.lock().unwrap().contains(&event_id(record))
    }
}

impl Bus for &World {
    fn put<'a>(
        &'a self,
        entries: &'a [&'a TopicEntry],
    ) -> BoxFuture<'a, Result<Vec<Verdict>, Unreachable>> {
        self.call(|| entries.iter().map(|entry| self.verdict(entry)).collect()).boxed()
    }
}

impl DeadLetters for &World {
    fn keep(&self, dead_letter: Value) -> BoxFuture<'_, Result<(), Box<dyn Error + Send + Sync>>> {
        let number = sequence_number(&dead_letter["record"]);
        let keep = || {
            self.kept.lock().unwrap().insert(number);
        };
        async move { self.call(keep).await.map_err(Into::into) }.boxed()
    }
}

/// Lambda's side: the batch comes again from the reported number on, or as a whole after a crash, until
/// nothing is left.
async fn run(number: u64) {
    let mut random = Random::new(&[number]);
    let records = usize::try_from(1 + random.below(RECORDS_MAX)).unwrap();
    let poisoned: BTreeSet<usize> = (0..records).filter(|_| random.chance(10)).collect();
    let faults = random.below(FAULTS_MAX);
    let world = World::new(random, faults);
    let publisher =
        Publisher { bus: &world, dead_letters: &world, sources: sources(), catalog: catalog() };
    let batch: Vec<Value> = (0..records)
        .map(|n| if poisoned.contains(&n) { poison(n) } else { record(n, 1) })
        .collect();
    let mut from = 0;
    for _ in 0..2 * FAULTS_MAX {
        let report = tokio::select! {
            biased;
            report = tokio::time::timeout(TIME, publisher.publish(&batch[from..], TIME)) => {
                report.expect("the invocation ends before its time")
            }
            () = world.crashed.notified() => continue,
        };
        let left = report.failed_from.map(|left| left.parse::<usize>().unwrap());
        for n in from..left.unwrap_or(records) {
            assert!(world.is_done(n), "run {number}: record {n} is lost");
        }
        assert_eq!(left.is_some(), report.cause.is_some(), "run {number}");
        match left {
            Some(left) => from = left,
            None => break,
        }
    }
    for n in 0..records {
        assert!(world.is_done(n), "run {number}: record {n} is lost");
    }
    for n in poisoned {
        let sent = world.sent.lock().unwrap().contains(&event_id(n));
        assert!(!sent, "run {number}: poison {n} is on the bus");
    }
}

#[test]
fn nothing_is_lost_wherever_publishing_breaks_off() {
    for number in 0..bound(500, 10_000) {
        ringfence_aws::seed_thread(number);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(run(number));
    }
}
