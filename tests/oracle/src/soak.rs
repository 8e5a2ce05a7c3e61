//! The soak: the shop runs for minutes on a store with limits, as with `cargo local --throttle`, in real functions and
//! in real time. Several clients send commands as fast as the machine answers, and functions are killed in the middle
//! of their work. In the end everything is caught up and checked, and no process has grown.
//!
//! A seed determines the commands of each client and the functions that are killed. The times follow from the machine.

mod check;
mod memory;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use futures::future::{join_all, join3};
use ringfence_aws::Random;
use ringfence_aws::wire::Limits;
use ringfence_local::programs;
use ringfence_local::stack::{RunningStack, StackOptions};
use ringfence_local::template::Template;
use ringfence_local::{stack_root, workspace_root};
use serde_json::{Value, json};
use tokio::time::{sleep, sleep_until, timeout_at};

use check::Tables;
use memory::Memory;

/// The program of every function, and the command line.
const PROGRAMS: [&str; 2] = ["ringfence-local", "ringfence"];
const CLIENTS: u64 = 4;
const CUSTOMERS: u64 = 20;
const PRODUCTS: u64 = 30;
/// How often a client sends a command again that got no answer.
const TRIES: u32 = 40;
const TRIES_PAUSE: Duration = Duration::from_millis(500);
/// The pause before a function is killed, in milliseconds: at least this, and less than twice as much.
const KILL_PAUSE_MS: u64 = 4_000;
/// A function is not killed again within this time. The run of a reactor after a killed one is careful, and if it is
/// killed too, the lane of its event is parked.
const KILLED_AGAIN: Duration = Duration::from_secs(240);

/// Runs the shop for so many minutes, and checks it.
///
/// # Errors
/// Something is wrong, or the stack can't be run.
pub fn check(minutes: u64, seed: u64) -> Result<String, String> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    runtime.block_on(soak(minutes, seed)).map_err(|error| format!("{error:#}"))
}

async fn soak(minutes: u64, seed: u64) -> Result<String> {
    let folder = workspace_root().join("target/soak");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let (stack, command_line) = started(folder.clone()).await?;
    let tables = Tables::of(&stack)?;
    set_up(&stack).await?;
    tables.wait(&stack).await?;

    let time = Duration::from_secs(60 * minutes);
    let end = tokio::time::Instant::now() + time;
    let clients = (0..CLIENTS).map(|n| Client::new(&stack, n, seed).run(end));
    let mut memory = Memory::new(time);
    let (placed, killed, ()) =
        join3(join_all(clients), kill(&stack, seed, end), memory.watch(end)).await;
    let placed = placed.into_iter().collect::<Result<Vec<_>>>()?;
    let commands: u64 = placed.iter().map(|client| client.commands).sum();
    let placed: Vec<String> = placed.into_iter().flat_map(|client| client.placed).collect();

    let caught_up = Instant::now();
    tables.wait(&stack).await?;
    let caught_up = caught_up.elapsed().as_secs();
    let events = tables.check(&stack, &placed).await?;
    check::verify(&command_line, &stack).await?;
    let memory = memory.check()?;
    tables.check_mistakes(&stack, &placed).await?;
    drop(stack);
    fs::remove_dir_all(&folder)?;
    let kills: u64 = killed.values().sum();
    Ok(format!(
        "{minutes} minutes, seed {seed}: {commands} commands of {CLIENTS} clients, {events} events, caught up after \
         {caught_up} s, {kills} kills of {} functions, {memory}",
        killed.len()
    ))
}

/// The stack, and the command line's program.
async fn started(folder: PathBuf) -> Result<(RunningStack, PathBuf)> {
    let (root, template) = (stack_root(), Template::of_stack()?);
    let built = programs::build(&root, PROGRAMS.into_iter()).await?;
    let built = |name: &str| built.get(name).cloned().with_context(|| format!("no {name}"));
    let (local, command_line) = (built(PROGRAMS[0])?, built(PROGRAMS[1])?);
    let functions = template.model("")?.functions.into_iter();
    let options = StackOptions {
        root,
        template,
        // On the disk, so the events are not in the memory of this process.
        keep: Some(folder.join("kept")),
        data: folder,
        port: 0,
        programs: functions.map(|function| (function.binary, local.clone())).collect(),
        auth: false,
        limits: Some(Limits::default()),
    };
    Ok((RunningStack::start(&options).await?, command_line))
}

/// The customers and products that the commands are about. The reactors begin with the events after their first run.
async fn set_up(stack: &RunningStack) -> Result<()> {
    for reactor in check::LANES {
        stack.invoke(reactor, &json!({})).await?;
    }
    for n in 0..CUSTOMERS {
        let email = format!("c{n}@example.com");
        let command = json!({ "customerId": format!("c{n}"), "name": "Ada", "email": email });
        send(stack, "register-customer", &command).await?;
    }
    for n in 0..PRODUCTS {
        let command = json!({
            "productId": format!("p{n}"), "name": "Lamp", "description": "Gives light.", "price": price(n),
        });
        send(stack, "add-product", &command).await?;
    }
    Ok(())
}

fn price(n: u64) -> Value {
    json!({ "amount": 1_000 + n, "currency": "EUR" })
}

/// Sends a command until it is accepted or rejected.
async fn send(stack: &RunningStack, slice: &str, command: &Value) -> Result<()> {
    let mut last = String::new();
    for _ in 0..TRIES {
        match stack.invoke(slice, command).await {
            Ok(answer) if answer["accepted"] == true || answer["status"] == 422 => return Ok(()),
            Ok(answer) => last = answer.to_string(),
            Err(error) => last = error.to_string(),
        }
        sleep(TRIES_PAUSE).await;
    }
    bail!("{slice} {command}: no answer after {TRIES} tries: {last}")
}

/// One of these; `None` if there are none.
fn any<'t, T>(random: &mut Random, of: &'t [T]) -> Option<&'t T> {
    of.get(usize::try_from(random.below(of.len() as u64)).ok()?)
}

/// A client, which sends one command after the other.
struct Client<'s> {
    stack: &'s RunningStack,
    name: u64,
    random: Random,
    orders: u64,
    sent: Sent,
}

/// The commands of a client.
#[derive(Default)]
struct Sent {
    commands: u64,
    /// The orders that it has placed.
    placed: Vec<String>,
}

impl<'s> Client<'s> {
    fn new(stack: &'s RunningStack, name: u64, seed: u64) -> Self {
        let (orders, sent) = (0, Sent::default());
        Self { stack, name, random: Random::new(&[seed, name]), orders, sent }
    }

    async fn run(mut self, end: tokio::time::Instant) -> Result<Sent> {
        while tokio::time::Instant::now() < end {
            match self.random.below(10) {
                0 => self.cancel().await?,
                1 => {
                    let n = self.random.below(PRODUCTS);
                    let command = json!({ "productId": format!("p{n}"), "price": price(self.random.below(9)) });
                    send(self.stack, "change-product-price", &command).await?;
                }
                2 => {
                    let command = json!({
                        "orderId": self.order(), "customerId": self.customer(), "productId": "p1", "quantity": 1,
                    });
                    send(self.stack, "order-product", &command).await?;
                }
                _ => self.place().await?,
            }
            self.sent.commands += 1;
        }
        Ok(self.sent)
    }

    /// A new order's id.
    fn order(&mut self) -> String {
        self.orders += 1;
        format!("o{}-{}", self.name, self.orders)
    }

    fn customer(&mut self) -> String {
        format!("c{}", self.random.below(CUSTOMERS))
    }

    async fn place(&mut self) -> Result<()> {
        let (order, first) = (self.order(), self.random.below(PRODUCTS - 2));
        let products = first..=first + self.random.below(3);
        let products: Vec<_> = products.map(|n| format!("p{n}")).collect();
        let command =
            json!({ "orderId": order, "customerId": self.customer(), "productIds": products });
        send(self.stack, "place-order", &command).await?;
        // A command without an answer may have taken effect, and its repeat is rejected.
        self.sent.placed.push(order);
        Ok(())
    }

    async fn cancel(&mut self) -> Result<()> {
        if let Some(order) = any(&mut self.random, &self.sent.placed) {
            send(self.stack, "cancel-order", &json!({ "orderId": order })).await?;
        }
        Ok(())
    }
}

/// Kills functions until the end. Returns how often each was killed.
async fn kill(stack: &RunningStack, seed: u64, end: tokio::time::Instant) -> BTreeMap<String, u64> {
    let mut random = Random::new(&[seed, CLIENTS]);
    let (mut killed, mut last) = (BTreeMap::new(), BTreeMap::<String, Instant>::new());
    loop {
        let pause = Duration::from_millis(KILL_PAUSE_MS + random.below(KILL_PAUSE_MS));
        if timeout_at(end, sleep(pause)).await.is_err() {
            sleep_until(end).await;
            return killed;
        }
        let is_spared =
            |name: &String| last.get(name).is_some_and(|at| at.elapsed() < KILLED_AGAIN);
        let names: Vec<_> =
            stack.functions.running().into_iter().filter(|name| !is_spared(name)).collect();
        if let Some(name) = any(&mut random, &names)
            && stack.functions.kill(name)
        {
            *killed.entry(name.clone()).or_default() += 1;
            last.insert(name.clone(), Instant::now());
        }
    }
}
