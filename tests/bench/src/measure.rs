//! Duration and allocations of work.

use std::rc::Rc;
use std::time::Duration;

use ringfence_aws::seed_thread;
use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::{Builder, Runtime};

use crate::store::{Store, Usage};

/// Runs of each side. The sides take turns, so a slow machine slows all of them.
const RUNS: usize = 21;
/// The work is repeated within a run until the run takes this long.
const RUN_LENGTH: Duration = Duration::from_millis(40);
/// Allocations are counted this often, and the least counts: some calls ask for the credentials again, or grow a map.
const COUNTS: usize = 9;
/// The seed of ids and waits. It makes all sides send the same requests.
const SEED: u64 = 1;

/// Work that is done in several ways.
pub(crate) struct Case {
    /// Each way by its name, Ringfence's first.
    pub(crate) sides: Vec<(&'static str, Side)>,
    /// The unit that is counted: `command` or `event`.
    pub(crate) unit: &'static str,
    /// One call of the work handles this many units.
    pub(crate) units: usize,
}

/// One way to do it.
pub(crate) struct Side {
    pub(crate) work: Box<dyn FnMut()>,
    pub(crate) usage: Usage,
}

impl Side {
    /// Work that sends no requests.
    pub(crate) fn pure(work: impl FnMut() + 'static) -> Self {
        Self { work: Box::new(work), usage: Usage::default() }
    }

    /// Does the work once on the store itself. From then on the store gives each call of the work the same answers.
    pub(crate) fn on(store: &Store, mut work: impl FnMut() + 'static) -> Self {
        seed_thread(SEED);
        store.record();
        work();
        let (usage, store) = (store.can(), store.clone());
        let again = move || {
            store.rewind();
            work();
        };
        Self { work: Box::new(again), usage }
    }
}

/// Median, minimum and maximum of the runs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

/// The cost of one call of the work.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    /// Processor time of this thread, in nanoseconds. Other processes do not count.
    pub(crate) ns: Spread,
    pub(crate) allocations: f64,
    pub(crate) bytes: f64,
}

/// A runtime whose every task runs on this thread.
pub(crate) fn runtime() -> Rc<Runtime> {
    let runtime = Builder::new_current_thread().enable_all().build();
    Rc::new(runtime.expect("a runtime"))
}

/// The costs of the sides, in their order.
pub(crate) fn costs(sides: &mut [&mut Side]) -> Vec<Cost> {
    let calls: Vec<u32> = sides.iter_mut().map(|side| calls(side)).collect();
    let mut times = vec![Vec::with_capacity(RUNS); sides.len()];
    for _ in 0..RUNS {
        for ((side, calls), times) in sides.iter_mut().zip(&calls).zip(&mut times) {
            let begun = thread_time();
            (0..*calls).for_each(|_| (side.work)());
            times.push((thread_time() - begun).as_secs_f64() * 1e9 / f64::from(*calls));
        }
    }
    let cost = |(side, times): (&mut &mut Side, Vec<f64>)| {
        let counted = (0..COUNTS).map(|_| allocation_counter::measure(|| (side.work)()));
        let counted = counted.min_by_key(|it| it.count_total).expect("it is counted");
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let (allocations, bytes) = (counted.count_total as f64, counted.bytes_total as f64);
        Cost { ns: spread(times), allocations, bytes }
    };
    sides.iter_mut().zip(times).map(cost).collect()
}

/// How often a run does the work. The first calls warm caches.
fn calls(side: &mut Side) -> u32 {
    let begun = thread_time();
    let mut calls = 0;
    while thread_time() - begun < RUN_LENGTH {
        (side.work)();
        calls += 1;
    }
    calls
}

fn spread(mut times: Vec<f64>) -> Spread {
    times.sort_by(f64::total_cmp);
    Spread { median: times[times.len() / 2], min: times[0], max: times[times.len() - 1] }
}

pub(crate) fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).expect("it counts from zero")
}
