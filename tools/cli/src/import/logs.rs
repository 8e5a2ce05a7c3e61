//! The logs of a stack, as an import writes to them: each event goes into its place.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail, ensure};
use futures::future::join_all;
use futures::{StreamExt, TryStreamExt};
use ringfence_aggregate_log::{AggregateKey, AggregateTable, NewAggregateEvent, PushPlace, Range};
use ringfence_aws::{Clock, Retry, Units};
use ringfence_core::{
    BoundaryId, Catalog, CommandRecord, Consistency, Envelope, LogKind, Metadata, NewEvent,
    SequencedEvent,
};
use ringfence_dcb_log::{DcbLog, event_of_image};
use ringfence_document_log::{
    Batch, Direction, DocumentError, DocumentLog, DynamoStore, Payload, StreamAppend,
    StreamAppended, StreamName, TipLimits,
};
use ringfence_feed::Partition;
use serde_json::{Map, Value};

use super::arguments::Arguments;
use super::there::There;
use crate::Lists;
use crate::machine::dynamo_client;
use crate::paced::paced;
use crate::tables::unnamed;

/// The content of a partition.
pub(super) struct Found {
    /// The slot of its first event. Events before it were pruned, or there were none.
    pub(super) began: u64,
    /// Events, each with its slot.
    pub(super) events: Vec<(u64, There)>,
}

/// An event to be written.
pub(super) struct Put {
    /// The index of its partition.
    pub(super) partition: usize,
    /// In its log its time is later than this, in milliseconds since 1970.
    pub(super) after: u64,
    pub(super) event: SequencedEvent,
}

/// The result for an event: the index of its partition, its time in the export, and its time in the log.
pub(super) type Outcome = (usize, u64, Result<u64>);

/// The logs of a stack whose tables are named.
pub(super) struct Writable<'a> {
    catalog: &'a Catalog,
    /// The slices whose commands have an item as their record.
    with_items: BTreeSet<&'static str>,
    dcb: Option<DcbLog>,
    aggregates: Option<AggregateTable>,
    documents: Option<DynamoStore>,
}

/// Fails if a log of single streams would change the event: if its context is not that of the stream, or if it has
/// tags.
fn check_stream(event: &SequencedEvent, context: &str) -> Result<()> {
    ensure!(
        event.context == context,
        "partition {} is a stream of context {context}, and the event is of context {}",
        event.partition,
        event.context
    );
    ensure!(event.tags.is_empty(), "tags: a log of single streams keeps none; give an empty list");
    Ok(())
}

/// An event in the form of the aggregate log.
fn of_aggregate(event: SequencedEvent) -> NewAggregateEvent {
    let SequencedEvent { at, event_type, version, data, metadata, .. } = event;
    let mut metadata: Map<_, _> =
        metadata.iter().map(|(key, value)| (key.to_owned(), value.clone())).collect();
    let schema = Metadata::schema(&event_type, version);
    metadata.extend(schema.map(|schema| (Metadata::SCHEMA.to_owned(), schema)));
    NewAggregateEvent {
        event_type,
        payload: (!data.is_null()).then_some(data),
        metadata: (!metadata.is_empty()).then_some(Value::Object(metadata)),
        timestamp_ms: Some(at),
    }
}

/// An event in the form of the document log.
fn of_document(event: SequencedEvent) -> (Envelope, Payload) {
    let SequencedEvent { event_type, version, data, metadata, .. } = event;
    let payload = Payload { event_type, version, data: (!data.is_null()).then_some(data) };
    (Envelope { metadata, ..Envelope::default() }, payload)
}

/// The limits of the Tip to which an event is appended. A repeat looks for the events of its command in one item, so
/// they stay in one item.
fn limits(tip: Option<&Batch>, metadata: &Metadata) -> TipLimits {
    let before = tip.and_then(|tip| tip.events.last()).and_then(|last| last.meta.json().ok()?);
    let is_of_both = |mark| {
        let text = metadata.text(mark);
        text.is_some() && text == before.as_ref().and_then(|before| before.get(mark)?.as_str())
    };
    let mut limits = TipLimits::DEFAULT;
    if CommandRecord::MARKS.into_iter().all(is_of_both) {
        limits.event_bytes_max = limits.bytes_max;
    }
    limits
}

impl<'a> Writable<'a> {
    /// The logs whose tables the command line names. A table of another kind is an error.
    pub(super) async fn of(arguments: &Arguments, lists: &'a Lists) -> Result<Self> {
        let client = dynamo_client().await?;
        let tables = &arguments.tables;
        tables.streams.check(&client).await?;
        let catalog = &lists.stack.catalog;
        let slices = lists.stack.slices().filter(|(_, slice)| (slice.has_item)());
        let with_items = slices.map(|(_, slice)| slice.name).collect();
        let mut logs = Self { catalog, with_items, dcb: None, aggregates: None, documents: None };
        if let Ok(table) = tables.events() {
            table.check(&client).await?;
            logs.dcb = Some(table.log_at(client.clone(), catalog, Clock::system()));
        }
        if let Some(table) = &tables.streams.aggregate_table {
            logs.aggregates = Some(AggregateTable::new(client.clone(), table, Clock::system()));
        }
        if let Some(table) = &tables.streams.document_table {
            logs.documents = Some(DynamoStore::new(client, table));
        }
        Ok(logs)
    }

    /// Fails if the event can't be written, as far as the event alone shows it.
    pub(super) fn check(&self, event: &SequencedEvent) -> Result<()> {
        let log = Partition::of(event).log;
        ensure!(event.slot >= log.first_slot(), "the slots of its log begin with 1");
        match log {
            LogKind::Dcb => {
                let record = self.record(&event.metadata);
                self.dcb()?.restorable(event.clone(), record)?;
            }
            LogKind::Aggregates => {
                let key = AggregateKey::of_partition(event.partition.as_str())?;
                check_stream(event, key.store())?;
                self.aggregates()?.pushable(&key, event.slot, of_aggregate(event.clone()))?;
            }
            LogKind::Documents => {
                let stream = StreamName::of_partition(&event.partition)?;
                check_stream(event, stream.category())?;
                let (envelope, payload) = of_document(event.clone());
                let append = StreamAppend {
                    stream: &stream,
                    known: None,
                    by_etag: false,
                    events: vec![payload],
                    unfolds: Vec::new(),
                    envelope: &envelope,
                };
                self.documents(Clock::system())?.appendable(append)?;
            }
        }
        let mut tags = BTreeSet::new();
        let twice = event.tags.iter().find(|tag| !tags.insert((&tag.key, &tag.value)));
        ensure!(twice.is_none(), "tags: one is there twice; leave one of the two out");
        Ok(())
    }

    /// The record of the command that wrote an event, if the record is an item. An event of an older version does not
    /// say so, but its slice does.
    fn record(&self, metadata: &Metadata) -> Option<CommandRecord> {
        let record = CommandRecord::of_item(metadata);
        record.filter(|it| !it.sha256.is_empty() || self.with_items.contains(&*it.slice))
    }

    fn dcb(&self) -> Result<&DcbLog> {
        self.dcb.as_ref().with_context(|| unnamed(LogKind::Dcb))
    }

    fn aggregates(&self) -> Result<&AggregateTable> {
        self.aggregates.as_ref().with_context(|| unnamed(LogKind::Aggregates))
    }

    fn store(&self) -> Result<&DynamoStore> {
        self.documents.as_ref().with_context(|| unnamed(LogKind::Documents))
    }

    fn documents(&self, clock: Clock) -> Result<DocumentLog<DynamoStore>> {
        Ok(DocumentLog::new(self.store()?.clone(), clock))
    }

    /// What the requests have consumed.
    pub(super) fn units(&self) -> Units {
        let meters = [
            self.dcb.as_ref().map(DcbLog::meter),
            self.aggregates.as_ref().map(AggregateTable::meter),
            self.documents.as_ref().map(DynamoStore::meter),
        ];
        let all = meters.into_iter().flatten().map(|meter| meter.snapshot().total());
        all.fold(Units::default(), |sum, units| Units {
            read: sum.read + units.read,
            write: sum.write + units.write,
        })
    }

    /// At most `events` events of the partition from slot `first` on, and the event before them. The read is strong.
    pub(super) async fn found(
        &self,
        partition: &Partition,
        first: u64,
        events: usize,
    ) -> Result<Found> {
        paced(async || self.find(partition, first, events).await).await
    }

    async fn find(&self, partition: &Partition, first: u64, events: usize) -> Result<Found> {
        let (begin, most) = (first.saturating_sub(1), events + 1);
        let mut began = partition.log.first_slot();
        let found = |event: SequencedEvent| (event.slot, There::of(&event));
        let events = match partition.log {
            LogKind::Dcb => {
                let log = self.dcb()?;
                let items =
                    log.items_in(&partition.id, begin.max(1)..=u64::MAX, true, Retry::default());
                let events = items
                    .take(most)
                    .map_err(anyhow::Error::new)
                    .try_filter_map(|item| async { Ok(event_of_image(item)?.map(found)) });
                events.try_collect().await?
            }
            LogKind::Aggregates => {
                let key = AggregateKey::of_partition(partition.id.as_str())?;
                let range = Range { min_version: Some(begin), ..Range::default() };
                let events = self.aggregates()?.get_events(&key, range).take(most);
                events.map_ok(|event| found(event.into())).try_collect().await?
            }
            LogKind::Documents => {
                let stream = StreamName::of_partition(&partition.id)?;
                let (log, envelope) = (self.documents(Clock::system())?, Envelope::default());
                let (back, strong) = (Direction::Backward, Consistency::Strong);
                let tip = log.tip(&stream, strong, &envelope).await?;
                let version = tip.map_or(0, |tip| tip.version);
                let range = begin.min(version)..version.min(begin + most as u64);
                // A backward read returns the events that are left after a prune.
                let mut read = log.read(&stream, range, back, strong, &envelope);
                let mut events = Vec::new();
                loop {
                    match read.try_next().await {
                        Ok(Some(event)) => events.push(found(event.fed(&stream)?)),
                        Ok(None) => break,
                        Err(DocumentError::Pruned { first, .. }) => {
                            began = first;
                            break;
                        }
                        Err(error) => return Err(error.into()),
                    }
                }
                events.reverse();
                events
            }
        };
        Ok(Found { began, events })
    }

    /// Writes events: those that share no boundary in parallel, the others in their order. After an error it leaves the
    /// rest.
    pub(super) async fn put(&self, events: Vec<Put>) -> Vec<Outcome> {
        let groups = self.groups(events).into_iter().map(|group| async move {
            let mut outcomes = Vec::with_capacity(group.len());
            let mut ends = BTreeMap::new();
            for Put { partition, after, mut event } in group {
                let (id, was_at) = (event.id(), event.at);
                // The event before it may have got a later time.
                let end = ends.entry(partition).or_insert(after);
                if event.partition.is_of_dcb_log() {
                    event.at = event.at.max(*end + 1);
                }
                let put = paced(async || self.put_one(event.clone()).await).await;
                let put = put.with_context(|| format!("importing {id}"));
                *end = *put.as_ref().unwrap_or(end);
                let has_failed = put.is_err();
                outcomes.push((partition, was_at, put));
                if has_failed {
                    break;
                }
            }
            outcomes
        });
        join_all(groups).await.into_iter().flatten().collect()
    }

    /// Groups events that share boundaries, directly or through others.
    fn groups(&self, events: Vec<Put>) -> Vec<Vec<Put>> {
        let mut groups: Vec<(BTreeSet<BoundaryId>, Vec<Put>)> = Vec::new();
        for put in events {
            let mut boundaries = BTreeSet::from([put.event.partition.clone()]);
            let SequencedEvent { event_type, tags, .. } = put.event.clone();
            let filed = NewEvent { event_type: event_type.into(), tags, data: Value::Null };
            if let Ok(filing) = self.catalog.filing(&filed) {
                boundaries.extend(filing.fences);
            }
            // Events of one command go into one item, in their order.
            let item = self.record(&put.event.metadata).and_then(|record| record.id().ok());
            boundaries.extend(item.map(BoundaryId::stored));
            let (mut shared, apart): (Vec<_>, Vec<_>) =
                groups.into_iter().partition(|(of, _)| !of.is_disjoint(&boundaries));
            let mut group = Vec::new();
            for (of, events) in &mut shared {
                boundaries.append(of);
                group.append(events);
            }
            group.push(put);
            groups = apart;
            groups.push((boundaries, group));
        }
        groups.into_iter().map(|(_, group)| group).collect()
    }

    async fn put_one(&self, event: SequencedEvent) -> Result<u64> {
        match Partition::of(&event).log {
            LogKind::Dcb => {
                let record = self.record(&event.metadata);
                Ok(self.dcb()?.restore(event, record).await?.at)
            }
            LogKind::Aggregates => self.push(event).await,
            LogKind::Documents => self.append(event).await,
        }
    }

    async fn push(&self, event: SequencedEvent) -> Result<u64> {
        let key = AggregateKey::of_partition(event.partition.as_str())?;
        let (slot, at) = (event.slot, event.at);
        self.aggregates()?.push_event(&key, PushPlace::At(slot), of_aggregate(event)).await?;
        Ok(at)
    }

    async fn append(&self, event: SequencedEvent) -> Result<u64> {
        let stream = StreamName::of_partition(&event.partition)?;
        let (slot, at) = (event.slot, event.at);
        let (log, (envelope, payload)) = (self.documents(Clock::fixed(at))?, of_document(event));
        let tip = log.tip(&stream, Consistency::Strong, &envelope).await?;
        let found = tip.as_ref().map_or(0, |tip| tip.version);
        ensure!(found == slot, "another writer appends to {stream}: it has {found} events by now");
        let append = StreamAppend {
            stream: &stream,
            known: tip.as_ref(),
            by_etag: false,
            events: vec![payload],
            unfolds: Vec::new(),
            envelope: &envelope,
        };
        let log = log.with_limits(limits(tip.as_ref(), &envelope.metadata));
        match log.append(append).await? {
            StreamAppended::Written(_) => Ok(at),
            StreamAppended::Conflict(_) => bail!("another writer appends to {stream}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_event_is_in_an_item_if_its_slice_has_items() {
        let catalog = Catalog::new("none", []).expect("no contradiction");
        let (with_items, catalog) = (BTreeSet::from(["create-invoice"]), &catalog);
        let (dcb, aggregates, documents) = (None, None, None);
        let logs = Writable { catalog, with_items, dcb, aggregates, documents };
        for (slice, of_older) in [("create-invoice", true), ("cancel-order", false)] {
            let hashes =
                [("correlationId", of_older), ("itemSha256", true), ("commandSha256", false)];
            for (hash, expected) in hashes {
                let marks = [("commandId", "k"), ("slice", slice), (hash, "a hash")].into_iter();
                let marks = marks.map(|(name, text)| (name.to_owned(), text.into()));
                let marks = marks.collect::<BTreeMap<_, _>>();
                let found = logs.record(&marks.try_into().expect("not reserved"));
                assert_eq!(found.is_some(), expected, "{slice} {hash}");
            }
        }
    }
}
