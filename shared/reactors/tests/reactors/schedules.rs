//! Whatever breaks off and whatever runs at once: the effects of a lane are a prefix of its events in their order, each
//! once, and in the end all of them. Where the reactor repeats itself in doubt, the far side counts keys.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::join;
use ringfence_dynamo::wire::{Director, Fault};
use ringfence_dynamo::{Clock, Random};
use ringfence_local::bound;
use ringfence_reactors::{Ended, Failed, PAUSES, ParkedLane, ReactorError, Unpark};
use serde_json::Value;
use tokio::time::timeout;

use crate::world::{LONG, NAME, World, asked};

/// Longer than a lease.
const AFTER_LEASE: Duration = Duration::from_secs(200);
const FOREVER: Duration = Duration::from_secs(1_000_000);

/// A process that ends at one of its steps. A step is a request, which is sent or is not, or a letter, which arrives or
/// does not.
struct Process {
    /// How many points are left, two for each step; afterwards nothing that it does happens.
    left: Mutex<Option<usize>>,
}

impl Process {
    fn new(points: usize) -> Arc<Self> {
        Arc::new(Self { left: Mutex::new(Some(points)) })
    }

    /// Whether it has ended at or before this point.
    fn has_ended(&self) -> bool {
        let mut left = self.left.lock().unwrap();
        match &mut *left {
            None => false,
            Some(0) => true,
            Some(points) => {
                *points -= 1;
                false
            }
        }
    }

    /// Another process begins, which does not end.
    fn again(&self) -> bool {
        self.left.lock().unwrap().take() == Some(0)
    }
}

impl Director for Process {
    fn faults(&self, _: &str, _: &Value) -> Vec<Fault> {
        if self.has_ended() {
            vec![Fault::Delay(FOREVER)]
        } else if self.has_ended() {
            vec![Fault::Late(FOREVER)]
        } else {
            vec![]
        }
    }

    fn carried_out(&self, _: &str, _: &Value, _: u16) {}
}

const LANES: [&str; 2] = ["orderId:a", "orderId:b"];

/// Two lanes. In the middle of one is an event that fails twice, at the begin of the other one that is refused until a person
/// asks.
async fn publish(world: &World, letters: u32) {
    world.far.fail("orderId:a/2", (0..2).map(|_| Failed::ForNow("busy".to_owned())));
    world.far.fail("orderId:b/1", [Failed::ForGood("refused".to_owned())]);
    let events = ["a", "b", "b", "a", "a"].map(|order| asked(order, letters));
    world.publish(events).await;
}

/// What a person does with a parked lane: look at the far side, and skip what has happened.
async fn ask(world: &World) {
    for lane in world.parked().await.iter().filter(|lane| lane.next_ms.is_none()) {
        let happened = world
            .far
            .letters(lane.lane.as_str())
            .iter()
            .any(|letter| letter.starts_with(&format!("{}/", lane.event)));
        let ask = if happened { Unpark::Skip("it has happened".to_owned()) } else { Unpark::Retry };
        world.table().ask(NAME, &lane.lane, &lane.event, &ask).await.unwrap();
    }
}

fn check_prefixes(world: &World, letters: u32, what: &str) -> usize {
    let mut all = 0;
    for lane in LANES {
        let expected =
            (1..=3).flat_map(|slot| (0..letters).map(move |n| format!("{lane}/{slot}/{n}")));
        let (expected, found): (Vec<_>, _) = (expected.collect(), world.far.letters(lane));
        assert!(expected.starts_with(&found), "{what}: {found:?}");
        all += found.len();
    }
    all
}

/// Runs until everything is sent; time passes between the runs.
async fn finish<const PARKS: bool>(world: &World, letters: u32, what: &str) {
    for _ in 0..12 {
        world.wait(PAUSES[3]);
        world
            .function::<PARKS>(&world.clock)
            .run(LONG)
            .await
            .unwrap_or_else(|error| panic!("{what}: {error}"));
        if check_prefixes(world, letters, what) == 5 * letters as usize
            && world.parked().await.is_empty()
        {
            return;
        }
        ask(world).await;
    }
    let parked = world.parked().await;
    panic!("{what}: it never ends: {:?}, {parked:?}", world.far.0.lock().unwrap().all);
}

/// Ends a process at its points, in the run number `run`: at every fifth one, so before and after steps, and in
/// `cargo proof` at each. Returns the first point that is beyond its end.
async fn crashes<const PARKS: bool>(letters: u32, run: usize) -> usize {
    for point in (0..).step_by(bound(5, 1)) {
        let world = World::new(7);
        publish(&world, letters).await;
        for _ in 0..run {
            world.function::<PARKS>(&world.clock).run(LONG).await.unwrap();
            ask(&world).await;
            world.wait(PAUSES[3]);
        }
        let process = Process::new(point);
        world.wire.direct(process.clone());
        let of_letters = process.clone();
        world.far.0.lock().unwrap().point = Some(Arc::new(move || of_letters.has_ended()));
        let lanes = world.function::<PARKS>(&world.clock);
        let ran = timeout(AFTER_LEASE, lanes.run(LONG)).await;
        if ran.is_ok() && !process.again() {
            return point;
        }
        let what = format!("run {run} ends at point {point}");
        check_prefixes(&world, letters, &what);
        process.again();
        finish::<PARKS>(&world, letters, &what).await;
        if PARKS {
            assert_eq!(world.far.count(), 5 * letters as usize, "{what}: a letter was sent twice");
        }
    }
    unreachable!("a run has an end")
}

#[tokio::test(start_paused = true)]
async fn a_process_that_ends_at_any_step_loses_nothing_and_doubles_nothing() {
    // The first run meets both failures, the second one takes their lanes up again.
    let parking = [crashes::<true>(1, 0).await, crashes::<true>(1, 1).await];
    let points = [parking[0], parking[1], crashes::<false>(2, 1).await];
    assert!(points.iter().all(|points| *points > 30), "only {points:?} points");
}

/// Requests take some time, and some fail or are answered by a replica that lags.
struct Weather(Mutex<Random>);

impl Director for Weather {
    fn faults(&self, operation: &str, request: &Value) -> Vec<Fault> {
        let mut random = self.0.lock().unwrap();
        let mut faults = vec![Fault::Delay(Duration::from_millis(random.below(6)))];
        let reads_index = operation == "Query" && request["TableName"] == "index";
        match random.below(12) {
            0 if reads_index && request["ConsistentRead"] != true => {
                faults.push(Fault::stale(random.next()))
            }
            1 => faults.push(Fault::LostAfter),
            2 => faults.push(Fault::error("ThrottlingException")),
            3 => faults.push(Fault::Late(Duration::from_millis(random.below(40)))),
            _ => {}
        }
        faults
    }

    fn carried_out(&self, _: &str, _: &Value, _: u16) {}
}

/// Two runs at once, of which the second takes the lease of the first: its clock is minutes ahead.
async fn at_once<const PARKS: bool>(seed: u64, letters: u32) -> bool {
    let world = World::new(seed);
    publish(&world, letters).await;
    let mut random = Random::new(&[seed, 2]);
    world.wire.direct(Arc::new(Weather(Mutex::new(Random::new(&[seed])))));
    let ahead = Clock::running(world.clock.now_ms() + 300_000);
    let (first, second) = (world.function::<PARKS>(&world.clock), world.function::<PARKS>(&ahead));
    let later = Duration::from_millis(random.below(120));
    let second = async {
        tokio::time::sleep(later).await;
        second.run(LONG).await
    };
    let (first, second) = join(first.run(LONG), second).await;
    world.wire.direct(Arc::new(Calm));
    let what = format!("seed {seed}");
    check_prefixes(&world, letters, &what);
    finish::<PARKS>(&world, letters, &what).await;
    if PARKS {
        assert_eq!(world.far.count(), 5 * letters as usize, "{what}: a letter was sent twice");
    }
    first.is_err() || second.is_err() || second.is_ok_and(|ran| ran.ended == Ended::Held)
}

/// Nothing goes wrong.
struct Calm;

impl Director for Calm {
    fn faults(&self, _: &str, _: &Value) -> Vec<Fault> {
        vec![]
    }

    fn carried_out(&self, _: &str, _: &Value, _: u16) {}
}

#[tokio::test(start_paused = true)]
async fn two_runs_at_once_with_clocks_that_differ_lose_nothing_and_double_nothing() {
    let mut met = 0;
    for seed in 0..bound(6, 15) {
        met += u32::from(at_once::<true>(seed, 1).await);
        met += u32::from(at_once::<false>(seed, 2).await);
    }
    assert!(met > bound(3, 5), "only {met} pairs have met");
}

/// What a person asked last for an event, and whether it had happened then.
type Asks = BTreeMap<String, (Unpark, bool)>;

/// A person asks from a page that may be old, and looks at the far side first.
async fn ask_from(page: &[ParkedLane], world: &World, random: &mut Random, asks: &mut Asks) {
    let Some(lane) = page.get(usize::try_from(random.below(3)).unwrap()) else { return };
    let event = format!("{}/", lane.event);
    let letters = world.far.letters(lane.lane.as_str());
    let happened = letters.iter().any(|letter| letter.starts_with(&event));
    let ask = match happened || random.chance(30) {
        true => Unpark::Skip("seen".to_owned()),
        false => Unpark::Retry,
    };
    match world.table().ask(NAME, &lane.lane, &lane.event, &ask).await {
        Ok(()) => drop(asks.insert(lane.event.clone(), (ask, happened))),
        Err(ReactorError::NotParked { .. }) => {}
        Err(error) => panic!("{error}"),
    }
}

/// Events, runs that break off, runs at once, people with old pages and clocks that are minutes off, in any order.
async fn whatever<const PARKS: bool>(seed: u64) -> usize {
    let world = World::new(seed);
    let random = &mut Random::new(&[seed, u64::from(PARKS)]);
    let (mut page, mut asks, mut events, mut broken) = (vec![], Asks::new(), vec![], 0);
    for _ in 0..18 {
        let weather = Arc::new(Weather(Mutex::new(Random::new(&[random.next()]))));
        let off_ms = random.below(600_000);
        let clock = || Clock::running(world.clock.now_ms() - 300_000 + off_ms);
        match random.below(9) {
            0..=2 => {
                let order = ["a", "b", "c"][usize::try_from(random.below(3)).unwrap()];
                let event = world.publish([asked(order, 1)]).await.remove(0);
                let why = "busy".to_owned();
                let failures = match random.below(6) {
                    0 => vec![Failed::ForNow(why); 2],
                    1 => vec![Failed::ForGood(why)],
                    2 => vec![Failed::Unknown(why)],
                    _ => vec![],
                };
                world.far.fail(&event.id(), failures);
                events.push(event);
            }
            3 | 4 => {
                world.wire.direct(weather);
                let time = Duration::from_millis(random.below(150));
                let lanes = world.function::<PARKS>(&clock());
                broken += usize::from(timeout(time, lanes.run(LONG)).await.is_err());
            }
            5 => {
                world.wire.direct(weather);
                let lanes = [world.function::<PARKS>(&world.clock), world.function(&clock())];
                drop(join(lanes[0].run(LONG), lanes[1].run(LONG)).await);
            }
            6 => page = world.parked().await,
            7 => ask_from(&page, &world, random, &mut asks).await,
            _ => world.wait(Duration::from_secs(random.below(2_400))),
        }
        world.wire.direct(Arc::new(Calm));
    }
    for round in 0.. {
        assert!(round < 30, "seed {seed}: it never ends: {:?}", world.parked().await);
        world.wait(PAUSES[3]);
        let ran = world.function::<PARKS>(&world.clock).run(LONG).await;
        let ran = ran.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        page = world.parked().await;
        if page.is_empty() && ran.ended == Ended::Idle {
            break;
        }
        ask_from(&page, &world, random, &mut asks).await;
    }
    for lane in ["orderId:a", "orderId:b", "orderId:c"] {
        let letters = world.far.letters(lane);
        let of_lane = events.iter().filter(|event| event.partition.as_str() == lane);
        let expected = of_lane.filter(|event| {
            let happened = letters.contains(&format!("{}/0", event.id()));
            match asks.get(&event.id()) {
                // It was skipped, and not asked for again.
                Some((Unpark::Skip(_), had_happened)) => *had_happened,
                // Before that a person may have skipped it.
                Some((Unpark::Retry, _)) => happened,
                None => true,
            }
        });
        let expected: Vec<_> = expected.map(|event| format!("{}/0", event.id())).collect();
        assert_eq!(letters, expected, "seed {seed}, parks: {PARKS}");
    }
    let unique: usize =
        ["a", "b", "c"].map(|it| world.far.letters(&format!("orderId:{it}")).len()).iter().sum();
    assert!(!PARKS || world.far.count() == unique, "seed {seed}: a letter was sent twice");
    broken
}

#[tokio::test(start_paused = true)]
async fn whatever_happens_each_effect_happens_once_and_in_order_or_is_skipped() {
    let mut broken = 0;
    for seed in 0..bound(5, 12) {
        broken += whatever::<true>(seed).await + whatever::<false>(seed).await;
    }
    assert!(broken > bound(3, 6), "only {broken} runs have broken off");
}
