//! `ringfence import`: one list of the sources, each with a file of its own.

mod castore_legacy;
mod jsonl;
mod logs;
mod propulsion_index;
mod reventless;

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::process::ExitCode;

use anyhow::{Error, Result};
use clap::{Args, ValueEnum};
use ringfence::SequencedEvent;
use ringfence_dynamo::Units;
use ringfence_schemas::Unreadable;
use serde_json::{Value, json};

use crate::Lists;
use crate::out::{Output, serialize_as, write_line};
use crate::recorded::Imports;
use crate::stack::name;
use crate::tables::{DynamoEndpoint, LogTables};

#[derive(Args)]
#[command(after_help = "\
Checks every event against the types, slices and views of this stack. If one does not fit, the cause and the lines or
items are named, and nothing is written. Otherwise the events are imported with their order and their times, each once,
so the command can be broken off and run again.

jsonl: the folder of `ringfence export --to jsonl`, or one file of such lines. Each event goes into the place that it
had, so its id stays: docs/data.md.

reventless: a table of another DCB log. The events go to the ends of their partitions, in the order of their positions.
Tags that a type does not declare are left out, and counted.

castore-legacy: a table of Castore's older layout, into the aggregate log.

propulsion-index: the order of the events in the index of Propulsion.DynamoStore, into the index.

Tables are read strongly, and their events are held in memory. docs/operations.md says what becomes of each attribute, and
what is not read. publish-events takes imported events like all others, and rules act on them. docs/operations.md says
what to do before and after.

Examples:
  ringfence import --from jsonl shop-events --dry-run
  ringfence import --from reventless shop-dcb-events --table ringfence-prod-events
  ringfence import --from castore-legacy shop-customers --context customers --aggregate-table ringfence-prod-aggregates
  ringfence import --from propulsion-index shop-events-index --stack ringfence-prod")]
pub(crate) struct Arguments {
    /// What the source is.
    #[arg(long)]
    from: Origin,
    /// The folder, the file or the table to import from.
    #[arg(value_parser = name)]
    source: String,
    /// The context whose events the source has, for a source that does not say it: castore-legacy.
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    #[command(flatten)]
    tables: LogTables,
    /// The table of the index, for what goes there: propulsion-index.
    #[arg(long, env = "INDEX_TABLE", value_parser = name)]
    index_table: Option<String>,
    #[command(flatten)]
    dynamo: DynamoEndpoint,
    /// Checks the events, and writes nothing.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    output: Output,
}

/// What can be imported from.
#[derive(Clone, Copy, ValueEnum)]
enum Origin {
    /// An export to jsonl, or a file of such lines, into the logs of this stack.
    Jsonl,
    /// The DCB log of Reventless on DynamoDB, into the DCB log.
    Reventless,
    /// A table of Castore's older layout, which has one event store a table, into the aggregate log.
    CastoreLegacy,
    /// The order of events in the index of Propulsion.DynamoStore, into the index.
    PropulsionIndex,
}

pub(crate) async fn import(arguments: &Arguments, lists: &Lists) -> Result<ExitCode> {
    let report = match arguments.from {
        Origin::Jsonl => jsonl::import(arguments, lists).await?,
        Origin::Reventless => reventless::import(arguments, lists).await?,
        Origin::CastoreLegacy => castore_legacy::import(arguments, lists).await?,
        Origin::PropulsionIndex => propulsion_index::import(arguments, lists).await?,
    };
    let is_well = report.broken.is_empty();
    Ok(arguments.output.end(&Done { report, is_dry_run: arguments.dry_run }, is_well))
}

/// What a source has, and what became of it.
#[derive(Default)]
struct Report {
    /// How many events it has.
    read: u64,
    /// Tags that their types do not declare, by type and key: how many.
    left_out: BTreeMap<(String, String), u64>,
    /// Events that the source names, and whose stream has lost them by a prune.
    gone: u64,
    /// The items that can't be imported, by the cause. If there are any, nothing is written.
    broken: BTreeMap<String, Vec<String>>,
    imports: Imports,
    /// What the requests to the logs consumed, if that was counted.
    units: Option<Units>,
}

impl Report {
    /// Notes that an item can't be imported.
    fn refuse(&mut self, cause: &Error, item: String) {
        self.broken.entry(format!("{cause:#}")).or_default().push(item);
    }
}

/// Fails if a slice or view of this stack can't read the event.
fn check_readers(event: &SequencedEvent, lists: &Lists) -> Result<()> {
    match lists.readers.unreadable(&lists.stack.catalogs, event).into_iter().next() {
        None => Ok(()),
        Some(Unreadable { reader, why, .. }) => {
            Err(Error::from(why).context(format!("{reader} can't read {}", event.event_type)))
        }
    }
}

/// The end of an import.
struct Done {
    report: Report,
    is_dry_run: bool,
}

impl Display for Done {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { report: Report { read, left_out, gone, broken, imports, units }, is_dry_run } =
            self;
        for ((event_type, tag), times) in left_out {
            write_line!(
                f,
                "left out  tag {tag}, which {event_type} does not declare: {times} times"
            )?;
        }
        if *gone > 0 {
            write_line!(f, "left out  {gone} events that their streams do not have any more")?;
        }
        for (cause, items) in broken {
            let more = match items.len() - 1 {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            write_line!(f, "broken    {}{more}: {cause}", items[0])?;
        }
        let items: usize = broken.values().map(Vec::len).sum();
        if let Some(Units { read, write }) = units.filter(|units| *units != Units::default()) {
            write_line!(f, "units     {read} read, {write} write")?;
        }
        match (items, is_dry_run) {
            (0, false) => write_line!(f, "{imports}"),
            (0, true) => write_line!(f, "{read} events can be imported"),
            (items, _) => {
                write_line!(f, "{items} events can't be imported, and nothing is written")
            }
        }
    }
}

serialize_as!(Done, |Done {
                         report: Report { read, left_out, gone, broken, imports, units },
                         ..
                     }| {
    let left_out = left_out.iter().map(
        |((event_type, tag), times)| json!({ "type": event_type, "tag": tag, "times": times }),
    );
    let broken = broken.iter().map(|(cause, items)| json!({ "cause": cause, "items": items }));
    let mut json = json!({
        "events": read,
        "imported": imports.imported,
        "before": imports.before,
        "leftOut": left_out.collect::<Value>(),
        "gone": gone,
        "broken": broken.collect::<Value>(),
    });
    if let Some(Units { read, write }) = units {
        json["later"] = imports.later.into();
        json["readUnits"] = json!(read);
        json["writeUnits"] = json!(write);
    }
    json
});
