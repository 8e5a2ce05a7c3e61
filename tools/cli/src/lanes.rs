//! `ringfence parked lanes`, `retry-lane` and `skip-lane`, and `ringfence replay reactor`.

use std::fmt::{self, Display, Formatter};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::Args;
use ringfence_aws::Clock;
use ringfence_core::{rfc3339, visible};
use ringfence_reactors::{ParkedLane, ReactorError, ReactorTable, Unpark};
use ringfence_stack::Stack;
use serde_json::{Value, json};

use crate::machine::dynamo_client;
use crate::out::{Output, serialize_as, write_line};
use crate::place::CheckpointName;
use crate::tables::{IndexTable, ViewTable};
use crate::work::ensure_why;
use crate::{Lists, remark};

/// The names of the reactors and ordered automations, which read the index lane by lane.
#[must_use]
pub fn readers(stack: &Stack) -> Vec<&'static str> {
    let ordered = stack.slices().filter(|(_, slice)| slice.order.is_some());
    let ordered = ordered.map(|(_, slice)| slice.name);
    stack.reactors().map(|(_, reactor)| reactor.name).chain(ordered).collect()
}

fn ensure_reader(name: &str, lists: &Lists) -> Result<()> {
    let names = readers(&lists.stack);
    ensure!(
        names.contains(&name),
        "there is no reactor {name}: the reactors are {}",
        names.join(", ")
    );
    Ok(())
}

#[derive(Args)]
struct Tables {
    #[command(flatten)]
    views: ViewTable,
}

impl Tables {
    async fn table(&self) -> Result<ReactorTable> {
        let client = dynamo_client().await?;
        Ok(ReactorTable::new(client, &self.views.view_table, Clock::system()))
    }
}

#[derive(Args)]
pub(crate) struct Show {
    #[command(flatten)]
    tables: Tables,
    /// The reactor or ordered automation; all, if none is named.
    reactor: Option<String>,
    #[command(flatten)]
    output: Output,
}

#[derive(Args)]
#[command(after_help = "\
The reactor retries the lane within a minute, because only the reactor writes its lanes. It handles the event that
failed again, and then all later ones. If the effect may have happened already, look at the receiver first. If the lane
waits for another event by then, nothing is done.

Examples:
  ringfence parked retry-lane confirm-order orderId:ord-1/2
  ringfence parked retry-lane confirm-order --all")]
pub(crate) struct Retry {
    #[command(flatten)]
    tables: Tables,
    /// The reactor or ordered automation.
    reactor: String,
    /// The event that failed, as `ringfence parked lanes` shows it.
    #[arg(required_unless_present = "all")]
    event: Option<String>,
    /// Retries every parked lane of the reactor.
    #[arg(long, conflicts_with = "event")]
    all: bool,
}

#[derive(Args)]
#[command(after_help = "\
The event that failed is skipped, with all of its effects. Later events are handled. The reason stays in the table. If
the lane waits for another event by then, nothing is done.

Example:
  ringfence parked skip-lane confirm-order orderId:ord-1/2 --why 'the customer was called'")]
pub(crate) struct Skip {
    #[command(flatten)]
    tables: Tables,
    /// The reactor or ordered automation.
    reactor: String,
    /// The event that failed, as `ringfence parked lanes` shows it.
    event: String,
    /// The reason to skip the event.
    #[arg(long)]
    why: String,
}

#[derive(Args)]
#[command(after_help = "\
The reactor reads the events after the checkpoint again. Its lanes have receipts of the effects that happened, so
without --again only missing effects happen. With --again the receipts are ignored, and every effect gets a new key, so
the receiver takes it for a new one. An ordered automation recognizes repeats of the last 15 days by their keys. Retry
or skip parked lanes first.

Examples:
  ringfence replay reactor confirm-order --from 1000
  ringfence replay reactor notify-partner --from start --again notify-partner")]
pub(crate) struct Replay {
    #[command(flatten)]
    index: IndexTable,
    #[command(flatten)]
    tables: Tables,
    /// The reactor or ordered automation.
    reactor: String,
    /// Begins after this checkpoint: a number, or `start`.
    #[arg(long, value_name = "CHECKPOINT")]
    from: CheckpointName,
    /// Repeats every effect. Give the name a second time, as a confirmation.
    #[arg(long, value_name = "REACTOR")]
    again: Option<String>,
}

pub(crate) async fn show(arguments: &Show, lists: &Lists) -> Result<ExitCode> {
    let table = arguments.tables.table().await?;
    let names = match &arguments.reactor {
        None => readers(&lists.stack),
        Some(name) => {
            ensure_reader(name, lists)?;
            vec![&**name]
        }
    };
    let mut found = Found(Vec::new());
    for name in names {
        let lanes = table.parked(name).await?;
        found.0.extend(lanes.into_iter().map(|lane| (name.to_owned(), lane)));
    }
    let is_well = found.0.iter().all(|(_, lane)| lane.next_ms.is_some());
    Ok(arguments.output.end(&found, is_well))
}

pub(crate) async fn retry(arguments: &Retry, lists: &Lists) -> Result<ExitCode> {
    let Retry { tables, reactor, event, all: _ } = arguments;
    let Some(event) = event else { return retry_all(tables, reactor, lists).await };
    ask(tables, reactor, event, &Unpark::Retry, lists).await
}

pub(crate) async fn skip(arguments: &Skip, lists: &Lists) -> Result<ExitCode> {
    let Skip { tables, reactor, event, why } = arguments;
    ensure_why(why)?;
    ask(tables, reactor, event, &Unpark::Skip(why.clone()), lists).await
}

/// Retries each parked lane.
async fn retry_all(tables: &Tables, reactor: &str, lists: &Lists) -> Result<ExitCode> {
    ensure_reader(reactor, lists)?;
    let table = tables.table().await?;
    let mut asked = 0;
    let lanes = table.parked(reactor).await?;
    for lane in lanes.iter().filter(|lane| lane.next_ms.is_none() && lane.asked.is_none()) {
        match table.ask(reactor, &lane.lane, &lane.event, &Unpark::Retry).await {
            Ok(()) => asked += 1,
            // Somebody else retried or skipped it meanwhile.
            Err(ReactorError::NotParked { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    match asked {
        0 => remark!("no lane of {reactor} waits for a person"),
        1 => remark!("the next run of {reactor} retries one lane, within a minute"),
        _ => remark!("the next run of {reactor} retries {asked} lanes, within a minute"),
    }
    Ok(ExitCode::SUCCESS)
}

async fn ask(
    tables: &Tables,
    reactor: &str,
    event: &str,
    ask: &Unpark,
    lists: &Lists,
) -> Result<ExitCode> {
    ensure_reader(reactor, lists)?;
    let table = tables.table().await?;
    let lanes = table.parked(reactor).await?;
    let lane = lanes.into_iter().find(|lane| lane.event == event);
    let lane = lane.with_context(|| {
        format!("no lane of {reactor} waits for event {event}: `ringfence parked lanes {reactor}` shows the events")
    })?;
    table.ask(reactor, &lane.lane, event, ask).await?;
    remark!("the next run of {reactor} does it, within a minute");
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn replay(arguments: &Replay, lists: &Lists) -> Result<ExitCode> {
    let Replay { index, tables, reactor, from, again } = arguments;
    ensure_reader(reactor, lists)?;
    if let Some(again) = again {
        ensure!(
            again == reactor,
            "--again repeats every effect: give the name of the reactor, {reactor}"
        );
    }
    let index = index.index(dynamo_client().await?).await?;
    let from = from.checkpoint(&index).await?;
    tables.table().await?.send_back(reactor, from, again.is_some()).await?;
    remark!("the next run of {reactor} begins after checkpoint {from}, within a minute");
    Ok(ExitCode::SUCCESS)
}

/// Lanes that wait or are parked, each with the name of its reactor.
struct Found(Vec<(String, ParkedLane)>);

/// The next step for a lane.
#[must_use]
pub fn next(lane: &ParkedLane) -> String {
    match (&lane.asked, lane.next_ms) {
        (Some(Unpark::Retry), _) => "a person has asked to retry it".to_owned(),
        (Some(Unpark::Skip(_)), _) => "a person has asked to skip the event".to_owned(),
        (None, Some(next_ms)) => format!("it is tried again after {}", rfc3339(next_ms)),
        (None, None) => "it waits for a person".to_owned(),
    }
}

impl Display for Found {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (reactor, lane) in &self.0 {
            let ParkedLane { lane: name, event, cause, tries, .. } = lane;
            let (cause, next) = (visible(cause), next(lane));
            write_line!(f, "{reactor} {name}: event {event}: {cause}; tries: {tries}; {next}")?;
        }
        let parked = self.0.iter().filter(|(_, lane)| lane.next_ms.is_none()).count();
        write_line!(f, "{parked} parked, {} waiting", self.0.len() - parked)
    }
}

serialize_as!(Found, |Found(lanes)| {
    let lanes = lanes.iter().map(|(reactor, lane)| {
        json!({
            "reactor": reactor, "lane": lane.lane, "event": lane.event, "cause": lane.cause, "tries": lane.tries,
            "at": rfc3339(lane.at_ms), "next": lane.next_ms.map(rfc3339), "from": lane.from,
        })
    });
    json!({ "lanes": lanes.collect::<Value>() })
});
