//! `ringfence read`: the events of any query, or of one partition.

mod cost;

use std::fmt::{self, Display, Formatter};
use std::io::ErrorKind;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::process::ExitCode;

use anyhow::{Context, Error, Result, anyhow, bail, ensure};
use clap::Args;
use futures::future::ready;
use futures::stream::{BoxStream, StreamExt, TryStreamExt};
use ringfence_aggregate_log::{AggregateError, AggregateKey, Range};
use ringfence_aws::{BATCH_KEYS_MAX, Clock, Meter};
use ringfence_core::{
    Access, BoundaryId, Consistency, Envelope, LogError, LogKind, Page, Place, PlanError, Query,
    QueryItem, Read, Reading, SequencedEvent, visible,
};
use ringfence_dcb_log::DcbLog;
use ringfence_document_log::{BodyError, Direction, DocumentError, StreamName};
use ringfence_feed::Partition;
use ringfence_log::StackLogs;
use ringfence_stack::ContextInfo;
use serde_json::json;

use crate::Lists;
use crate::boundary::partition_plan;
use crate::line::of_event;
use crate::machine::dynamo_client;
use crate::out::{Output, serialize_as, write_line};
use crate::place::{Wanted, tag};
use crate::progress;
use crate::remark;
use crate::shown::{Newest, ShownEvent, for_people};
use crate::tables::{self, LogTables, log_name};
use cost::Whole;

/// The number of events between two updates of the progress.
const PROGRESS_EVENTS: usize = 100;

#[derive(Args)]
#[command(
    group = clap::ArgGroup::new("what").required(true).multiple(true).args(["types", "tags", "partition"]),
    after_help = "\
Prints the events by their times, as decisions fold them. With a tag it reads a partition and its boundaries, as a
decision does. With a type and no tag it reads all events of the type if a decision does so, and otherwise the whole
table. It shows the cost first, and reads with --yes. `ringfence tail` reads the index instead, in its order.

Each line begins with the place of its event. Give the last place to `--from` to read on. The version of the payload
follows the type, if it is above 1.

Examples:
  ringfence read orderId:first --json
  ringfence read --tag productId:mug --type ProductPriceChanged
  ringfence read --type OrderPlaced --backwards --limit 20 --yes"
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    wanted: Wanted,
    /// Only events of this partition, by its name: for the DCB log as events show it, for the other logs <context>#<id>
    /// or <context>-<id>.
    #[arg(value_name = "PARTITION", conflicts_with = "tags")]
    partition: Option<String>,
    /// Only events after this place, or before it with --backwards.
    #[arg(long, value_name = "PLACE")]
    from: Option<Place>,
    /// Prints the latest events first.
    #[arg(long)]
    backwards: bool,
    /// At most this many events.
    #[arg(long)]
    limit: Option<NonZeroUsize>,
    /// Agrees to the cost of the read.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    shown: Newest<true>,
    #[command(flatten)]
    tables: LogTables,
    #[command(flatten)]
    output: Output,
}

/// The events of a log, one after another.
type Events<'a> = BoxStream<'a, Result<SequencedEvent>>;

impl Arguments {
    fn page(&self) -> Page {
        let limit = self.limit.map(NonZeroUsize::get);
        Page { after: self.from.clone(), limit, backwards: self.backwards }
    }

    /// Prints the events, and the read units.
    async fn print(
        &self,
        lists: &Lists,
        mut events: Events<'_>,
        meter: &Meter,
    ) -> Result<ExitCode> {
        let (mut printed, mut unreadable, mut last) = (0, 0, None);
        while let Some(event) = events.next().await {
            let event = match event {
                Err(error) if is_of_event(&error) => {
                    progress::clear();
                    remark!("{}", visible(&format!("{error:#}")));
                    unreadable += 1;
                    continue;
                }
                event => event?,
            };
            last = Some(event.place());
            progress::clear();
            match self.output.next(&Printed(lists.shown(event, self.shown.newest))) {
                // Nobody reads the output any more, as with `| head`.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                    return Ok(ExitCode::SUCCESS);
                }
                printed => printed?,
            }
            printed += 1;
            if printed % PROGRESS_EVENTS == 0 {
                progress::show(format_args!("{printed} events"));
            }
        }
        progress::clear();
        let units = meter.snapshot().total().read;
        let more = match last {
            Some(place) if self.limit.is_some_and(|limit| limit.get() == printed) => {
                format!("; there may be more: --from {place}")
            }
            _ => String::new(),
        };
        if unreadable == 0 {
            remark!("{printed} events, {units} read units{more}");
            return Ok(ExitCode::SUCCESS);
        }
        remark!("{printed} events, {unreadable} can't be decoded, {units} read units{more}");
        Ok(ExitCode::FAILURE)
    }

    /// Fails and says the cost if a read is large and --yes is missing.
    async fn ensure_agreed(&self, log: &DcbLog, logs: &StackLogs, reading: &Reading) -> Result<()> {
        let whole = Whole::of(&logs.client, &tables::table(logs, LogKind::Dcb)?.name).await?;
        let mut events = 0;
        for Read { boundary, .. } in reading.plan.reads.iter().filter(|_| !reading.scan) {
            events += log.standing(boundary).await?.counts.values().sum::<u64>();
        }
        let spent = log.meter().snapshot().total().read;
        let cost = whole.cost((!reading.scan).then_some(events), self.page().limit, spent);
        ensure!(self.yes, "{cost}. Add --yes to read them, or --tag to read fewer");
        remark!("{cost}");
        Ok(())
    }
}

pub(crate) async fn read(arguments: &Arguments, lists: &Lists) -> Result<ExitCode> {
    let Arguments { wanted, partition, tables, .. } = arguments;
    let logs = tables.logs(dynamo_client().await?, Clock::system());
    wanted.warn(&lists.stack);
    let Some(name) = partition else { return of_query(arguments, lists, &logs).await };
    let partition = Partition::from(BoundaryId::stored(name.as_str()));
    ensure_log(lists, name, partition.log)?;
    match partition.log {
        LogKind::Dcb => {
            let id = match partition.id.decode() {
                Some(_) => partition.id,
                // A person writes a value without the escapes that ids have.
                None => tag(name).map(|tag| BoundaryId::tag(&tag.key, &tag.value))?,
            };
            let plan = partition_plan(lists, id);
            of_dcb(arguments, lists, &logs, Reading { plan, scan: false }).await
        }
        LogKind::Aggregates => of_aggregate(arguments, lists, &logs, name).await,
        LogKind::Documents => of_document(arguments, lists, &logs, &partition.id).await,
    }
}

/// The form of the stream names of a context.
fn streams_of(context: &ContextInfo) -> String {
    let between = if context.log == LogKind::Aggregates { '#' } else { '-' };
    format!("{}{between}<id>", context.name)
}

/// Fails if the name of a stream has the form of another log than its context's.
fn ensure_log(lists: &Lists, name: &str, log: LogKind) -> Result<()> {
    let is_of =
        |of: &&ContextInfo| name.strip_prefix(of.name).is_some_and(|id| id.starts_with(['#', '-']));
    let mut contexts = lists.stack.contexts.iter().filter(|of| of.log != LogKind::Dcb);
    let Some(context) = contexts.find(is_of) else { return Ok(()) };
    ensure!(
        context.log == log,
        "context {} is on the {} log: name its partition {}",
        context.name,
        log_name(context.log),
        streams_of(context)
    );
    Ok(())
}

async fn of_query(arguments: &Arguments, lists: &Lists, logs: &StackLogs) -> Result<ExitCode> {
    let filter = arguments.wanted.filter();
    for name in &filter.types {
        let mut contexts = lists.stack.contexts.iter().filter(|of| of.log != LogKind::Dcb);
        let of_stream = contexts.find(|of| of.event_types.iter().any(|known| known == name));
        if let Some(context) = of_stream {
            bail!(
                "{name} is of context {}, on the {} log, which is read stream by stream: name a partition {}. `ringfence \
                 tail --type {name}` finds the events of all streams in the index",
                context.name,
                log_name(context.log),
                streams_of(context)
            );
        }
    }
    let types = filter.types.into_iter().map(Into::into).collect();
    let query = Query { items: vec![QueryItem { tags: filter.tags, types }] };
    let reading = Reading::new(&query, &lists.stack.catalog).map_err(|error| match error {
        PlanError::NoRoute { event_type, keys } => anyhow!(
            "the log has no read of {event_type} by {keys}. `ringfence tail --from start` looks through the index for them, \
             with the same --tag and --type"
        ),
        error => error.into(),
    })?;
    of_dcb(arguments, lists, logs, reading).await
}

async fn of_dcb(
    arguments: &Arguments,
    lists: &Lists,
    logs: &StackLogs,
    reading: Reading,
) -> Result<ExitCode> {
    let log = tables::dcb(logs, &lists.stack.catalog)?;
    let is_by_type = |read: &Read| matches!(read.access, Access::TypeItems(_));
    if reading.scan || reading.plan.reads.iter().any(is_by_type) {
        arguments.ensure_agreed(&log, logs, &reading).await?;
    }
    let (page, filter) = (arguments.page(), arguments.wanted.filter());
    // A partition is read with all types that the catalog has.
    let whole = Page { limit: None, ..page.clone() };
    let page =
        if arguments.partition.is_some() && !filter.types.is_empty() { &whole } else { &page };
    let events = log.query(&reading, page).map_err(Error::new);
    let events = events.try_filter(|event| ready(filter.matches(event))).take(arguments.most());
    // Entries of the index have no metadata.
    let is_of_index = reading.plan.reads.iter().any(|read| !read.access.is_of_table());
    let events = match is_of_index && !reading.scan {
        true => events
            .chunks(BATCH_KEYS_MAX)
            .then(|events| of_table(&log, events))
            .flat_map(futures::stream::iter)
            .boxed(),
        false => events.boxed(),
    };
    arguments.print(lists, events, log.meter()).await
}

/// Events as the table has them.
async fn of_table(
    log: &DcbLog,
    events: Vec<Result<SequencedEvent>>,
) -> Vec<Result<SequencedEvent>> {
    let (events, mut found): (Vec<_>, Vec<_>) = events.into_iter().partition(Result::is_ok);
    match log.whole(events.into_iter().flatten().collect()).await {
        Ok(events) => found.extend(events.into_iter().map(|event| event.map_err(Error::new))),
        Err(error) => found.push(Err(error.into())),
    }
    found
}

/// Whether only one event can't be decoded, so the others can be read.
fn is_of_event(error: &Error) -> bool {
    matches!(error.downcast_ref(), Some(LogError::Undecodable { .. }))
        || matches!(error.downcast_ref(), Some(AggregateError::Undecodable { .. }))
        || error.is::<BodyError>()
}

impl Arguments {
    fn most(&self) -> usize {
        self.limit.map_or(usize::MAX, NonZeroUsize::get)
    }

    /// The slot of `--from`. Fails if it belongs to another partition.
    fn slot_to_begin(&self, id: &BoundaryId) -> Result<Option<u64>> {
        let Some(from) = &self.from else { return Ok(None) };
        ensure!(from.partition == *id, "--from {from} is a place of another partition than {id}");
        Ok(Some(from.slot))
    }
}

async fn of_aggregate(
    arguments: &Arguments,
    lists: &Lists,
    logs: &StackLogs,
    name: &str,
) -> Result<ExitCode> {
    let (key, log) = (AggregateKey::of_partition(name)?, tables::aggregates(logs)?);
    let from = arguments.slot_to_begin(&BoundaryId::stored(name))?;
    let reverse = arguments.backwards;
    let range = Range {
        min_version: from.filter(|_| !reverse).map(|slot| slot.saturating_add(1)),
        max_version: from.filter(|_| reverse).map(|slot| slot.saturating_sub(1)),
        limit: None,
        reverse,
    };
    let filter = arguments.wanted.filter();
    let events = log.get_events(&key, range).map_ok(SequencedEvent::from).map_err(Error::new);
    let events = events.try_filter(|event| ready(filter.matches(event))).take(arguments.most());
    arguments.print(lists, events.boxed(), log.meter()).await
}

async fn of_document(
    arguments: &Arguments,
    lists: &Lists,
    logs: &StackLogs,
    id: &BoundaryId,
) -> Result<ExitCode> {
    let neither = || {
        format!(
            "{:?} is the name of no partition, such as orderId:o-1, and of no stream, such as carts-c-1",
            id.as_str()
        )
    };
    let stream = StreamName::of_partition(id).with_context(neither)?;
    let from = arguments.slot_to_begin(&stream.partition())?;
    let log = tables::documents(logs)?;
    let envelope = Envelope::default();
    let tip = log.tip(&stream, Consistency::Eventual, &envelope).await?;
    let version = tip.map_or(0, |tip| tip.version);
    let (range, direction) = match arguments.backwards {
        false => (
            from.map_or(0, |slot| slot.saturating_add(1)).min(version)..version,
            Direction::Forward,
        ),
        true => (0..from.unwrap_or(version).min(version), Direction::Backward),
    };
    let filter = arguments.wanted.filter();
    let read = |range| log.read(&stream, range, direction, Consistency::Eventual, &envelope);
    let mut events = read(range.clone()).peekable();
    if direction == Direction::Forward
        && let Some(Err(DocumentError::Pruned { first, .. })) = Pin::new(&mut events).peek().await
    {
        remark!("{}", pruned(&stream, *first));
        events = read(*first..range.end).peekable();
    }
    let events = events.take_while(|event| {
        let is_there = match event {
            Err(DocumentError::Pruned { first, .. }) => {
                remark!("{}", pruned(&stream, *first));
                false
            }
            _ => true,
        };
        ready(is_there)
    });
    let events = events.map_err(Error::new).and_then(|event| {
        let name = || format!("event {}/{} can't be decoded", stream.partition(), event.index);
        ready(event.fed(&stream).with_context(name))
    });
    let events = events.try_filter(|event| ready(filter.matches(event))).take(arguments.most());
    arguments.print(lists, events.boxed(), log.store().meter()).await
}

/// A note that a document's older events were pruned.
fn pruned(stream: &StreamName, first: u64) -> String {
    format!(
        "{stream} begins at event {first}: those before it were pruned, and `ringfence tail` shows them in the index"
    )
}

/// An event that is printed.
struct Printed(ShownEvent);

impl Display for Printed {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (place, time, origin) =
            (self.0.place(), self.0.recorded_at(), self.0.metadata.origin());
        let (event_type, version) = (&self.0.event_type, self.0.version());
        let data = for_people(&self.0.data);
        write_line!(f, "{place}  {time}  {event_type}{version}  {origin}  {data}")
    }
}

serialize_as!(Printed, |Printed(shown)| {
    let mut json = of_event(shown);
    json["place"] = json!(shown.place());
    json
});
