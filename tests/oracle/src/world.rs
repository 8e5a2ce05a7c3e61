//! The surroundings of a schedule: a table, its writers and its weather.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use ringfence_aws::wire::Wire;
use ringfence_aws::{Clock, Random};
use ringfence_core::{
    Catalog, CommandContext, Context, Envelope, EventRef, EventSchema, HandleError, Handled,
    Metadata, Outcome,
};
use ringfence_dcb_log::DcbLog;
use ringfence_local::engine::Engine;
use tokio::time::{sleep, timeout};

use crate::broken::Broken;
use crate::commands::Caches;
use crate::history::History;
use crate::jobs::{Delivery, Job, WRITERS};
use crate::table::{NOW_MS, TABLE, table};
use crate::weather::{CALLER, STRAY_MAX_MS, Weather};
use crate::wrong::{Machine, pace};
use crate::{Kind, Mutant, Schedule, Subject, claims};

/// Clocks differ by at most this, either way. A log still follows a cause that is this far ahead.
const SKEW_MAX_MS: u64 = 20_000;
/// Between two commands a clock jumps back or forth by up to this.
const WOBBLE_MAX_MS: u64 = 1_000;
/// A command with a deadline has at most this time.
const BUDGET_MAX_MS: u64 = 1_000;
/// A warm writer keeps this many decisions of each slice.
const WARM: usize = 8;

/// The end of one delivery of a command.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) job: usize,
    pub(crate) copy: usize,
    /// The time of the event that caused it, in milliseconds since 1970.
    pub(crate) cause_ms: Option<u64>,
    /// It came this long after its deadline, in milliseconds.
    pub(crate) late_ms: u64,
    /// `None` if its writer crashed.
    pub(crate) result: Option<Result<Handled, HandleError>>,
}

/// A table, its writers and its weather.
pub(crate) struct World {
    pub(crate) engine: Engine,
    pub(crate) catalog: Catalog,
    pub(crate) jobs: Vec<Job>,
    schedule: Schedule,
    mutant: Option<Mutant>,
    client: Client,
    pub(crate) weather: Arc<Weather>,
    /// The true time, which is the store's.
    clock: Clock,
    writers: Vec<Writer>,
}

struct Writer {
    log: Broken<DcbLog>,
    clock: Clock,
    caches: Caches,
    /// Ahead of the true time by this; [`SKEW_MAX_MS`] means no difference.
    skew_ms: u64,
    /// In a schedule of wrong clocks.
    machine: Option<Machine>,
}

impl World {
    pub(crate) fn new(schedule: Schedule, mutant: Option<Mutant>) -> Self {
        let catalogs = [
            catalog::ProductCatalog::catalog(),
            courses::Courses::catalog(),
            ordering::Ordering::catalog(),
            crate::gates::catalog(),
            projects::Projects::catalog(),
        ];
        let catalogs = catalogs.map(|catalog| catalog.expect("free of contradictions"));
        // In some schedules fences have copies, so few that they meet.
        let copies = if schedule.seed % 5 == 4 { 2 } else { 0 };
        let catalog = Catalog::compose(catalogs).expect("free of contradictions");
        let catalog = with_copies(&catalog, copies);
        let mut random = Random::new(&[schedule.seed, 4]);
        let keys_only = random.chance(50) && schedule.kinds.contains(&Kind::KeysOnly);
        let engine = Engine::memory().expect("a database in memory");
        engine.create_table(&table(&catalog, keys_only), TABLE).expect("a table");
        let (wire, clock) = (Wire::default(), Clock::running(NOW_MS));
        let weather = Arc::new(Weather::new(&schedule, mutant, clock.clone()));
        wire.direct(weather.clone());
        let machines: Vec<_> = match schedule.subject {
            Subject::Clocks => {
                wire.tell_time(clock.clone());
                Machine::all(mutant != Some(Mutant::StoreTimeUnheard)).map(Some).collect()
            }
            _ => (0..WRITERS).map(|_| None).collect(),
        };
        let store = engine.clone();
        let client = wire
            .client_of(Arc::new(move |operation: &str, body: &[u8]| store.call(operation, body)));
        let jobs = schedule.jobs.iter().map(|number| Job::new(schedule.seed, *number)).collect();
        let writers = Vec::new();
        let mut world =
            Self { engine, catalog, jobs, schedule, mutant, client, weather, clock, writers };
        let writers = machines.into_iter().map(|machine| world.writer(machine, &mut random));
        world.writers = writers.collect();
        world
    }

    fn writer(&self, machine: Option<Machine>, random: &mut Random) -> Writer {
        let of_machine = machine.as_ref().map(|machine| machine.clock.clone());
        let clock = of_machine.unwrap_or_else(|| Clock::running(NOW_MS));
        let (warm, skew_ms) = (random.chance(50), random.below(2 * SKEW_MAX_MS));
        let warm = warm && machine.as_ref().is_none_or(Machine::keeps_decisions);
        // All writers do so, or none does.
        let keeps = Random::new(&[self.schedule.seed, 8]).chance(80) && self.has(Kind::Snapshots);
        let snapshots = keeps.then(|| self.weather.clone());
        let (log, mutant) = (self.log(&clock), self.mutant);
        let claims = self.jobs.iter();
        let claims =
            claims.filter_map(|job| Some((job.id(), claims::named(&job.command)?.clone())));
        let claims = claims.collect();
        Writer {
            log: Broken { log, mutant, clock: clock.clone(), snapshots, claims },
            clock,
            caches: Caches::new(if warm && self.has(Kind::Warm) { WARM } else { 0 }),
            machine,
            skew_ms: if self.has(Kind::Skew) { skew_ms } else { SKEW_MAX_MS },
        }
    }

    fn has(&self, kind: Kind) -> bool {
        self.schedule.kinds.contains(&kind)
    }

    pub(crate) fn log(&self, clock: &Clock) -> DcbLog {
        DcbLog::new(self.client.clone(), TABLE, self.catalog.clone(), clock.clone())
    }

    pub(crate) async fn deliver(&self, job: &Job, copy: usize, delivery: Delivery) -> End {
        let (start_ms, writer) = match self.schedule.subject {
            Subject::Clocks => {
                let writer = (job.number + copy + delivery.writer) % self.writers.len();
                (delivery.start_ms * pace(self.schedule.seed), writer)
            }
            _ => (delivery.start_ms, delivery.writer),
        };
        sleep(Duration::from_millis(start_ms)).await;
        let writer = &self.writers[writer];
        let mut random = Random::new(&[self.schedule.seed, 5, job.number as u64, copy as u64]);
        let (wobble, budget) = (random.below(WOBBLE_MAX_MS), random.below(BUDGET_MAX_MS));
        let deadlines =
            self.has(Kind::Deadline) && Random::new(&[self.schedule.seed, 6]).chance(50);
        // A clock that is set during a command moves its deadline, so a schedule has only one of the two.
        let wobble = if self.has(Kind::Skew) && !deadlines { wobble } else { 0 };
        let _under_way = match &writer.machine {
            Some(machine) => Some(machine.begin(self.clock.now_ms(), &mut random)),
            None => {
                writer.clock.set(NOW_MS - SKEW_MAX_MS + start_ms + writer.skew_ms + wobble);
                None
            }
        };
        let deadline_ms = deadlines.then(|| writer.clock.machine_ms() + budget);
        let cause_ms = random.chance(30).then(|| self.weather.newest()).flatten();
        let envelope = Envelope {
            metadata: metadata(job),
            idempotency_key: job.keyed.then(|| job.id()),
            cause_ms,
            deadline_ms,
            context: CommandContext { now_ms: job.now_ms, ..CommandContext::default() },
        };
        let caller = (job.number, copy);
        self.weather.note(format!("{caller:?} begins: {:?} {delivery:?}", job.command));
        let handled = job.command.handle(&writer.log, &self.catalog, &writer.caches, &envelope);
        let handled = CALLER.scope(caller, handled);
        let crash = delivery.crash_ms.filter(|_| self.has(Kind::Crash));
        let result = match crash {
            None => Some(handled.await),
            Some(ms) => timeout(Duration::from_millis(ms), handled).await.ok(),
        };
        self.weather.note(format!("{caller:?} ends: {result:?}"));
        let late_ms = deadline_ms.map_or(0, |ms| writer.clock.machine_ms().saturating_sub(ms));
        End { job: job.number, copy, cause_ms, late_ms, result }
    }

    /// A new writer sends each command with a key once more. If the command took effect, it gets the events of the
    /// first run.
    pub(crate) async fn repeats(&self, history: &History) -> Result<(), String> {
        let clock = Clock::fixed(NOW_MS + STRAY_MAX_MS);
        let log = self.log(&clock);
        for job in self.jobs.iter().filter(|job| job.keyed) {
            let Some(effect) = history.commits.iter().find(|commit| commit.command == job.id())
            else {
                continue;
            };
            let (caches, key) = (Caches::new(0), Some(job.id()));
            let envelope = Envelope { idempotency_key: key, ..Envelope::default() };
            let again = job.command.handle(&log, &self.catalog, &caches, &envelope).await;
            let events = match &again {
                Ok(Handled {
                    outcome: Outcome::Accepted(events) | Outcome::Rejected { events, .. },
                    repeated: true,
                    ..
                }) => events,
                _ => return Err(format!("{:?} is repeated and ends with {again:?}", job.command)),
            };
            let id = |event: &EventRef| format!("{}/{}", event.partition, event.slot);
            if !events.iter().map(id).eq(effect.events.iter().cloned()) {
                return Err(format!("{effect:?} is repeated with {events:?}"));
            }
        }
        Ok(())
    }

    /// Nothing is blocked for ever: alone, with fresh reads, every command is settled at once.
    pub(crate) async fn lone_writer(&mut self) -> Result<(), String> {
        // A dead writer may have announced an append, with a clock that is ahead.
        let clock = Clock::fixed(self.clock.now_ms() + 2 * SKEW_MAX_MS + STRAY_MAX_MS);
        let log = self.log(&clock);
        for job in &self.jobs {
            let envelope = Envelope { metadata: metadata(job), ..Envelope::default() };
            let caches = Caches::new(0);
            match job.command.handle(&log, &self.catalog, &caches, &envelope).await {
                Ok(Handled { attempts: 1, repeated: false, .. }) => {}
                other => return Err(format!("alone, {:?} ends with {other:?}", job.command)),
            }
        }
        Ok(())
    }
}

fn metadata(job: &Job) -> Metadata {
    let mut metadata = Metadata::default();
    metadata.insert("commandId", job.id()).expect("not a key of the log");
    metadata
}

/// The same events, but the fence of each partition that has one has so many copies.
fn with_copies(catalog: &Catalog, copies: u16) -> Catalog {
    let mut contexts: BTreeMap<&str, Vec<EventSchema>> = BTreeMap::new();
    for schema in catalog.schemas() {
        let context = catalog.context(&schema.name).expect("it is of the catalog");
        contexts.entry(context).or_default().push(EventSchema { copies, ..schema.clone() });
    }
    let contexts = contexts.into_iter().map(|(context, schemas)| {
        Catalog::new(context.to_owned(), schemas).expect("free of contradictions")
    });
    Catalog::compose(contexts).expect("free of contradictions")
}
