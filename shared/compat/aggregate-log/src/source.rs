//! The log as the index and the EventTopic follow it.

use std::collections::BTreeMap;

use futures::future::BoxFuture;
use futures::stream::{BoxStream, StreamExt, TryStreamExt};
use ringfence_aws::{Item, Retry, TableLayout};
use ringfence_core::{BoundaryId, Catalog, LogKind, SequencedEvent};
use ringfence_log::news::{Found, StreamError, bounded, whole};
use ringfence_log::{BoxError, InTable, OpenSource, Source, SourceFacts, SourceTable, Stored};

use crate::item::{AGGREGATE_ID, TYPE, VERSION};
use crate::{
    AggregateError, AggregateKey, AggregateTable, Aggregates, Range, event_of_image, table_layout,
};

/// The log as others follow it.
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

    fn event(&self, entry: Item) -> Result<SequencedEvent, BoxError> {
        Ok(event_of_image(entry)?.into())
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
            let key = AggregateKey::of_partition(partition.as_str());
            let key = &key.map_err(|error| StreamError::Name(error.into()))?;
            let table = &self.clone().retrying(retry);
            let look = |from| async move {
                let range = Range { min_version: Some(from), ..Range::default() };
                let items = table.items(key, range).map_err(unread("aggregate"));
                bounded(items, VERSION).await
            };
            whole(partition, wanted, known, retry, look).await
        })
    }

    fn stored(&self) -> BoxStream<'_, Result<Stored, StreamError>> {
        self.scan().map_ok(Stored::Event).map_err(unread("aggregate table")).boxed()
    }
}
