//! Dues: times that are set, moved and cleared; rows that lag behind; concurrent sweeps with different clocks.

use std::collections::BTreeSet;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use futures::TryStreamExt;
use futures::future::join_all;
use ringfence_aws::{Clock, Random, Retry};
use ringfence_core::prelude::*;
use ringfence_core::{
    Append, Appended, BoundaryId, Catalogs, Envelope, EventLog, SequencedEvent, id_type,
};
use ringfence_dcb_log::DcbLog;
use ringfence_feed::{Index, Indexer, Until};
use ringfence_local::engine::Engine;
use ringfence_services::deadlines::{Deadlines, Sweep, Swept};
use ringfence_stack::{MemberList, Members, Visitor};
use ringfence_views::{Definition, Projector};
use serde::Serialize;
use tokio::sync::Mutex;
use tokio::time::{sleep, timeout};

use super::storm::{LATE_MAX_MS, Storm};
use crate::table::{TABLE, tables};
use crate::weather::CALLER;
use crate::{Mutant, Schedule, Tally};

/// The steps of a schedule.
pub(crate) const STEPS: usize = 28;
const BELLS: [&str; 3] = ["b0", "b1", "b2"];
/// No run takes this long.
const LONG: Duration = Duration::from_secs(50);
/// A bell shall ring at most this long after it is set, in milliseconds.
const WAIT_MAX_MS: u64 = 20_000;
/// After a command that cleared nothing, the next one is sent within an hour.
const PAUSE_MAX: Duration = Duration::from_secs(3_660);

id_type!(BellId, "names a bell");

/// A bell shall ring at a time, and at no other one.
#[derive(Clone, Debug, PartialEq, Event)]
struct BellSet {
    #[tag(partition)]
    bell_id: BellId,
    ring_ms: u64,
}

/// It shall not ring.
#[derive(Clone, Debug, PartialEq, Event)]
struct BellStopped {
    #[tag(partition)]
    bell_id: BellId,
}

/// It has rung.
#[derive(Clone, Debug, PartialEq, Event)]
struct BellRung {
    #[tag(partition)]
    bell_id: BellId,
}

struct Bells;

impl Context for Bells {
    const NAME: &'static str = "bells";
    type Log = ringfence_dcb_log::Dcb;

    fn catalog() -> Result<Catalog, CatalogError> {
        Catalog::new(Self::NAME, [BellSet::SCHEMA, BellStopped::SCHEMA, BellRung::SCHEMA])
    }
}

impl Members for Bells {
    fn list(list: &mut MemberList<impl Visitor>) {
        list.due::<RingBell>();
    }
}

/// Rings a bell whose time has come.
#[derive(Clone, Debug, PartialEq, Command)]
struct RingBell {
    #[tag(partition)]
    bell_id: BellId,
}

#[derive(Reads)]
enum Consumed {
    BellSet { bell_id: BellId, ring_ms: u64 },
    BellStopped { bell_id: BellId },
    BellRung { bell_id: BellId },
}

#[derive(Default)]
struct Bell(Option<u64>);

impl State for Bell {
    type Reads = Consumed;

    fn evolve(self, event: Consumed) -> Self {
        match event {
            Consumed::BellSet { ring_ms, .. } => Self(Some(ring_ms)),
            Consumed::BellStopped { .. } | Consumed::BellRung { .. } => Self(None),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code")]
enum Rejection {
    #[error("its time has not come")]
    TooEarly,
}

impl Slice for RingBell {
    const NAME: &'static str = "ring-bell";
    type Context = Bells;
    type State = Bell;
    type Writes = BellRung;
    type Rejection = Rejection;

    fn decide(&self, bell: &Bell, at: &CommandContext) -> Result<Vec<BellRung>, Rejection> {
        match bell.0 {
            None => Ok(vec![]),
            Some(ring_ms) if at.now_ms < ring_ms => Err(Rejection::TooEarly),
            Some(_) => Ok(vec![BellRung { bell_id: self.bell_id.clone() }]),
        }
    }
}

impl Due for RingBell {
    type Reads = Consumed;
    type Row = u64;

    fn rows(event: &Consumed) -> Vec<String> {
        let (Consumed::BellSet { bell_id, .. }
        | Consumed::BellStopped { bell_id }
        | Consumed::BellRung { bell_id }) = event;
        vec![bell_id.to_string()]
    }

    fn evolve(_: Option<u64>, _: &str, event: &Consumed) -> Option<u64> {
        match event {
            Consumed::BellSet { ring_ms, .. } => Some(*ring_ms),
            Consumed::BellStopped { .. } | Consumed::BellRung { .. } => None,
        }
    }

    fn due_ms(ring_ms: &u64) -> Option<u64> {
        Some(*ring_ms)
    }

    fn command(bell: &str, _: &u64) -> Result<Self, Box<dyn Error + Send + Sync>> {
        Ok(Self { bell_id: bell.parse()? })
    }
}

struct World {
    storm: Arc<Storm>,
    due: Definition,
    client: Client,
    calm: Client,
    log: DcbLog,
    /// One event is published at a time.
    publishing: Mutex<()>,
}

impl World {
    fn new(schedule: &Schedule, mutant: Option<Mutant>) -> Self {
        let engine = Engine::memory().expect("a database in memory");
        tables(&engine, &catalog());
        let storm = Storm::new(schedule, mutant);
        let (client, calm) = storm.clients(&engine);
        let log = DcbLog::new(calm.clone(), TABLE, catalog(), Clock::running(storm.now_ms()));
        let due = Definition::of_due::<RingBell>();
        Self { storm, due, client, calm, log, publishing: Mutex::default() }
    }

    async fn step(&self, step: usize) {
        let random = &mut self.storm.random(step);
        sleep(self.storm.delay(random)).await;
        let bell = BELLS[usize::try_from(random.below(3)).unwrap_or(0)];
        let crash = self.storm.crash(random).unwrap_or(LONG);
        match random.below(20) {
            0..=5 => {
                let ring_ms = self.storm.now_ms() + random.below(WAIT_MAX_MS);
                self.publish(BellSet { bell_id: id(bell), ring_ms }).await;
            }
            6 => self.publish(BellStopped { bell_id: id(bell) }).await,
            7..=11 => {
                let clock = self.storm.clock(random);
                let show = CALLER.scope((step, 0), self.show(&self.client, &clock));
                drop(timeout(crash, show).await);
            }
            12 => {
                let projector = self.projector(&self.client, self.storm.clock(random));
                let rebuild = async { projector.rebuild(&self.due, &|_| {}).await };
                drop(timeout(crash, CALLER.scope((step, 0), rebuild)).await);
            }
            _ => {
                let sweep = CALLER.scope((step, 0), self.sweep(&self.client, random));
                let swept = timeout(crash, sweep).await;
                self.storm.note(|| format!("sweep {step} ends: {swept:?}"));
                self.storm.count(|tally| tally.unanswered += u64::from(swept.is_err()));
            }
        }
    }

    async fn publish(&self, event: impl Into<NewEvent>) {
        let _alone = self.publishing.lock().await;
        let envelope = Envelope::default();
        let events = vec![event.into()];
        let append = Append { events, seen: None, record: None, envelope: &envelope };
        let Ok(Appended::Committed(events)) = self.log.append(append).await else {
            unreachable!("nothing disturbs the log")
        };
        self.storm.note(|| format!("published {events:?}"));
    }

    fn projector(&self, client: &Client, clock: Clock) -> Projector {
        let catalogs = Catalogs(vec![catalog()]);
        let log = DcbLog::new(client.clone(), TABLE, catalog(), clock.clone());
        let index = Index::new(client.clone(), "index", [log.into()]);
        Projector::new(client.clone(), index, "views", catalogs, clock)
    }

    /// Indexes and folds new events.
    async fn show(&self, client: &Client, clock: &Clock) {
        let indexed: BTreeSet<_> =
            BELLS.map(|bell| ringfence_feed::Partition::from(partition(bell))).into();
        let log = DcbLog::new(self.calm.clone(), TABLE, catalog(), clock.clone());
        let indexer = Indexer::new([log.into()], self.calm.clone(), "index");
        for (_, outcome) in indexer.index(indexed, Retry::default()).await {
            outcome.expect("nothing disturbs the indexer");
        }
        let projector = self.projector(client, clock.clone());
        ringfence_views::project_views::run_views(
            &projector,
            &[self.due],
            Until::Present,
            LONG,
            clock,
            "r",
        )
        .await;
    }

    async fn sweep(&self, client: &Client, random: &mut Random) -> Swept {
        let logs = self.storm.logs(client.clone(), random);
        let sweep = Sweep::new(&Deadlines::of::<Bells>(), &logs, "views");
        sweep.expect("its slice is on its log").all(LONG).await
    }

    /// The events of a bell, in their order.
    async fn events(&self, bell: &str) -> Vec<SequencedEvent> {
        let all: Vec<SequencedEvent> =
            self.log.scan().try_collect().await.expect("nothing disturbs the log");
        let mut of_bell: Vec<_> =
            all.into_iter().filter(|event| event.partition == partition(bell)).collect();
        of_bell.sort_by_key(|event| event.slot);
        of_bell
    }

    /// A bell that is set again rings with the next sweep, independent of its earlier times. In the end no time is
    /// left.
    async fn rest(&self) -> Result<(), String> {
        let (random, clock) = (&mut self.storm.random(STEPS), Clock::running(self.storm.now_ms()));
        for bell in BELLS {
            let ring_ms = self.storm.now_ms();
            self.publish(BellSet { bell_id: id(bell), ring_ms }).await;
        }
        self.show(&self.calm, &clock).await;
        sleep(Duration::from_millis(10)).await;
        let swept = self.sweep(&self.calm, random).await;
        for bell in BELLS {
            let last = self.events(bell).await.pop();
            if last.is_none_or(|event| event.event_type != BellRung::NAME) {
                return Err(format!("{bell} is set once more and does not ring: {swept:?}"));
            }
        }
        self.show(&self.calm, &clock).await;
        sleep(PAUSE_MAX).await;
        let swept = self.sweep(&self.calm, random).await;
        let is_left = swept != Swept::default();
        if is_left { Err(format!("something is still due: {swept:?}")) } else { Ok(()) }
    }

    /// A bell rings once for each time that was not moved or stopped before, and not before it.
    async fn check(&self) -> Result<(), String> {
        for bell in BELLS {
            let mut set = None;
            for event in self.events(bell).await {
                let rings = event.event_type == BellRung::NAME;
                if rings && set.is_none_or(|ring_ms| event.at < ring_ms) {
                    return Err(format!("{bell} rings, and was to ring at {set:?}: {event:?}"));
                }
                set = event.data["ringMs"].as_u64();
                self.storm.count(|tally| tally.effects += u64::from(rings));
            }
        }
        Ok(())
    }
}

fn catalog() -> Catalog {
    Bells::catalog().expect("free of contradictions")
}

fn partition(bell: &str) -> BoundaryId {
    BoundaryId::stored(format!("bellId:{bell}"))
}

pub(crate) async fn run(
    schedule: &Schedule,
    mutant: Option<Mutant>,
) -> (Result<Tally, String>, Vec<String>) {
    let world = World::new(schedule, mutant);
    world.show(&world.calm, &Clock::running(world.storm.now_ms())).await;
    join_all(schedule.jobs.iter().map(|step| world.step(*step))).await;
    // Everything that is still on its way arrives.
    sleep(Duration::from_millis(LATE_MAX_MS)).await;
    world.storm.ends();
    let ended = world.rest().await.and(world.check().await);
    let (tally, trace) = world.storm.take();
    (ended.map(|()| tally), trace)
}
