//! The log as a source of the index and the EventTopic.
//!
//! In the log, an event is a part of a Tip or of a calf, and can be pruned. So the index keeps it, as an item with the
//! stream and the event's index as key. No body is unpacked, so an entry can hold every event of the log.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use futures::future::{BoxFuture, ready};
use futures::stream::{BoxStream, StreamExt, TryStreamExt};
use ringfence_aws::{Item, Meter, Retry, TableLayout};
use ringfence_core::{BoundaryId, Catalog, Envelope, LogKind, SequencedEvent};
use ringfence_log::news::{Found, Run, Single, StreamError};
use ringfence_log::{
    BoxError, InTable, NewEvents, OpenSource, Source, SourceFacts, SourceTable, StoredEvents,
};

use crate::attributes::{A, C, I, P};
use crate::{
    DocumentLog, DynamoStore, Head, ItemError, Span, StreamName, TimelineEvent, news, table_layout,
};

/// The log as a source of the index and the EventTopic.
pub const SOURCE: &dyn Source = &DocumentSource;

struct DocumentSource;

impl Source for DocumentSource {
    fn facts(&self) -> &'static SourceFacts {
        &SourceFacts {
            kind: LogKind::Documents,
            name: "the document log",
            table: "DocumentTable",
            variable: "DOCUMENT_TABLE",
            attributes: [P, I, C],
        }
    }

    fn layout(&self, _: &Catalog) -> TableLayout {
        table_layout()
    }

    fn open(&self, table: InTable, _: Catalog) -> OpenSource {
        DocumentLog::new(DynamoStore::new(table.client, table.name), table.clock).into()
    }

    fn events(&self, image: Item) -> Result<Vec<Result<SequencedEvent, BoxError>>, BoxError> {
        let span = Span::of_image(image)?;
        let events = span.into_iter().flat_map(|Span { stream, events, .. }| {
            events.into_iter().map(move |event| event.fed(&stream).map_err(Into::into))
        });
        Ok(events.collect())
    }

    fn event(&self, item: Item) -> Result<SequencedEvent, BoxError> {
        let (stream, event) = TimelineEvent::of_item(item)?;
        Ok(event.fed(&stream)?)
    }

    fn keeps_events(&self) -> bool {
        false
    }

    fn partition(&self, key: &str) -> Option<BoundaryId> {
        Some(StreamName::try_from(key.to_owned()).ok()?.partition())
    }

    /// A calf does not have `a`, the number of events that a write of the Tip has appended. A Tip that can't be read
    /// still names its stream.
    fn news(&self, image: Item) -> Result<Option<NewEvents>, BoxError> {
        let appended = image.get(A).and_then(|appended| appended.as_n().ok());
        if appended.is_none_or(|appended| appended == "0") {
            return Ok(None);
        }
        let stream = image.get(P).and_then(|stream| stream.as_s().ok()).cloned();
        let stream = StreamName::try_from(stream.unwrap_or_default())?;
        let span = Span::of_image(image).ok().flatten();
        let events = span.into_iter().flat_map(|span| span.events);
        let events = events.map(|event| (event.index, event.to_item(&stream))).collect();
        Ok(Some((stream.partition(), events)))
    }

    fn is_internal(&self, partition: &BoundaryId) -> bool {
        partition.as_str().starts_with('$')
    }
}

impl From<DocumentLog<DynamoStore>> for OpenSource {
    fn from(log: DocumentLog<DynamoStore>) -> Self {
        Self { source: SOURCE, table: Box::new(log) }
    }
}

/// The envelope of a read without a deadline.
static ENVELOPE: LazyLock<Envelope> = LazyLock::new(Envelope::default);

impl SourceTable for DocumentLog<DynamoStore> {
    fn news<'a>(
        &'a self,
        partition: &'a BoundaryId,
        after: Option<u64>,
        known: &'a BTreeMap<u64, Item>,
        retry: Retry,
    ) -> BoxFuture<'a, Result<Found, StreamError>> {
        Box::pin(async move {
            let stream = StreamName::of_partition(partition);
            let stream = stream.map_err(|error| StreamError::Name(error.into()))?;
            news::news(self, &stream, after, known, retry).await
        })
    }

    fn singles<'a>(
        &'a self,
        _: Vec<Single<'a>>,
        _: bool,
    ) -> BoxFuture<'a, Result<Vec<Item>, StreamError>> {
        Box::pin(ready(Ok(Vec::new())))
    }

    fn run<'a>(&'a self, _: Run<'a>, _: bool) -> BoxFuture<'a, Result<Vec<Item>, StreamError>> {
        Box::pin(ready(Ok(Vec::new())))
    }

    fn meter(&self) -> &Meter {
        self.store().meter()
    }

    fn stored(&self) -> BoxStream<'_, Result<StoredEvents, StreamError>> {
        let listed = |listed: Result<Head, ItemError>| match listed {
            Ok(Head { stream, first, version, .. }) => {
                StoredEvents::Stream { partition: stream.partition(), first, end: version }
            }
            Err(item) => StoredEvents::Wrong(item.to_string()),
        };
        self.streams(&ENVELOPE).map_ok(listed).map_err(news::unread("document table")).boxed()
    }
}
