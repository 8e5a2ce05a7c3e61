//! `ringfence redrive`.

use std::collections::BTreeSet;
use std::ops::Range;
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use futures::TryStreamExt;
use ringfence::{Consistency, Envelope};
use ringfence_document_log::{Direction, Recorded, StreamName};
use ringfence_dynamo::{Item, Retry, Table};
use ringfence_feed::{Indexer, Log, Partition};
use ringfence_topic::{Entry, EntryError, Topic};
use serde_json::{Value, json};

use crate::kept::{Kept, Store};
use crate::letter::{Letter, Stored, To, Whose, Work};
use crate::progress;
use crate::stack;
use crate::tables::{self, Dynamo, StreamTables};
use crate::topic::{send, topic};

#[derive(Args)]
#[command(after_help = "\
Remove the cause first. A message or object is deleted after its work is done. What fails again stays, with its
cause printed. You can run the command again without harm: consumers recognize events by their id, and the index
takes each event once.

With `--stack`, `--queue` takes publish-events, index-events or automations, and `--bucket` takes the name of a
function. Without it, `--queue` takes a URL, and `--bucket` the name of the bucket.

Each message says what it asks for. Events of the automations' queue go to the bus again as they were, so every
rule that takes them gets them. The function and the rule that failed are shown. Messages that stay are hidden
from others for 30 seconds.

For a bucket of failed batches, give `--to bus` (publish-events) or `--to index` (index-events). Batches of
project-views hold nothing that the next event would not bring: delete them.

Examples:
  ringfence redrive --stack ringfence-prod --queue automations --dry-run
  ringfence redrive --stack ringfence-prod --queue automations
  ringfence redrive --stack ringfence-prod --bucket publish-events --to bus")]
#[group(id = "store", required = true)]
pub(crate) struct Arguments {
    /// A dead-letter queue: its URL, or its name with --stack.
    #[arg(long, group = "store", value_name = "URL|NAME", value_parser = stack::queue)]
    queue: Option<String>,
    /// A bucket of failed batches: its name, or with --stack the name of its function.
    #[arg(long, group = "store", value_name = "NAME|FUNCTION", value_parser = stack::name)]
    #[arg(requires = "to")]
    bucket: Option<String>,
    /// Where the records of failed batches go.
    #[arg(long, conflicts_with = "queue")]
    to: Option<To>,
    /// The bus, for events that go there.
    #[arg(long, env = "EVENT_BUS", value_parser = stack::name)]
    bus: Option<String>,
    /// The table of the DCB log, to read events from.
    #[arg(long, env = "EVENT_TABLE", value_parser = stack::name)]
    table: Option<String>,
    #[command(flatten)]
    streams: StreamTables,
    /// The table of the index, for events that go there.
    #[arg(long, env = "INDEX_TABLE", value_parser = stack::name)]
    index_table: Option<String>,
    #[command(flatten)]
    dynamo: Dynamo,
    /// Shows what is kept and why, and does nothing.
    #[arg(long)]
    dry_run: bool,
    /// Prints one JSON document instead of lines for people.
    #[arg(long)]
    json: bool,
}

/// What stays where it is kept.
struct Stays {
    name: String,
    whose: Whose,
    /// Why it was kept.
    kept: Option<String>,
    /// Why it stays; absent in a dry run.
    cause: Option<String>,
}

pub(crate) async fn redrive(arguments: &Arguments) -> Result<ExitCode> {
    let mut store = match (&arguments.queue, &arguments.bucket, arguments.to) {
        (Some(url), ..) => Store::queue(url).await,
        (None, Some(bucket), Some(to)) => Store::bucket(bucket, to).await?,
        _ => bail!("name a queue, or a bucket and where its records go"),
    };
    let does = Does::new(arguments).await?;
    let (mut done, mut left) = (0_u64, Vec::new());
    loop {
        let some = store.next().await?;
        if some.is_empty() {
            break;
        }
        for kept in some {
            match does.redrive(&store, kept).await {
                None => done += 1,
                Some(stays) => left.push(stays),
            }
            progress::show(format_args!("{done} done, {} stay", left.len()));
        }
    }
    progress::clear();
    print(arguments, done, &left);
    let ended = left.is_empty() || arguments.dry_run;
    Ok(if ended { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print(arguments: &Arguments, done: u64, left: &[Stays]) {
    if arguments.json {
        let left = left.iter().map(|Stays { name, whose: Whose { function, rule }, kept, cause }| {
            json!({ "name": name, "function": function, "rule": rule, "kept": kept, "cause": cause })
        });
        println!("{}", json!({ "done": done, "left": left.collect::<Value>() }));
        return;
    }
    for Stays { name, whose, kept, cause } in left {
        let kept = kept.as_deref().unwrap_or("it does not say why");
        match cause {
            Some(cause) => println!("stays  {name}{whose}: {cause} (kept: {kept})"),
            None => println!("kept   {name}{whose}: {kept}"),
        }
    }
    println!("{done} done, {} left", left.len());
}

/// Does the work, as far as the flags name what it needs.
struct Does<'a> {
    arguments: &'a Arguments,
    client: aws_sdk_dynamodb::Client,
    topic: Option<Topic>,
    indexer: Option<Indexer>,
}

impl<'a> Does<'a> {
    async fn new(arguments: &'a Arguments) -> Result<Self> {
        let client = arguments.dynamo.client().await;
        let topic = match &arguments.bus {
            Some(bus) => Some(topic(bus).await),
            None => None,
        };
        let indexer = match (&arguments.table, &arguments.index_table) {
            (Some(table), Some(index)) => {
                let log = tables::log(client.clone(), table)?;
                let logs = arguments.streams.logs(client.clone(), log);
                Some(Indexer::new(logs, client.clone(), index))
            }
            _ => None,
        };
        Ok(Self { arguments, client, topic, indexer })
    }

    /// Does the work of a letter and deletes the letter. Returns a letter that stays: its work failed, or this is a
    /// dry run.
    async fn redrive(&self, store: &Store, mut kept: Kept) -> Option<Stays> {
        let dry_run = self.arguments.dry_run;
        let letter = std::mem::replace(&mut kept.letter, Err(anyhow!("it is under way")));
        let (whose, why, done) = match letter {
            Ok(Letter { whose, cause, .. }) if dry_run => (whose, cause, Ok(())),
            Ok(Letter { whose, cause, work }) => (whose, cause, self.work(work).await),
            Err(error) => (Whose::default(), None, Err(error)),
        };
        let done = match done {
            Ok(()) if !dry_run => store.delete(&kept).await,
            done => done,
        };
        let cause = done.err().map(|error| format!("{error:#}"));
        (dry_run || cause.is_some()).then_some(Stays { name: kept.name, whose, kept: why, cause })
    }

    async fn work(&self, work: Work) -> Result<()> {
        let catalog = &crate::members().catalog;
        let entries = |record: &Value| Entry::of_record(record, catalog);
        match work {
            Work::Publish(records) => {
                self.publish(records.iter().flat_map(entries).collect()).await
            }
            Work::PublishStored(Stored::Item { log, key }) => {
                let image = self.item(log, key).await?;
                let record = json!({ "dynamodb": { "NewImage": image } });
                self.publish(entries(&record)).await
            }
            Work::PublishStored(Stored::Span { stream, events }) => {
                self.publish(self.span(&stream, events).await?).await
            }
            Work::Repeat(entry) => self.publish(vec![Ok(entry)]).await,
            Work::Index(partitions) => self.index(partitions).await,
        }
    }

    /// Sends every entry that could be made, and fails if one could not be made or sent.
    async fn publish(&self, all: Vec<Result<Entry, EntryError>>) -> Result<()> {
        let missing = "this work needs the bus: give --bus, EVENT_BUS or --stack";
        let topic = self.topic.as_ref().context(missing)?;
        let (mut entries, mut failed) = (Vec::new(), None);
        for entry in all {
            match entry {
                Ok(entry) => entries.push(entry),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        let refused = send(topic, &entries, None).await?;
        if let Some(cause) = refused.into_values().next() {
            bail!(cause);
        }
        failed.map_or(Ok(()), |error| Err(error.into()))
    }

    async fn index(&self, partitions: BTreeSet<Partition>) -> Result<()> {
        let missing = "this work needs the index: give --table and --index-table, or --stack";
        let indexer = self.indexer.as_ref().context(missing)?;
        for (partition, outcome) in indexer.index(partitions, Retry::default()).await {
            outcome.with_context(|| format!("partition {partition}"))?;
        }
        Ok(())
    }

    /// The image of the event with this key.
    async fn item(&self, log: Log, key: Value) -> Result<Value> {
        let table = match log {
            Log::Dcb => self.arguments.table.as_ref(),
            Log::Aggregates => self.arguments.streams.aggregate_table.as_ref(),
            Log::Documents => self.arguments.streams.document_table.as_ref(),
        };
        let table = table.context(
            "the event has to be read from its log: name the log's table, or give --stack",
        )?;
        let item: serde_dynamo::Item = serde_json::from_value(key.clone())?;
        let item = Item::from(item);
        let table = Table::new(self.client.clone(), table);
        let found = Retry::default().run(|| table.get(item.clone(), true)).await;
        let found = found.context("reading the event")?;
        let table = table.name();
        let found = found.with_context(|| format!("{table} has no event {key}"))?;
        Ok(serde_json::to_value(serde_dynamo::Item::from(found))?)
    }

    /// The entries of events of a document.
    async fn span(
        &self,
        stream: &StreamName,
        events: Range<u64>,
    ) -> Result<Vec<Result<Entry, EntryError>>> {
        let log = self.arguments.streams.documents(&self.client);
        let log = log.context(
            "the events have to be read from their document: give --document-table or --stack",
        )?;
        let (forward, strong) = (Direction::Forward, Consistency::Strong);
        let envelope = Envelope::default();
        let events = log.read(stream, events, forward, strong, &envelope);
        let events: Vec<_> = events.try_collect().await?;
        let entry = |event: &Recorded| {
            let fed = event.fed(stream).map_err(ringfence_feed::EntryError::from)?;
            Entry::of_event(fed)
        };
        Ok(events.iter().map(entry).collect())
    }
}
