//! The queue of commands: callers who repeat their requests and look for answers, batches that are delivered again,
//! processes that crash.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use futures::future::join_all;
use ringfence_aws::Random;
use ringfence_core::prelude::*;
use ringfence_lambda::{Call, Issuers, Service};
use ringfence_local::engine::Engine;
use ringfence_services::queue::{QueuedSlices, RunCommands};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::line::Line;
use super::storm::{LATE_MAX_MS, Storm};
use super::tills::{COINS_MAX, Tills};
use crate::table::{TABLE, tables};
use crate::weather::CALLER;
use crate::{Kind, Mutant, Schedule, Tally};

/// The steps of a schedule.
pub(crate) const STEPS: usize = 24;
/// The commands of its steps, some of them given more than once.
const COMMANDS: u64 = 8;
/// Lambda ends a batch after this time. A received message becomes visible later.
const FUNCTION_TIME: Duration = Duration::from_secs(30);
/// A batch has at most this time.
const BATCH_MS_MAX: u64 = 25_000;
/// Everything is at rest after this many rounds, or it never will be.
const ROUNDS_MAX: usize = 60;

/// A command of a schedule.
struct Given {
    id: String,
    till: String,
    empties: bool,
    is_given: Cell<bool>,
}

impl Given {
    fn new(seed: u64, n: u64) -> Self {
        let mut random = Random::new(&[seed, 26, n]);
        let (till, empties) = (format!("t{}", random.below(2)), random.chance(35));
        Self { id: format!("c{n}"), till, empties, is_given: Cell::new(false) }
    }

    fn slice(&self) -> &'static str {
        if self.empties { "empty-till" } else { "take-coin" }
    }

    /// The number of coins afterwards, with so many coins in the till; `None` if it is rejected.
    fn after(&self, coins: usize) -> Option<usize> {
        match self.empties {
            true => (coins > 0).then_some(0),
            false => (coins < COINS_MAX).then_some(coins + 1),
        }
    }
}

struct World {
    storm: Arc<Storm>,
    line: Line,
    client: Client,
    calm: Client,
    given: Vec<Given>,
    /// The first answers to callers, by the ids of the commands.
    read: Mutex<BTreeMap<String, Value>>,
    /// The first answer that changed.
    changed: Mutex<Option<String>>,
}

impl World {
    fn new(schedule: &Schedule, mutant: Option<Mutant>) -> Self {
        let engine = Engine::memory().expect("a database in memory");
        tables(&engine, &Tills::catalog().expect("free of contradictions"));
        let storm = Storm::new(schedule, mutant);
        let (client, calm) = storm.clients(&engine);
        let given = (0..COMMANDS).map(|n| Given::new(schedule.seed, n)).collect();
        let line = Line::new(storm.clone());
        Self { storm, line, client, calm, given, read: Mutex::default(), changed: Mutex::default() }
    }

    /// A new process.
    fn function(&self, random: &mut Random) -> RunCommands {
        let logs = self.storm.logs(self.client.clone(), random);
        let (slices, issuers) = (QueuedSlices::of::<Tills>(), Issuers::default());
        RunCommands::on(&slices, &logs, "views", Box::new(self.line.clone()), issuers)
            .expect("its slices are on its log")
    }

    /// A caller gives a command and looks for its answer, or Lambda delivers some batches.
    async fn step(&self, number: usize) {
        let random = &mut self.storm.random(number);
        sleep(self.storm.delay(random)).await;
        let given = &self.given[usize::try_from(random.below(COMMANDS)).unwrap_or(0)];
        let (gives, times) = (random.chance(45), 1 + random.below(8));
        let step = async {
            if gives {
                self.give(given, random).await;
            }
            for _ in 0..times {
                match gives {
                    true => self.look(given, random).await,
                    false => self.deliver(random).await,
                }
                sleep(Duration::from_millis(random.below(3_000))).await;
            }
        };
        CALLER.scope((number, 0), step).await;
    }

    /// A caller gives a command. Returns the status.
    async fn give(&self, given: &Given, random: &mut Random) -> u64 {
        let (crash, known) = (self.storm.crash(random), self.known(given));
        given.is_given.set(true);
        let parameters = json!({ "context": "tills", "slice": given.slice() });
        let body = json!({ "tillId": given.till }).to_string();
        let asked = self.ask("POST", &parameters, given, &body, random);
        let answered = timeout(crash.unwrap_or(FUNCTION_TIME), asked).await;
        let (status, answer) = answered.unwrap_or((504, Value::Null));
        self.storm.note(|| format!("{} is given: {status} {answer}", given.id));
        if status < 300 {
            self.note_answer(given, known, answer);
        }
        status
    }

    /// A caller asks for the answer of a command.
    async fn look(&self, given: &Given, random: &mut Random) {
        let known = self.known(given);
        let (status, answer) = self.ask("GET", &json!({ "id": given.id }), given, "", random).await;
        self.storm.note(|| format!("a caller looks for {}: {status} {answer}", given.id));
        if status == 200 {
            self.note_answer(given, known, answer);
        }
    }

    /// The answer that a caller has read.
    fn known(&self, given: &Given) -> Option<Value> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner).get(&given.id).cloned()
    }

    /// A caller reads the answer of a command, and knew `known` when it asked.
    fn note_answer(&self, given: &Given, known: Option<Value>, answer: Value) {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let known = match answer.get("answer") {
            Some(_) => Some(read.entry(given.id.clone()).or_insert_with(|| answer.clone()).clone()),
            None => known,
        };
        if let Some(known) = known.filter(|known| *known != answer) {
            let mut changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
            let why = || format!("the answer of {} was {known} and is {answer}", given.id);
            changed.get_or_insert_with(why);
        }
    }

    async fn ask(
        &self,
        method: &str,
        parameters: &Value,
        given: &Given,
        body: &str,
        random: &mut Random,
    ) -> (u64, Value) {
        let payload = json!({
            "headers": { "idempotency-key": given.id },
            "pathParameters": parameters,
            "requestContext": { "http": { "method": method } },
            "body": body,
            "isBase64Encoded": false,
        });
        let function = self.function(random);
        let Ok(answer) = function.answer(call(payload, FUNCTION_TIME)).await else {
            return (500, Value::Null);
        };
        let body = answer["body"].as_str().unwrap_or_default();
        let body = serde_json::from_str(body).unwrap_or_default();
        (answer["statusCode"].as_u64().unwrap_or(500), body)
    }

    /// Lambda delivers a batch, and deletes the done messages unless it crashes before.
    async fn deliver(&self, random: &mut Random) {
        let crash = self.storm.crash(random);
        let (is_short, ms) = (random.chance(40), random.below(6_000));
        let is_short = is_short && self.storm.has(Kind::Deadline);
        let time = Duration::from_millis(if is_short { ms } else { BATCH_MS_MAX });
        let keeps = random.chance(15) && self.storm.has(Kind::Crash);
        let (batch, receipts) = self.line.receive();
        if batch.is_empty() {
            return;
        }
        self.storm.note(|| format!("a batch of {} for {time:?}", batch.len()));
        let function = self.function(random);
        let answer = function.answer(call(json!({ "Records": batch }), time));
        let answered = timeout(crash.unwrap_or(FUNCTION_TIME), answer).await;
        self.storm.note(|| format!("the batch ends: {answered:?}"));
        let Ok(Ok(answer)) = answered else {
            return self.storm.count(|tally| tally.unanswered += 1);
        };
        let failed = answer["batchItemFailures"].as_array().cloned().unwrap_or_default();
        for (id, receipt) in receipts {
            let has_failed = failed.iter().any(|of| of["itemIdentifier"] == *id);
            if !has_failed && !keeps {
                self.line.delete(receipt);
            }
        }
    }

    /// Callers repeat commands without an answer, and the queue is delivered until it is empty.
    async fn rest(&self) -> Result<(), String> {
        let was_given: Vec<_> = self.given.iter().filter(|of| of.is_given.get()).collect();
        let random = &mut self.storm.random(STEPS);
        for _ in 0..ROUNDS_MAX {
            sleep(Duration::from_secs(601)).await;
            for given in was_given.iter().filter(|of| self.known(of).is_none()) {
                let status = self.give(given, random).await;
                if status >= 300 {
                    return Err(format!("in the end {} is answered with {status}", given.id));
                }
            }
            self.deliver(random).await;
            for given in &was_given {
                self.look(given, random).await;
            }
            if self.line.is_empty() && was_given.iter().all(|of| self.known(of).is_some()) {
                return Ok(());
            }
        }
        Err("it never comes to rest".to_owned())
    }

    /// The ids of the commands that took effect, by their tills, in the order of the log.
    async fn effects(&self) -> BTreeMap<String, Vec<String>> {
        let scan = self.calm.scan().table_name(TABLE).send().await.expect("nothing disturbs it");
        let mut effects: BTreeMap<String, Vec<(u64, String)>> = BTreeMap::new();
        for item in scan.items().iter().filter(|item| item.contains_key("event")) {
            let text = |name: &str| item[name].as_s().cloned().unwrap_or_default();
            let slot = item["position"].as_n().ok().and_then(|slot| slot.parse().ok());
            let effect = (slot.unwrap_or(0), text("commandId"));
            effects.entry(text("id")).or_default().push(effect);
        }
        let sorted = |mut of_till: Vec<(u64, String)>| {
            of_till.sort();
            of_till.into_iter().map(|(_, command)| command).collect()
        };
        effects.into_iter().map(|(till, of_till)| (till, sorted(of_till))).collect()
    }

    /// Each command took effect once or was rejected, in the order of its till, and its answer never changed.
    async fn check(&self) -> Result<(), String> {
        if let Some(changed) = self.changed.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Err(changed);
        }
        let (effects, dead_letters) = (self.effects().await, self.line.dead_letters());
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        for till in ["t0", "t1"] {
            let group = format!("tillId:{till}");
            let taken = self.line.taken(&group);
            let effects = effects.get(&group).cloned().unwrap_or_default();
            for command in self.given.iter().filter(|of| of.till == till) {
                let count = effects.iter().filter(|of| **of == command.id).count();
                let Some(answer) = read.get(&command.id) else { continue };
                let is_accepted = answer["state"] == "accepted";
                self.storm.count(|tally| match is_accepted {
                    true => tally.accepted += 1,
                    false => tally.without_events += 1,
                });
                if count != usize::from(is_accepted) {
                    return Err(format!("{answer} of a command that took effect {count} times"));
                }
                let slot = effects.iter().position(|of| *of == command.id).map(|n| n + 1);
                if is_accepted && answer["answer"]["events"][0]["slot"] != json!(slot) {
                    return Err(format!("{answer} of the event in slot {slot:?}"));
                }
            }
            // A command that was given up took effect later, so there is no order to compare with.
            if taken.iter().any(|of| dead_letters.contains(of)) {
                continue;
            }
            let mut coins = 0;
            for (n, id) in taken.iter().enumerate() {
                let given = self.given.iter().find(|of| of.id == *id);
                let (Some(given), false) = (given, taken[..n].contains(id)) else { continue };
                let after = given.after(coins);
                if after.is_some() != effects.contains(id) {
                    return Err(format!(
                        "{id} finds {coins} coins; taken {taken:?}, done {effects:?}"
                    ));
                }
                coins = after.unwrap_or(coins);
            }
            let in_order: Vec<_> = taken.iter().filter(|of| effects.contains(of)).collect();
            let mut seen = Vec::new();
            in_order.into_iter().for_each(|of| {
                if !seen.contains(&of) {
                    seen.push(of)
                }
            });
            if !seen.iter().copied().eq(&effects) {
                return Err(format!("taken {taken:?}, done {effects:?}"));
            }
        }
        Ok(())
    }
}

fn call(payload: Value, time: Duration) -> Call {
    Call { payload, request_id: "r".to_owned(), function: "run-commands".to_owned(), time }
}

pub(crate) async fn run(
    schedule: &Schedule,
    mutant: Option<Mutant>,
) -> (Result<Tally, String>, Vec<String>) {
    let world = World::new(schedule, mutant);
    join_all(schedule.jobs.iter().map(|step| world.step(*step))).await;
    // Everything that is still on its way arrives.
    sleep(Duration::from_millis(2 * LATE_MAX_MS) + FUNCTION_TIME).await;
    world.storm.ends();
    let ended = match world.rest().await {
        Ok(()) => world.check().await,
        Err(why) => world.check().await.and(Err(why)),
    };
    let (tally, trace) = world.storm.take();
    (ended.map(|()| tally), trace)
}
