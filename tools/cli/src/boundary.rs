//! `ringfence boundary`: the events of a boundary, its length, and the slices that depend on it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display, Formatter};
use std::process::ExitCode;

use anyhow::{Context, Error, Result, ensure};
use clap::Args;
use futures::TryStreamExt;
use ringfence_aggregate_log::{AggregateKey, Range};
use ringfence_aws::Clock;
use ringfence_core::{
    Access, Boundary, BoundaryId, Catalog, Clause, Consistency, Envelope, Page, Plan, PlanError,
    Query, QueryItem, Read, Reading, SequencedEvent,
};
use ringfence_dcb_log::BoundaryStanding;
use ringfence_document_log::{Direction, DocumentError, StreamName};
use ringfence_log::{BoundaryShape, StackLogs};
use serde::{Serialize, Serializer};

use crate::Lists;
use crate::commands::CommandLines;
use crate::machine::dynamo_client;
use crate::out::{Output, write_line};
use crate::place::tag;
use crate::shown::{Newest, ShownEvent, for_people};
use crate::tables::{self, LogTables};

/// Conflicts of the last day are shown.
const CONFLICTS_WITHIN_MS: u64 = 24 * 3_600 * 1_000;
/// At most this many conflicts are shown.
const CONFLICTS_MAX: usize = 20;

#[derive(Args)]
#[command(after_help = "\
A tag is KEY:VALUE; several tags select the events that have all of them. The name of a partition works too, as events
and conflicts show it: KEY+KEY:VALUE/VALUE for a partition of two tags, <context>#<id> for a stream of the aggregate
log, <context>-<id> for one of the document log.
$type:<TYPE> is a type that decisions read without tags.

Examples:
  ringfence boundary productId:p-1
  ringfence boundary orderId+parcelId:o-1/p-1
  ringfence boundary --stack ringfence-dev courseId:c-1 studentId:s-1 --json")]
pub(crate) struct Arguments {
    /// The tags, or the name of a partition.
    #[arg(required = true, value_name = "TAG")]
    names: Vec<String>,
    /// Shows this many of the latest events.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    limit: u32,
    #[command(flatten)]
    shown: Newest<true>,
    #[command(flatten)]
    tables: LogTables,
    #[command(flatten)]
    commands: CommandLines,
    #[command(flatten)]
    output: Output,
}

/// All that the command shows of a boundary.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Look {
    /// Each boundary that the tags name, by its id.
    pub boundaries: BTreeMap<String, Reach>,
    /// The latest events, the newest first.
    #[serde(serialize_with = "events")]
    pub events: Vec<ShownEvent>,
    /// The slices whose decisions can depend on it.
    pub slices: Vec<String>,
    /// The latest conflicts on it, the newest first; absent if no flag says where the functions' logs are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conflicts: Option<Vec<Met>>,
}

/// How long a boundary is.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Reach {
    /// The slot of the partition's next event; absent if nothing is stored under this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_slot: Option<u64>,
    /// What its fence counts, by type.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub counts: BTreeMap<String, u64>,
}

/// A conflict of a command.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Met {
    /// When the command began: RFC 3339.
    pub at: String,
    /// The slice.
    pub slice: String,
    /// The boundary, by its id.
    pub boundary: String,
    /// How the command ended.
    pub outcome: String,
    /// How often it was tried.
    pub attempts: u32,
}

/// The names of the command line mean one of these.
enum Subject {
    /// Events of the DCB log, by tags or by their type.
    Query(QueryItem),
    /// A partition of the DCB log that no tag names.
    Partition(BoundaryId),
    Aggregate(AggregateKey),
    Document(StreamName),
}

impl Subject {
    fn of(names: &[String]) -> Result<Self> {
        let tags = |tags| Ok(Self::Query(QueryItem { tags, types: Vec::new() }));
        let [name] = names else {
            let parsed = names.iter().map(|name| tag(name));
            return tags(parsed.collect::<Result<_>>()?);
        };
        let id = BoundaryId::stored(name.as_str());
        match id.decode() {
            Some(Boundary::Tag(tag)) => tags(vec![tag]),
            Some(Boundary::Composite(all) | Boundary::CompositePartition(all, _)) => tags(all),
            Some(Boundary::EventType(name)) => {
                Ok(Self::Query(QueryItem { tags: Vec::new(), types: vec![name.into()] }))
            }
            Some(Boundary::Tagless) => Ok(Self::Partition(id)),
            // A person writes a value without the escapes that ids have.
            None if name.contains(':') && !name.contains('#') => tags(vec![tag(name)?]),
            None if name.contains('#') => Ok(Self::Aggregate(AggregateKey::of_partition(name)?)),
            None => {
                // A name without any of these characters is probably a tag that was cut short.
                let neither = || {
                    format!(
                        "{name:?} is neither a tag, KEY:VALUE such as productId:p-1, nor the name of a stream"
                    )
                };
                Ok(Self::Document(StreamName::of_partition(&id).with_context(neither)?))
            }
        }
    }
}

/// A plan that reads a partition of the DCB log with events of all types.
pub(crate) fn partition_plan(lists: &Lists, boundary: BoundaryId) -> Plan {
    let types = lists.stack.catalog.schemas().map(|schema| schema.name.clone());
    let types: BTreeSet<_> = types.collect();
    let clauses = vec![Clause { tags: Vec::new(), types: types.clone() }];
    let (access, fenced, after) = (Access::Partition, false, 0);
    Plan { clauses, reads: vec![Read { boundary, access, types, fenced, after }] }
}

/// Looks up what `names` stand for, and reads at most `limit` events. If `newest`, they are in their newest versions.
///
/// # Errors
/// The names stand for nothing, no flag names the table of their log, or a log fails.
pub async fn look(
    lists: &Lists,
    logs: &StackLogs,
    commands: &CommandLines,
    names: &[String],
    limit: u32,
    newest: bool,
) -> Result<Look> {
    let mut look = match Subject::of(names)? {
        Subject::Query(item) => of_query(lists, logs, item, limit).await?,
        Subject::Partition(id) => of_plan(lists, logs, partition_plan(lists, id), limit).await?,
        Subject::Aggregate(key) => of_aggregate(lists, logs, &key, limit).await?,
        Subject::Document(stream) => of_document(lists, logs, &stream, limit).await?,
    };
    let shown = look.events.into_iter().map(|stored| lists.shown(stored.event, newest));
    look.events = shown.collect();
    if commands.are_known() {
        look.conflicts = Some(conflicts(commands, &look.boundaries).await?);
    }
    Ok(look)
}

async fn of_query(lists: &Lists, logs: &StackLogs, item: QueryItem, limit: u32) -> Result<Look> {
    let catalog = &lists.stack.catalog;
    let whole = part_of_partition(&item, catalog);
    let reading = Reading::new(&Query { items: vec![item] }, catalog);
    let reading = reading.map_err(|error| match (whole, &error) {
        (Some(whole), PlanError::NoRoute { .. }) => Error::msg(whole),
        _ => error.into(),
    })?;
    ensure!(!reading.scan, "no decision reads this type alone, so it is not a boundary");
    of_plan(lists, logs, reading.plan, limit).await
}

/// Says how to name a partition of several tags, if these are only some of its tags.
fn part_of_partition(item: &QueryItem, catalog: &Catalog) -> Option<String> {
    catalog.schemas().find_map(|schema| {
        let keys = schema.tags.iter().filter(|tag| tag.partition).map(|tag| &*tag.key);
        let keys: Vec<_> = keys.collect();
        let is_part = item.tags.iter().all(|tag| keys.contains(&&*tag.key));
        (is_part && item.tags.len() < keys.len()).then(|| {
            let values = vec!["…"; keys.len()].join(&schema.separator.to_string());
            format!(
                "a partition of {} has {} tags: give each, {}:…, or the name of the partition, {}:{values}",
                schema.name,
                keys.len(),
                keys.join(":… "),
                keys.join("+")
            )
        })
    })
}

async fn of_plan(lists: &Lists, logs: &StackLogs, plan: Plan, limit: u32) -> Result<Look> {
    let log = tables::dcb(logs, &lists.stack.catalog)?;
    let reading = Reading { plan, scan: false };
    let mut boundaries = BTreeMap::new();
    let mut slices = BTreeSet::new();
    for Read { boundary, .. } in &reading.plan.reads {
        let BoundaryStanding { last_slot, counts } = log.standing(boundary).await?;
        let next_slot = (last_slot > 0 || counts.is_empty()).then_some(last_slot + 1);
        let counts = counts.into_iter().map(|(name, count)| (name.into_owned(), count)).collect();
        boundaries.insert(boundary.to_string(), Reach { next_slot, counts });
        let shape = BoundaryShape::of(boundary);
        slices.extend(shape.iter().flat_map(|shape| lists.stack.that_depend_on(shape)));
    }
    let page = Page { limit: Some(limit as usize), backwards: true, ..Page::default() };
    let events = log.query(&reading, &page).map_ok(ShownEvent::from).try_collect().await?;
    let slices = slices.into_iter().collect();
    Ok(Look { boundaries, events, slices, conflicts: None })
}

async fn of_aggregate(
    lists: &Lists,
    logs: &StackLogs,
    key: &AggregateKey,
    limit: u32,
) -> Result<Look> {
    let log = tables::aggregates(logs)?;
    let newest = Range { limit: Some(limit), reverse: true, ..Range::default() };
    let events = log.get_events(key, newest).map_ok(SequencedEvent::from);
    let events: Vec<_> = events.try_collect().await?;
    let next = events.first().map_or(1, |event| event.slot + 1);
    Ok(of_stream(lists, key.to_string(), key.store(), next, events))
}

async fn of_document(
    lists: &Lists,
    logs: &StackLogs,
    stream: &StreamName,
    limit: u32,
) -> Result<Look> {
    let log = tables::documents(logs)?;
    let envelope = Envelope::default();
    let tip = log.tip(stream, Consistency::Strong, &envelope).await?;
    let version = tip.map_or(0, |tip| tip.version);
    let range = version.saturating_sub(limit.into())..version;
    let mut read = log.read(stream, range, Direction::Backward, Consistency::Strong, &envelope);
    let mut events = Vec::new();
    loop {
        match read.try_next().await {
            Ok(Some(recorded)) => events.push(recorded.fed(stream)?),
            // The older ones were pruned.
            Ok(None) | Err(DocumentError::Pruned { .. }) => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(of_stream(lists, stream.partition().to_string(), stream.category(), version, events))
}

fn of_stream(
    lists: &Lists,
    name: String,
    context: &str,
    next: u64,
    events: Vec<SequencedEvent>,
) -> Look {
    let shape = BoundaryShape::Stream(context.to_owned());
    let slices = lists.stack.that_depend_on(&shape).collect();
    let reach = Reach { next_slot: Some(next), counts: BTreeMap::new() };
    let (boundaries, events) =
        (BTreeMap::from([(name, reach)]), events.into_iter().map(ShownEvent::from));
    Look { boundaries, events: events.collect(), slices, conflicts: None }
}

async fn conflicts(
    commands: &CommandLines,
    boundaries: &BTreeMap<String, Reach>,
) -> Result<Vec<Met>> {
    let since_ms = Clock::system().now_ms().saturating_sub(CONFLICTS_WITHIN_MS);
    let lines = commands.since(since_ms).await?;
    let mut met = Vec::new();
    for line in lines.iter().rev() {
        let of_these = line.conflicts.iter().filter(|conflict| boundaries.contains_key(*conflict));
        met.extend(of_these.map(|boundary| Met {
            at: line.timestamp.clone(),
            slice: line.slice.clone(),
            boundary: boundary.clone(),
            outcome: line.outcome.clone(),
            attempts: line.attempts,
        }));
    }
    met.truncate(CONFLICTS_MAX);
    Ok(met)
}

pub(crate) async fn boundary(arguments: &Arguments, lists: &Lists) -> Result<ExitCode> {
    let Arguments { names, limit, shown, tables, commands, output } = arguments;
    let logs = tables.logs(dynamo_client().await?, Clock::system());
    let look = look(lists, &logs, commands, names, *limit, shown.newest).await?;
    Ok(output.end(&look, true))
}

impl Display for Look {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (boundary, Reach { next_slot, counts }) in &self.boundaries {
            write_line!(f, "{boundary}")?;
            if let Some(slot) = next_slot {
                write_line!(f, "  its next slot is {slot}")?;
            }
            for (event_type, count) in counts {
                write_line!(f, "  its fence counts {count} {event_type}")?;
            }
        }
        write_line!(f, "")?;
        write_line!(f, "Decisions of these slices can depend on it:")?;
        for slice in &self.slices {
            write_line!(f, "  {slice}")?;
        }
        write_line!(f, "")?;
        write_line!(f, "Its latest events, the newest first:")?;
        for event in &self.events {
            let (at, id, data) = (event.recorded_at(), event.id(), for_people(&event.data));
            write_line!(f, "  {at} {id} {}{} {data}", event.event_type, event.version())?;
        }
        write_line!(f, "")?;
        let Some(conflicts) = &self.conflicts else {
            let unknown =
                "Name the functions' logs to see conflicts: --log-group, --logs or --stack.";
            return write_line!(f, "{unknown}");
        };
        write_line!(f, "Conflicts of the last day: {}", conflicts.len())?;
        for Met { at, slice, boundary, outcome, attempts } in conflicts {
            write_line!(f, "  {at} {slice} on {boundary}: {outcome} after {attempts} attempts")?;
        }
        Ok(())
    }
}

fn events<S: Serializer>(events: &[ShownEvent], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(events.iter().map(crate::line::of_event))
}
