//! Lanes: concurrent runs of a reactor, or of an ordered automation; persons and operators; a receiver that fails.

use std::sync::Arc;
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use futures::FutureExt;
use futures::future::{LocalBoxFuture, join, join_all};
use ringfence_aws::{Clock, Random, Retry};
use ringfence_core::prelude::*;
use ringfence_core::{
    Append, Appended, BoundaryId, Envelope, Event, EventLog, Lane, NewEvent, SequencedEvent,
    id_type,
};
use ringfence_dcb_log::DcbLog;
use ringfence_feed::{Checkpoint, Index, Indexer};
use ringfence_local::engine::Engine;
use ringfence_reactors::{
    Delivery, Ended, Failed, Handler, InDoubt, Lanes, PAUSES, ReactorError, ReactorTable, Starts,
    Unpark,
};
use tokio::sync::Mutex;
use tokio::time::{sleep, timeout};

use super::far::{Expected, Far, Promise};
use super::storm::{LATE_MAX_MS, Storm};
use crate::table::{TABLE, tables};
use crate::weather::CALLER;
use crate::{Kind, Mutant, Schedule, Tally};

/// The steps of a schedule.
pub(crate) const STEPS: usize = 24;
const NAME: &str = "post";
/// All events of a schedule take less than this.
const LONG: Duration = Duration::from_secs(60);
/// An ordered automation handles events from this long before its first run.
const OVERLAP: Duration = Duration::from_secs(3_600);
/// The same without the minutes by which clocks differ.
const SURELY_HANDLED_MS: u64 = (3_600 - 660) * 1_000;
/// Everything is at rest after this many runs, or it never will be.
const RUNS_MAX: usize = 80;

id_type!(OrderId, "names an order");
id_type!(CustomerId, "names a customer");

/// Letters shall be sent for an order.
#[derive(Clone, Debug, PartialEq, Event)]
struct Asked {
    #[tag(partition)]
    order_id: OrderId,
    #[tag(cross_partition)]
    customer_id: CustomerId,
    letters: u32,
}

/// Nothing handles it.
#[derive(Clone, Debug, PartialEq, Event)]
struct Noted {
    #[tag(partition)]
    order_id: OrderId,
}

/// The handler of the events in a schedule.
#[derive(Clone, Copy)]
struct Shape {
    by_customer: bool,
    parks: bool,
    starts: Starts,
    /// It is an ordered automation: it keeps no receipts, and recognizes repeats by their keys.
    is_automation: bool,
}

impl Shape {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(&[seed, 24]);
        let (is_automation, by_customer) = (random.chance(25), random.chance(50));
        let (parks, starts_now) = (random.chance(50), random.chance(30));
        let starts = if starts_now || is_automation { Starts::Now } else { Starts::Beginning };
        Self { by_customer, parks: parks && !is_automation, starts, is_automation }
    }

    fn promise(self) -> Promise {
        let overlap_ms = match (self.starts, self.is_automation) {
            (Starts::Beginning, _) => None,
            (Starts::Now, true) => Some(SURELY_HANDLED_MS),
            (Starts::Now, false) => Some(0),
        };
        Promise { parks: self.parks, receipts: !self.is_automation, overlap_ms }
    }
}

/// The handler of one run.
struct Post {
    shape: Shape,
    far: Far,
    run: usize,
    is_in_wrong_lane: bool,
}

impl Handler for Post {
    fn name(&self) -> &'static str {
        NAME
    }

    fn handles(&self, event: &SequencedEvent) -> bool {
        event.event_type == Asked::NAME
    }

    fn lane(&self, event: &SequencedEvent) -> BoundaryId {
        match self.shape.by_customer != self.is_in_wrong_lane {
            true => Lane::Tag("customerId").of(event),
            false => Lane::Partition.of(event),
        }
    }

    fn starts(&self) -> Starts {
        self.shape.starts
    }

    fn overlap(&self) -> Duration {
        if self.shape.is_automation { OVERLAP } else { Duration::ZERO }
    }

    fn in_doubt(&self) -> InDoubt {
        if self.shape.parks { InDoubt::Park } else { InDoubt::Repeat }
    }

    fn keeps_receipts(&self) -> bool {
        !self.shape.is_automation
    }

    fn plan(&self, event: &SequencedEvent) -> Result<usize, Failed> {
        Ok(event.data["letters"]
            .as_u64()
            .map_or(0, |letters| usize::try_from(letters).unwrap_or(0)))
    }

    fn carry_out<'a>(&'a self, delivery: Delivery<'a>) -> LocalBoxFuture<'a, Result<(), Failed>> {
        async move { self.far.send(self.run, &delivery).await }.boxed_local()
    }
}

/// The tables of a schedule, and all participants.
struct World {
    storm: Arc<Storm>,
    shape: Shape,
    far: Far,
    client: Client,
    log: DcbLog,
    indexer: Indexer,
    index: Index,
    /// One event is published at a time, so the order is known. The same holds for operators.
    publishing: Mutex<()>,
    operating: Mutex<()>,
}

impl World {
    fn new(schedule: &Schedule, mutant: Option<Mutant>) -> Self {
        let catalog =
            || Catalog::new("orders", [Asked::SCHEMA, Noted::SCHEMA]).expect("no contradictions");
        let engine = Engine::memory().expect("a database in memory");
        tables(&engine, &catalog());
        let storm = Storm::new(schedule, mutant);
        let (client, calm) = storm.clients(&engine);
        let clock = Clock::running(storm.now_ms());
        let log = |client: &Client| DcbLog::new(client.clone(), TABLE, catalog(), clock.clone());
        Self {
            shape: Shape::new(schedule.seed),
            far: Far::new(storm.clone()),
            log: log(&calm),
            indexer: Indexer::new([log(&calm).into()], calm.clone(), "index"),
            index: Index::new(client.clone(), "index", [log(&client).into()]),
            publishing: Mutex::default(),
            operating: Mutex::default(),
            storm,
            client,
        }
    }

    async fn step(&self, step: usize) {
        let random = &mut self.storm.random(step);
        sleep(self.storm.delay(random)).await;
        match random.below(20) {
            0..=7 => self.publish(random).await,
            8..=12 => CALLER.scope((step, 0), self.run(random)).await,
            13 => {
                let beside = &mut self.storm.random(STEPS + step);
                let first = CALLER.scope((step, 0), self.run(random));
                join(first, CALLER.scope((step, 1), self.run(beside))).await;
            }
            14..=18 => CALLER.scope((step, 0), self.ask(random)).await,
            _ => CALLER.scope((step, 0), self.send_back(random)).await,
        }
    }

    async fn publish(&self, random: &mut Random) {
        for _ in 0..=random.below(3) {
            let (order, customer) = (random.below(3), random.below(2));
            let (letters, is_refused) = (1 + random.below(2), random.chance(6));
            let order_id: OrderId = format!("o{order}").parse().expect("an id");
            let customer_id: CustomerId = format!("c{customer}").parse().expect("an id");
            let is_noted = random.chance(15);
            let event: NewEvent = match is_noted {
                true => Noted { order_id }.into(),
                false => {
                    Asked { order_id, customer_id, letters: u32::try_from(letters).unwrap_or(1) }
                        .into()
                }
            };
            let _alone = self.publishing.lock().await;
            let envelope = Envelope::default();
            let append =
                Append { events: vec![event], seen: None, record: None, envelope: &envelope };
            let Ok(Appended::Committed(events)) = self.log.append(append).await else {
                unreachable!("nothing disturbs the log")
            };
            let partitions = events.iter().map(|event| event.partition.clone());
            for (_, outcome) in self.indexer.index(partitions, Retry::default()).await {
                outcome.expect("nothing disturbs the indexer");
            }
            let lane = match self.shape.by_customer {
                true => format!("c{customer}"),
                false => format!("o{order}"),
            };
            self.far.expect(Expected {
                id: events[0].id(),
                lane,
                letters: if is_noted { 0 } else { usize::try_from(letters).unwrap_or(1) },
                is_refused: is_refused && self.storm.has(Kind::Effect),
                published: self.storm.now_ms(),
            });
            self.storm.note(|| format!("published {}", events[0].id()));
        }
    }

    fn reader(&self, run: usize, clock: Clock) -> Lanes<Post> {
        let is_in_wrong_lane = self.storm.is(Mutant::WrongLane);
        let handler = Post { shape: self.shape, far: self.far.clone(), run, is_in_wrong_lane };
        Lanes { handler, index: self.index.clone(), table: self.table(clock) }
    }

    fn table(&self, clock: Clock) -> ReactorTable {
        ReactorTable::new(self.client.clone(), "views", clock)
    }

    async fn run(&self, random: &mut Random) {
        let (clock, crash) = (self.storm.clock(random), self.storm.crash(random));
        let (is_short, ms) = (random.chance(40), random.below(200));
        let is_short = is_short && self.storm.has(Kind::Deadline);
        let time = if is_short { Duration::from_millis(ms) } else { LONG };
        let run = self.far.begin();
        self.storm.note(|| format!("run {run} begins for {time:?}, and crashes after {crash:?}"));
        let lanes = self.reader(run, clock);
        let ran = lanes.run(time);
        let ran = match crash {
            None => Some(ran.await),
            Some(after) => timeout(after, ran).await.ok(),
        };
        self.storm.note(|| format!("run {run} ends: {ran:?}"));
        match ran {
            Some(Ok(_)) => self.far.end(run),
            _ => self.storm.count(|tally| tally.unanswered += 1),
        }
    }

    /// A person asks for one of the lanes of a page, which may be old by then; perhaps also for the opposite.
    async fn ask(&self, random: &mut Random) {
        let table = self.table(self.storm.clock(random));
        let Ok(page) = table.parked(NAME).await else { return };
        let (which, pause_ms) = (random.below(3), random.below(2_000));
        let (is_skip, asks_again) = (random.chance(40), random.chance(50));
        if random.chance(30) {
            sleep(Duration::from_millis(pause_ms)).await;
        }
        let which = usize::try_from(which).unwrap_or(0).min(page.len().saturating_sub(1));
        let Some(lane) = page.get(which) else { return };
        for is_skip in [is_skip, !is_skip].into_iter().take(1 + usize::from(asks_again)) {
            self.ask_for(&table, &lane.lane, &lane.event, is_skip).await;
        }
    }

    async fn ask_for(&self, table: &ReactorTable, lane: &BoundaryId, event: &str, is_skip: bool) {
        let ask = if is_skip { Unpark::Skip("it is fine".to_owned()) } else { Unpark::Retry };
        let asking = self.far.ask(event, is_skip);
        let asked = table.ask(NAME, lane, event, &ask).await;
        self.far.asked(asking, asked.is_ok());
        self.storm.note(|| format!("a person asks for {ask:?} of {event}: {asked:?}"));
    }

    /// An operator moves the reactor back to where it was. After a request without an answer there is no other.
    async fn send_back(&self, random: &mut Random) {
        let _alone = self.operating.lock().await;
        let table = self.table(self.storm.clock(random));
        let (is_again, of_100) = (random.chance(60), random.below(100));
        let is_again = is_again && !self.shape.is_automation;
        if self.far.is_sent_back_in_doubt() {
            return;
        }
        let Ok(standing) = table.standing(NAME).await else { return };
        let Some(at) = standing.checkpoint else { return };
        let to = i64::from(at) * i64::try_from(of_100).unwrap_or(0) / 100;
        let place = Checkpoint::try_from(to).expect("not negative");
        let n = self.far.send_back(usize::try_from(to).unwrap_or(0), is_again);
        let sent = table.send_back(NAME, place, is_again).await;
        self.storm.note(|| format!("sent back to {to}, again: {is_again}: {sent:?}"));
        self.far.sent_back(
            n,
            match sent {
                Ok(()) => Some(true),
                Err(ReactorError::HasParked { .. }) => Some(false),
                Err(_) => None,
            },
        );
    }

    /// Runs until everything is done. Persons handle the lanes that wait for them.
    async fn rest(&self) -> Result<(), String> {
        for _ in 0..RUNS_MAX {
            sleep(PAUSES[3] + Duration::from_secs(1)).await;
            let (run, clock) = (self.far.begin(), Clock::running(self.storm.now_ms()));
            let ran = self.reader(run, clock.clone()).run(LONG).await;
            let ran = ran.map_err(|error| format!("in the end a run fails: {error}"))?;
            self.far.end(run);
            let table = self.table(clock);
            let page = table.parked(NAME).await.map_err(|error| error.to_string())?;
            if ran.ended == Ended::Idle && page.is_empty() {
                let end = i64::try_from(self.far.events()).unwrap_or(i64::MAX);
                return match i64::from(ran.checkpoint) == end {
                    true => Ok(()),
                    false => Err(format!("at rest at {:?} of {end} events", ran.checkpoint)),
                };
            }
            for lane in page.iter().filter(|lane| lane.next_ms.is_none()) {
                let (has_happened, is_refused) = self.far.look(&lane.event);
                self.ask_for(&table, &lane.lane, &lane.event, has_happened || is_refused).await;
            }
        }
        Err("it never comes to rest".to_owned())
    }
}

pub(crate) async fn run(
    schedule: &Schedule,
    mutant: Option<Mutant>,
) -> (Result<Tally, String>, Vec<String>) {
    let world = World::new(schedule, mutant);
    join_all(schedule.jobs.iter().map(|step| world.step(*step))).await;
    // Everything that is still on its way arrives.
    sleep(Duration::from_millis(2 * LATE_MAX_MS) + LONG).await;
    world.storm.ends();
    let ended = match world.rest().await {
        Ok(()) => world.far.check(world.shape.promise()),
        Err(why) => world.far.check(world.shape.promise()).and(Err(why)),
    };
    let (tally, trace) = world.storm.take();
    (ended.map(|()| tally), trace)
}
