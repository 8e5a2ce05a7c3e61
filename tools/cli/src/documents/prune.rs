//! `ringfence documents prune`.

use std::fmt::{self, Display, Formatter};
use std::future::ready;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Error, Result, ensure};
use clap::Args;
use futures::TryStreamExt;
use ringfence_aws::{Clock, ms_of_rfc3339};
use ringfence_core::{Consistency, Envelope, LogKind};
use ringfence_document_log::{Direction, DocumentLog, DynamoStore, Head, Pruned, StreamName};
use ringfence_feed::Index;
use ringfence_stack::ContextInfo;
use serde_json::{Value, json};

use super::{PROGRESS_STREAMS, STREAMS_AT_ONCE};
use crate::Lists;
use crate::layout::Layout;
use crate::machine::dynamo_client;
use crate::out::{Output, serialize_as, write_line};
use crate::progress;
use crate::stack::name;
use crate::stats::since;
use crate::tables::IndexTable;

#[derive(Args)]
#[command(after_help = "\
Deletes the events of a context's documents that are older than the time, the oldest first. An event that is not in the
index stays, so the index and its readers get every event. A document also stays whole if it has no snapshot from which
its decisions can begin. The table has no other copy of a deleted event, but the index has one.

A repeated command is found by its events, so give a longer time than callers take to repeat a command.

Examples:
  ringfence documents prune --context carts --older-than 90d --dry-run
  ringfence documents prune --context carts --older-than 90d --id a")]
pub(crate) struct Arguments {
    /// The context, which is the category of the documents.
    #[arg(long, value_name = "NAME")]
    context: String,
    /// Deletes events that are older than this, such as 12h or 90d.
    #[arg(long, value_name = "TIME", value_parser = since)]
    older_than: Duration,
    /// Prunes only the document with this id.
    #[arg(long)]
    id: Option<String>,
    /// Says what would be deleted, and deletes nothing.
    #[arg(long)]
    dry_run: bool,
    /// The table of the document log.
    #[arg(long, env = "DOCUMENT_TABLE", value_parser = name)]
    document_table: String,
    #[command(flatten)]
    index: IndexTable,
    #[command(flatten)]
    output: Output,
}

pub(crate) async fn prune(arguments: &Arguments, lists: &Lists) -> Result<ExitCode> {
    let origins = &context(&arguments.context, lists)?.origins;
    let client = dynamo_client().await?;
    Layout::Documents.check(&client, &arguments.document_table).await?;
    let index = arguments.index.index(client.clone()).await?;
    let clock = Clock::system();
    let older_ms = u64::try_from(arguments.older_than.as_millis()).unwrap_or(u64::MAX);
    let pruning = Pruning {
        log: DocumentLog::new(DynamoStore::new(client, &arguments.document_table), clock.clone()),
        index,
        origins,
        before_ms: clock.now_ms().saturating_sub(older_ms),
        is_dry_run: arguments.dry_run,
    };
    let report = match &arguments.id {
        Some(id) => pruning.one(&StreamName::new(&arguments.context, id)?).await?,
        None => pruning.all(&arguments.context).await?,
    };
    let is_well = report.kept.is_empty();
    Ok(arguments.output.end(&report, is_well))
}

/// The context of this name, whose documents can lose events.
fn context<'l>(name: &str, lists: &'l Lists) -> Result<&'l ContextInfo> {
    let context = lists.context_on(name, LogKind::Documents)?;
    ensure!(
        !context.origins.is_empty(),
        "the decisions of {name} read all events of a document: give its state an ACCESS with a snapshot first"
    );
    Ok(context)
}

/// All that a prune needs.
struct Pruning<'a> {
    log: DocumentLog<DynamoStore>,
    index: Index,
    /// Reads of a document begin with unfolds of these types.
    origins: &'a [&'static str],
    /// Events before this time are deleted, in milliseconds since 1970.
    before_ms: u64,
    is_dry_run: bool,
}

/// The result for one stream.
enum Done {
    /// No event is old enough.
    Young,
    /// This many events are deleted, or would be. Other old events stay: because the index lacks them, or because they
    /// are in an item with later ones.
    Pruned { deleted: u64, unindexed: u64, deferred: u64 },
    /// The whole stream stays, for this reason.
    Kept(String),
}

/// The results for all streams.
#[derive(Default)]
struct Report {
    is_dry_run: bool,
    streams: u64,
    /// The streams that lost events, each with the number.
    pruned: Vec<(StreamName, u64)>,
    unindexed: u64,
    deferred: u64,
    /// Streams that stay whole although they have old events, each with the cause.
    kept: Vec<(StreamName, String)>,
}

impl Pruning<'_> {
    async fn one(&self, stream: &StreamName) -> Result<Report> {
        let envelope = Envelope::default();
        let found = self.log.verify(stream, &envelope).await?;
        ensure!(
            found.version > 0 || found.calves > 0,
            "the table has no document {stream}: `ringfence tail --type <TYPE>` shows the ids of documents, after the first `-`"
        );
        let head = Head { stream: stream.clone(), first: found.first, version: found.version };
        let mut report = Report { is_dry_run: self.is_dry_run, ..Report::default() };
        report.add(stream.clone(), self.of(&head).await?);
        Ok(report)
    }

    async fn all(&self, category: &str) -> Result<Report> {
        let envelope = Envelope::default();
        let heads = self.log.streams(&envelope).map_err(Error::from);
        // `verify` names the items that belong to no stream.
        let heads = heads.try_filter_map(|head| {
            ready(Ok(head.ok().filter(|head| head.stream.category() == category)))
        });
        let pruned = heads.map_ok(|head| async move {
            let done = self.of(&head).await?;
            Ok((head.stream, done))
        });
        let mut pruned = std::pin::pin!(pruned.try_buffered(STREAMS_AT_ONCE));
        let mut report = Report { is_dry_run: self.is_dry_run, ..Report::default() };
        while let Some((stream, done)) = pruned.try_next().await? {
            report.add(stream, done);
            if report.streams.is_multiple_of(PROGRESS_STREAMS) {
                progress::show(format_args!("{} documents read", report.streams));
            }
        }
        Ok(report)
    }

    /// Prunes the indexed part of a stream.
    async fn of(&self, head: &Head) -> Result<Done> {
        let Head { stream, first, .. } = head;
        let old = self.old(head).await.with_context(|| format!("reading {stream}"))?;
        if old == *first {
            return Ok(Done::Young);
        }
        let indexed = self.index.last_of(&stream.partition()).await?;
        let indexed = indexed.map_or(0, |(slot, _)| slot + 1);
        let (before, unindexed) = (old.min(indexed), old.saturating_sub(indexed.max(*first)));
        if before <= *first {
            return Ok(Done::Pruned { deleted: 0, unindexed, deferred: 0 });
        }
        let envelope = Envelope::default();
        let tip = self.log.tip(stream, Consistency::Strong, &envelope).await?;
        let begins =
            tip.iter().flat_map(|tip| tip.unfolds.iter().map(|unfold| (unfold, tip.version)));
        let mut begins = begins.filter(|(unfold, version)| {
            unfold.version == *version && self.origins.contains(&&*unfold.event_type)
        });
        if begins.next().is_none() {
            let cause = format!(
                "it has no {}, from which decisions could begin: the next append writes one",
                self.origins.join(" or ")
            );
            return Ok(Done::Kept(cause));
        }
        if self.is_dry_run {
            return Ok(Done::Pruned { deleted: before - first, unindexed, deferred: 0 });
        }
        let pruned = self.log.prune(stream, before, &envelope).await;
        let Pruned { deleted, deferred, .. } =
            pruned.with_context(|| format!("pruning {stream}"))?;
        Ok(Done::Pruned { deleted, unindexed, deferred })
    }

    /// The index of the first event that stays because it is young. An event whose time can't be read counts as young.
    async fn old(&self, Head { stream, first, version }: &Head) -> Result<u64> {
        let (envelope, forward) = (Envelope::default(), Direction::Forward);
        let strong = Consistency::Strong;
        let mut events = self.log.read(stream, *first..*version, forward, strong, &envelope);
        let mut old = *first;
        while let Some(recorded) = events.try_next().await? {
            let at = ms_of_rfc3339(&recorded.event.time);
            if at.is_none_or(|at| at >= self.before_ms) {
                break;
            }
            old = recorded.index + 1;
        }
        Ok(old)
    }
}

impl Report {
    fn add(&mut self, stream: StreamName, done: Done) {
        self.streams += 1;
        match done {
            Done::Young => {}
            Done::Pruned { deleted, unindexed, deferred } => {
                self.unindexed += unindexed;
                self.deferred += deferred;
                if deleted > 0 {
                    self.pruned.push((stream, deleted));
                }
            }
            Done::Kept(cause) => self.kept.push((stream, cause)),
        }
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { is_dry_run, streams, pruned, unindexed, deferred, kept } = self;
        for (stream, events) in pruned {
            let done = if *is_dry_run { "to prune" } else { "pruned  " };
            write_line!(f, "{done} {stream}: {events} events")?;
        }
        for (stream, cause) in kept {
            write_line!(f, "kept     {stream}: {cause}")?;
        }
        if *unindexed > 0 {
            write_line!(f, "kept     {unindexed} old events that the index does not have yet")?;
        }
        if *deferred > 0 {
            write_line!(f, "kept     {deferred} old events in items with later ones")?;
        }
        let events: u64 = pruned.iter().map(|(_, events)| events).sum();
        match is_dry_run {
            true => write_line!(f, "{streams} documents: at most {events} events would go"),
            false => write_line!(f, "{streams} documents: {events} events are gone"),
        }
    }
}

serialize_as!(Report, |Report { streams, pruned, unindexed, deferred, kept, is_dry_run }| {
    let pruned = pruned
        .iter()
        .map(|(stream, events)| json!({ "stream": stream.as_str(), "events": events }));
    let kept =
        kept.iter().map(|(stream, cause)| json!({ "stream": stream.as_str(), "cause": cause }));
    json!({
        "dryRun": is_dry_run,
        "streams": streams,
        "pruned": pruned.collect::<Value>(),
        "kept": kept.collect::<Value>(),
        "unindexed": unindexed,
        "deferred": deferred,
    })
});
