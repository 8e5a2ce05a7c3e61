//! `ringfence import --from propulsion-index`: copies Propulsion's order of the events of a document log into the
//! index.
//!
//! Propulsion keeps its index as streams of Equinox. `$AppendsIndex-0` lists the partitions. A stream
//! `$AppendsEpoch-<partition>_<epoch>` has an event `Ingested` for each batch that was indexed, with spans of streams:
//! the name, the index of the first event, and the types. Streams that are new in the epoch are under `add`, others
//! under `app`. The events themselves are only in the table of the document log.

use std::collections::HashMap;
use std::pin::pin;

use anyhow::{Context, Result, ensure};
use futures::TryStreamExt;
use ringfence_aws::{Clock, Retry};
use ringfence_core::{Consistency, Envelope, SequencedEvent};
use ringfence_document_log::{
    Direction, DocumentError, DocumentLog, DynamoStore, StreamName, TimelineEvent,
};
use ringfence_feed::{Indexer, Notification, Partition};
use serde::Deserialize;
use serde_json::Value;

use super::arguments::Arguments;
use super::report::{Report, check_readers};
use crate::Lists;
use crate::layout::Layout;
use crate::line::check_slot;
use crate::machine::dynamo_client;
use crate::paced::paced;
use crate::progress;

/// The partition that every index has.
const FIRST_PARTITION: &str = "0";
/// The number of batches between two updates of the progress.
const PROGRESS_BATCHES: u64 = 100;

/// Events of one stream that were indexed in one batch.
#[derive(Deserialize)]
struct Span {
    /// The stream.
    p: String,
    /// The index of the first event.
    i: u64,
    /// The types of the events.
    c: Vec<String>,
}

impl Span {
    /// The index after the last event.
    fn end(&self) -> u64 {
        self.i + self.c.len() as u64
    }
}

/// The content of one batch.
#[derive(Deserialize)]
struct Ingested {
    #[serde(default)]
    add: Vec<Span>,
    #[serde(default)]
    app: Vec<Span>,
}

/// Adds the events to the index in Propulsion's order.
pub(super) async fn import(arguments: &Arguments, lists: &Lists) -> Result<Report> {
    let (tables, source) = (&arguments.tables, &arguments.source);
    let (events, documents) = (tables.events()?, tables.streams.documents_table()?);
    let index = arguments.index_table.as_deref();
    let index = index.context("name the table of the index with --index-table or --stack")?;
    let client = dynamo_client().await?;
    events.check(&client).await?;
    Layout::Documents.check(&client, documents).await?;
    Layout::PropulsionIndex.check(&client, source).await?;
    Layout::check_index(&client, index).await?;
    let clock = Clock::system();
    let log =
        |table: &str| DocumentLog::new(DynamoStore::new(client.clone(), table), clock.clone());
    let all = crate::tables::sources();
    let logs = tables.logs(client.clone(), clock.clone()).sources(&all, &lists.stack.catalog);
    let moving = Moving {
        epochs: log(source),
        documents: log(documents),
        indexer: Indexer::new(logs, client.clone(), index),
        index: ringfence_feed::Index::new(client.clone(), index, []),
        lists,
    };
    let mut report = Report::default();
    moving.all(Pass::Check, &mut report).await?;
    if report.broken.is_empty() && !arguments.dry_run {
        moving.all(Pass::Index(HashMap::new()), &mut report).await?;
    }
    Ok(report)
}

/// The work of a pass.
enum Pass {
    /// Reads and checks the events of each batch.
    Check,
    /// Indexes the new events of each batch. The map has the number of indexed events of each stream.
    Index(HashMap<StreamName, u64>),
}

struct Moving<'a> {
    /// Propulsion's index.
    epochs: DocumentLog<DynamoStore>,
    documents: DocumentLog<DynamoStore>,
    indexer: Indexer,
    index: ringfence_feed::Index,
    lists: &'a Lists,
}

impl Moving<'_> {
    /// Goes through all batches, partition by partition.
    async fn all(&self, mut pass: Pass, report: &mut Report) -> Result<()> {
        let (envelope, strong) = (Envelope::default(), Consistency::Strong);
        let mut batches = 0_u64;
        for partition in self.partitions().await? {
            for epoch in 0_u64.. {
                let stream = StreamName::new("$AppendsEpoch", &format!("{partition}_{epoch}"))?;
                if self.epochs.tip(&stream, strong, &envelope).await?.is_none() {
                    break;
                }
                let read =
                    self.epochs.read(&stream, 0..u64::MAX, Direction::Forward, strong, &envelope);
                let mut read = pin!(read);
                while let Some(recorded) = read.try_next().await? {
                    let name = format!("event {} of {stream}", recorded.index);
                    let batch = spans(&recorded).with_context(|| name)?;
                    match &mut pass {
                        Pass::Check => self.check(batch, report).await?,
                        Pass::Index(reached) => self.add(batch, reached, report).await?,
                    }
                    batches += 1;
                    if batches.is_multiple_of(PROGRESS_BATCHES) {
                        let done = if matches!(pass, Pass::Check) { "read" } else { "indexed" };
                        progress::show(format_args!("{batches} batches {done}"));
                    }
                }
            }
        }
        progress::clear();
        Ok(())
    }

    /// The partitions of the index. The list does not name the first one before its second epoch begins.
    async fn partitions(&self) -> Result<Vec<String>> {
        let (stream, envelope) = (StreamName::new("$AppendsIndex", "0")?, Envelope::default());
        let tip = self.epochs.tip(&stream, Consistency::Strong, &envelope).await?;
        let snapshots = tip.iter().flat_map(|tip| &tip.unfolds);
        let mut found = vec![FIRST_PARTITION.to_owned()];
        for snapshot in snapshots.filter(|unfold| unfold.event_type == "Snapshotted") {
            let data = snapshot.data.json()?.unwrap_or_default();
            let active = data["active"].as_object().map(|active| active.keys().cloned());
            found.extend(
                active.into_iter().flatten().filter(|partition| partition != FIRST_PARTITION),
            );
        }
        Ok(found)
    }

    /// Checks that the slices and views of this stack can read the events of a batch.
    async fn check(&self, batch: Vec<(StreamName, Span)>, report: &mut Report) -> Result<()> {
        for (stream, span) in batch {
            let events = self.events(&stream, &span).await?;
            report.gone += span.c.len() as u64 - events.len() as u64;
            report.read += events.len() as u64;
            for recorded in &events {
                if let Err(cause) = self.check_event(&stream, recorded, &span) {
                    report.refuse(&cause, format!("{stream}/{}", recorded.index));
                }
            }
        }
        Ok(())
    }

    fn check_event(
        &self,
        stream: &StreamName,
        recorded: &TimelineEvent,
        span: &Span,
    ) -> Result<()> {
        let event: SequencedEvent = recorded.fed(stream)?;
        let said = usize::try_from(recorded.index - span.i).ok().and_then(|n| span.c.get(n));
        ensure!(
            said == Some(&event.event_type),
            "Propulsion has indexed the type {}, and the event has another",
            said.map_or("?", String::as_str)
        );
        check_readers(&event, self.lists)
    }

    /// The events of a span that the stream has. Earlier ones may be pruned.
    async fn events(&self, stream: &StreamName, span: &Span) -> Result<Vec<TimelineEvent>> {
        paced(async || self.read(stream, span).await).await
    }

    async fn read(&self, stream: &StreamName, span: &Span) -> Result<Vec<TimelineEvent>> {
        let (mut found, envelope) = (Vec::new(), Envelope::default());
        // A backward read returns the events that are left after a prune.
        let (back, strong) = (Direction::Backward, Consistency::Strong);
        let mut read = self.documents.read(stream, span.i..span.end(), back, strong, &envelope);
        loop {
            match read.try_next().await {
                Ok(Some(recorded)) => found.push(recorded),
                Ok(None) | Err(DocumentError::Pruned { .. }) => return Ok(found),
                Err(error) => return Err(error).with_context(|| format!("reading {stream}")),
            }
        }
    }

    /// Indexes the new events of a batch.
    async fn add(
        &self,
        batch: Vec<(StreamName, Span)>,
        reached: &mut HashMap<StreamName, u64>,
        report: &mut Report,
    ) -> Result<()> {
        let mut notifications = Vec::new();
        for (stream, span) in batch {
            let next = match reached.get(&stream) {
                Some(next) => *next,
                None => {
                    let last = async || Ok(self.index.last_of(&stream.partition()).await?);
                    let last = paced(last).await?;
                    last.map_or(0, |(slot, _)| slot + 1)
                }
            };
            let end = span.end();
            report.imports.before += end.min(next).saturating_sub(span.i);
            reached.insert(stream.clone(), end.max(next));
            if end <= next {
                continue;
            }
            let events = self.events(&stream, &span).await?.into_iter();
            let new = events.filter(|recorded| recorded.index >= next);
            let events = new.map(|recorded| (recorded.index, recorded.to_item(&stream))).collect();
            notifications
                .push(Notification { partition: Partition::from(stream.partition()), events });
        }
        let new: usize = notifications.iter().map(|it| it.events.len()).sum();
        let index = async || {
            for (partition, outcome) in
                self.indexer.index(notifications.clone(), Retry::default()).await
            {
                let after = || format!("broken off at {partition}, after {}", report.imports);
                outcome.with_context(after)?;
            }
            Ok(())
        };
        paced(index).await?;
        report.imports.imported += new as u64;
        Ok(())
    }
}

/// The spans of an event of an epoch. The event that closes an epoch has none.
fn spans(recorded: &TimelineEvent) -> Result<Vec<(StreamName, Span)>> {
    if recorded.event.event_type != "Ingested" {
        return Ok(Vec::new());
    }
    let data = recorded.event.data.json()?.unwrap_or(Value::Null);
    let Ingested { add, app } = serde_json::from_value(data)?;
    let named = add.into_iter().chain(app).map(|span| {
        check_slot("i", span.i)?;
        let stream = StreamName::try_from(span.p.clone());
        Ok((stream.with_context(|| format!("stream {:?}", span.p))?, span))
    });
    named.filter(|span| !matches!(span, Ok((stream, _)) if stream.is_internal())).collect()
}
