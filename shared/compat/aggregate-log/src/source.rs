//! The log's name in a context, and the log as a source of the index and the EventTopic.

use crate::item::{AGGREGATE_ID, EVENT_STORE_ID, TYPE, VERSION};
use crate::read::items;
use crate::table::READING_ITEMS;
use crate::{
    AggregateError, AggregateKey, AggregateLog, AggregateTable, Range, event_of_image, table_layout,
};
use futures::future::BoxFuture;
use futures::stream::{BoxStream, StreamExt, TryStreamExt};
use ringfence_aws::{Item, Meter, Retry, TableLayout};
use ringfence_core::{
    Access, BoundaryId, Catalog, Context, Current, LogKind, LogName, Name, Reads, ReadsOf,
    SequencedEvent, Slice,
};
use ringfence_log::news::{Found, Run, Single, StreamError, bounded, whole};
use ringfence_log::{
    BoundaryShape, BoxError, Dependence, InTable, LogOfEvents, OpenSource, Source, SourceFacts,
    SourceTable, Sourced, StoredEvents, by,
};
use serde::de::Error as _;
use serde_json::Error;
use std::collections::BTreeMap;

/// Names the aggregate log as the log of a context. Each event is in one aggregate, and its one tag names the
/// aggregate.
pub struct Aggregates;

impl LogName for Aggregates {
    const KIND: LogKind = LogKind::Aggregates;
}

impl Sourced for Aggregates {
    const SOURCE: &'static dyn Source = SOURCE;
}

impl LogOfEvents for Aggregates {
    type Open = AggregateLog;

    fn open(table: &InTable, catalog: Catalog) -> AggregateLog {
        let InTable { client, name, clock, .. } = table;
        let table = AggregateTable::new(client.clone(), &**name, clock.clone());
        AggregateLog::new(table, catalog, clock.clone())
    }

    async fn verify(log: AggregateLog) -> Result<Vec<String>, BoxError> {
        let report = log.table().verify(&|_| {}).await?;
        Ok(report.wrong.iter().map(ToString::to_string).collect())
    }

    fn depends_on<S: Slice>() -> BTreeMap<BoundaryShape, Dependence> {
        let stream = BoundaryShape::Stream(S::Context::NAME.to_owned());
        let types = ReadsOf::<S>::TYPES.iter().map(|name| Name::Borrowed(name)).collect();
        BTreeMap::from([(stream, Dependence { by: by(&Access::Partition, true), types })])
    }

    fn read<S: Slice>(event: &Current<'_>) -> Option<Result<(), Error>> {
        let is_read = event.context == S::Context::NAME
            && event.partition.as_str().contains('#')
            && ReadsOf::<S>::TYPES.contains(&&*event.event_type);
        is_read.then(|| {
            // The payload need not repeat the aggregate's id.
            let catalog = S::Context::catalog().map_err(Error::custom)?;
            let event = catalog.current(crate::whole(SequencedEvent::clone(event), &catalog));
            ReadsOf::<S>::decode(&event.map_err(Error::custom)?).map(drop)
        })
    }
}

/// The log as a source of the index and the EventTopic.
pub const SOURCE: &dyn Source = &Aggregates;

impl Source for Aggregates {
    fn facts(&self) -> &'static SourceFacts {
        &SourceFacts {
            kind: LogKind::Aggregates,
            name: "the aggregate log",
            table: "AggregateTable",
            variable: "AGGREGATE_TABLE",
            attributes: [AGGREGATE_ID, VERSION, TYPE],
        }
    }

    fn layout(&self, _: &Catalog) -> TableLayout {
        table_layout()
    }

    fn open(&self, table: InTable, _: Catalog) -> OpenSource {
        AggregateTable::new(table.client, table.name, table.clock).into()
    }

    fn events(&self, image: Item) -> Result<Vec<Result<SequencedEvent, BoxError>>, BoxError> {
        Ok(vec![Ok(self.event(image)?)])
    }

    fn event(&self, item: Item) -> Result<SequencedEvent, BoxError> {
        Ok(event_of_image(item)?.into())
    }

    fn is_of_index(&self, attribute: &str) -> bool {
        attribute == EVENT_STORE_ID
    }
}

impl From<AggregateTable> for OpenSource {
    fn from(table: AggregateTable) -> Self {
        Self { source: SOURCE, table: Box::new(table) }
    }
}

fn unread(what: &'static str) -> impl Fn(AggregateError) -> StreamError {
    move |error| {
        let is_transient = matches!(error, AggregateError::Store(_));
        StreamError::Unread { what, is_transient, source: error.into() }
    }
}

fn named(partition: &BoundaryId) -> Result<AggregateKey, StreamError> {
    let key = AggregateKey::of_partition(partition.as_str());
    key.map_err(|error| StreamError::Name(error.into()))
}

impl SourceTable for AggregateTable {
    fn news<'a>(
        &'a self,
        partition: &'a BoundaryId,
        after: Option<u64>,
        known: &'a BTreeMap<u64, Item>,
        retry: Retry,
    ) -> BoxFuture<'a, Result<Found, StreamError>> {
        let wanted = LogKind::Aggregates.slot_after(after);
        Box::pin(async move {
            let key = &named(partition)?;
            let table = &self.clone().retrying(retry);
            let look = |from| async move {
                let range = Range { min_version: Some(from), ..Range::default() };
                let items = table.items(key, range).map_err(unread("aggregate"));
                bounded(items, VERSION).await
            };
            whole(partition, wanted, known, retry, look).await
        })
    }

    fn singles<'a>(
        &'a self,
        places: Vec<Single<'a>>,
        strong: bool,
    ) -> BoxFuture<'a, Result<Vec<Item>, StreamError>> {
        Box::pin(async move {
            let key = |(partition, version)| Ok(self.stores.key_of(&named(partition)?, version));
            let keys = places.into_iter().map(key).collect::<Result<_, StreamError>>()?;
            let items = self.dynamo.get_all(self.retry, keys, strong).await;
            let items =
                items.map_err(|gave_up| unread("events")(gave_up.during(READING_ITEMS).into()))?;
            Ok(items.into_iter().map(|item| self.stores.read(item)).collect())
        })
    }

    fn run<'a>(
        &'a self,
        (partition, versions): Run<'a>,
        strong: bool,
    ) -> BoxFuture<'a, Result<Vec<Item>, StreamError>> {
        let (min_version, max_version) = (Some(*versions.start()), Some(*versions.end()));
        let range = Range { min_version, max_version, ..Range::default() };
        Box::pin(async move {
            let items = items(self.clone(), named(partition)?, range, strong);
            items.map_err(unread("events")).try_collect().await
        })
    }

    fn meter(&self) -> &Meter {
        self.dynamo.meter()
    }

    fn stored(&self) -> BoxStream<'_, Result<StoredEvents, StreamError>> {
        self.scan().map_ok(StoredEvents::Event).map_err(unread("aggregate table")).boxed()
    }
}
