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
    tests::{catalog, poison, record, sources, unreachable_now},
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
    /// The orders in which the records' events must arrive; `None` for a record that can't be published.
    orders: Vec<Option<String>>,
    /// Records that are on the bus.
    sent: Mutex<BTreeSet<usize>>,
    /// Records that are dead letters.
    kept: Mutex<BTreeSet<usize>>,
    /// The records of each call to the bus that is under way.
    in_flight: Mutex<Vec<Vec<usize>>>,
    /// Those of each call so far. What was once in one call may overtake each other.
    together: Mutex<Vec<Vec<usize>>>,
    /// The first mistake.
    wrong: Mutex<Option<String>>,
    crashed: Notify,
}

/// A call to the bus on its way, until it is answered or given up.
struct Flight<'a>(&'a World, Vec<usize>);

impl<'a> Flight<'a> {
    fn of(world: &'a World, entries: &[&TopicEntry]) -> Self {
        let records: Vec<_> = entries.iter().map(|entry| number(entry)).collect();
        world.check(&records);
        world.in_flight.lock().unwrap().push(records.clone());
        Self(world, records)
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        self.0.in_flight.lock().unwrap().retain(|records| *records != self.1);
    }
}

/// The record of an entry. Its event has the same number.
fn number(entry: &TopicEntry) -> usize {
    entry.id.rsplit('/').next().unwrap().parse().unwrap()
}

impl World {
    fn new(random: Random, faults: u64, orders: Vec<Option<String>>) -> Self {
        Self {
            random: Mutex::new(random),
            faults_left: AtomicUsize::new(usize::try_from(faults).unwrap()),
            orders,
            sent: Mutex::default(),
            kept: Mutex::default(),
            in_flight: Mutex::default(),
            together: Mutex::default(),
            wrong: Mutex::default(),
            crashed: Notify::new(),
        }
    }

    /// A call may have an event only if each earlier one of its order is done, or was once in a call with it.
    fn check(&self, records: &[usize]) {
        let in_flight = self.in_flight.lock().unwrap();
        if in_flight.len() >= CALLS_AT_ONCE || !records.is_sorted() {
            self.is_wrong(format!("{records:?} beside {in_flight:?}"));
        }
        let mut together = self.together.lock().unwrap();
        together.push(records.to_vec());
        for record in records {
            let is_before = |of: &usize| self.orders[*of] == self.orders[*record];
            let is_with_it =
                |of: &usize| together.iter().any(|call| call.contains(of) && call.contains(record));
            let is_left = |of: &usize| !self.is_done(*of) && !is_with_it(of);
            if let Some(before) = (0..*record).filter(is_before).find(is_left) {
                self.is_wrong(format!("record {record} overtakes record {before}"));
            }
            if in_flight.iter().flatten().any(is_before) {
                self.is_wrong(format!("two calls have events of the order of record {record}"));
            }
        }
    }

    fn is_wrong(&self, why: String) {
        self.wrong.lock().unwrap().get_or_insert(why);
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
        self.sent.lock().unwrap().insert(number(entry));
        Verdict::Sent
    }

    fn is_done(&self, record: usize) -> bool {
        self.kept.lock().unwrap().contains(&record) || self.sent.lock().unwrap().contains(&record)
    }
}

impl Bus for &World {
    fn put<'a>(
        &'a self,
        entries: &'a [&'a TopicEntry],
    ) -> BoxFuture<'a, Result<Vec<Verdict>, Unreachable>> {
        async move {
            let _flight = Flight::of(self, entries);
            self.call(|| entries.iter().map(|entry| self.verdict(entry)).collect()).await
        }
        .boxed()
    }
}

impl DeadLetters for &World {
    fn keep(&self, dead_letter: Value) -> BoxFuture<'_, Result<(), Box<dyn Error + Send + Sync>>> {
        let number = sequence_number(&dead_letter["record"]).parse().unwrap();
        let keep = move || {
            self.kept.lock().unwrap().insert(number);
        };
        async move { self.call(keep).await.map_err(Into::into) }.boxed()
    }
}

/// A record of an event that must arrive in this order.
fn record_of(n: usize, order: &str, is_by_event: bool) -> Value {
    let mut record = record(n, 0);
    if is_by_event {
        record["dynamodb"]["NewImage"]["id"]["S"] = format!("{order}-{n}").into();
    } else {
        record["dynamodb"]["NewImage"]["id"]["S"] = order.into();
    }
    record
}

/// Lambda's side: the batch comes again from the reported number on, or as a whole after a crash, until nothing is
/// left. With `is_by_event` each event has its own partition, so the publisher keeps no order.
async fn run(number: u64, is_by_event: bool) -> Result<(), String> {
    let mut random = Random::new(&[number]);
    let records = usize::try_from(1 + random.below(RECORDS_MAX)).unwrap();
    let partitions = [1, 3, RECORDS_MAX][usize::try_from(random.below(3)).unwrap()];
    let orders: Vec<Option<String>> = (0..records)
        .map(|_| (!random.chance(10)).then(|| format!("orderId:o{}", random.below(partitions))))
        .collect();
    let batch: Vec<Value> = orders
        .iter()
        .enumerate()
        .map(|(n, order)| match order {
            None => poison(n),
            Some(order) => record_of(n, order, is_by_event),
        })
        .collect();
    let faults = random.below(FAULTS_MAX);
    let world = World::new(random, faults, orders);
    let publisher =
        Publisher { bus: &world, dead_letters: &world, sources: sources(), catalog: catalog() };
    let mut from = 0;
    for _ in 0..2 * FAULTS_MAX {
        let report = tokio::select! {
            biased;
            report = tokio::time::timeout(TIME, publisher.publish(&batch[from..], TIME)) => {
                report.expect("the invocation ends before its time")
            }
            () = world.crashed.notified() => continue,
        };
        assert_eq!(report.failed_from.is_some(), report.cause.is_some(), "run {number}");
        let left = report.failed_from.map(|left| left.parse::<usize>().unwrap());
        if let Some(lost) = (from..left.unwrap_or(records)).find(|n| !world.is_done(*n)) {
            return Err(format!("run {number}: record {lost} is lost"));
        }
        match left {
            Some(left) => from = left,
            None => break,
        }
    }
    if let Some(lost) = (0..records).find(|n| !world.is_done(*n)) {
        return Err(format!("run {number}: record {lost} is lost"));
    }
    let is_poison = |n: &&usize| world.orders[**n].is_none();
    if let Some(poison) = world.sent.lock().unwrap().iter().find(is_poison) {
        return Err(format!("run {number}: poison {poison} is on the bus"));
    }
    match world.wrong.lock().unwrap().take() {
        Some(why) => Err(format!("run {number}: {why}")),
        None => Ok(()),
    }
}

/// Runs them all.
fn run_all(runs: u64, is_by_event: bool) -> Result<(), String> {
    (0..runs).try_for_each(|number| {
        ringfence_aws::seed_thread(number);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(run(number, is_by_event))
    })
}

#[test]
fn nothing_is_lost_or_overtaken_wherever_publishing_breaks_off() {
    assert_eq!(run_all(bound(300, 10_000), false), Ok(()));
    // Lanes by event instead of by partition would be noticed.
    run_all(50, true).expect_err("events overtake each other");
}
