//! The log as the index and the EventTopic follow it.

use std::collections::BTreeMap;

use futures::future::BoxFuture;
use futures::stream::{BoxStream, StreamExt, TryStreamExt};
use ringfence_aws::{Item, Retry, TableLayout};
use ringfence_core::{BoundaryId, Catalog, LogError, LogKind, SequencedEvent};
use ringfence_log::news::{Found, StreamError, bounded, whole};
use ringfence_log::{
    BoxError, InTable, LogOfEvents, NewEvents, OpenSource, Source, SourceFacts, SourceTable, Stored,
};

use crate::item::{APPEND_ID, AT, EVENT, ID, POSITION};
use crate::{Dcb, DcbLog, event_of_image, item, table_layout};

/// The log as others follow it.
pub const SOURCE: &dyn Source = &Dcb;

impl Source for Dcb {
    fn facts(&self) -> &'static SourceFacts {
        &SourceFacts {
            kind: LogKind::Dcb,
            name: "the DCB log",
            table: "EventTable",
            variable: "EVENT_TABLE",
            attributes: [ID, POSITION, EVENT],
        }
    }

    fn layout(&self, catalog: &Catalog) -> TableLayout {
        table_layout(catalog)
    }

    fn open(&self, table: InTable, catalog: Catalog) -> OpenSource {
        <Self as LogOfEvents>::open(&table, catalog).into()
    }

    fn events(&self, image: Item) -> Result<Vec<Result<SequencedEvent, BoxError>>, BoxError> {
        Ok(event_of_image(image)?.into_iter().map(Ok).collect())
    }

    fn event(&self, entry: Item) -> Result<SequencedEvent, BoxError> {
        event_of_image(entry)?.ok_or_else(|| "it has no event type".into())
    }

    /// Without the attributes of the indexes.
    fn entry(&self, mut item: Item) -> Item {
        item.retain(|name, _| !name.starts_with("tag_"));
        item
    }

    fn news(&self, image: Item) -> Result<Option<NewEvents>, BoxError> {
        if !image.contains_key(EVENT) {
            return Ok(None);
        }
        let (partition, slot) = self.place(&image).ok_or("its key is not that of an event")?;
        Ok(Some((partition, [(slot, image)].into())))
    }

    fn keeps_times(&self) -> bool {
        true
    }

    fn time(&self, item: &Item) -> Option<u64> {
        item::whole(item, AT)
    }

    fn append_id<'i>(&self, item: &'i Item) -> Option<&'i String> {
        item.get(APPEND_ID)?.as_s().ok()
    }
}

impl From<DcbLog> for OpenSource {
    fn from(log: DcbLog) -> Self {
        Self { source: SOURCE, table: Box::new(log) }
    }
}

fn unread(what: &'static str) -> impl Fn(LogError) -> StreamError {
    move |error| StreamError::Unread { what, is_transient: true, source: error.into() }
}

impl SourceTable for DcbLog {
    fn news<'a>(
        &'a self,
        partition: &'a BoundaryId,
        after: Option<u64>,
        known: &'a BTreeMap<u64, Item>,
        retry: Retry,
    ) -> BoxFuture<'a, Result<Found, StreamError>> {
        let look = move |from: u64| async move {
            let items = self.items_after(partition, from.saturating_sub(1), retry);
            bounded(items.map_err(unread("partition")), POSITION).await
        };
        let wanted = LogKind::Dcb.slot_after(after);
        Box::pin(whole(partition, wanted, known, retry, look))
    }

    fn stored(&self) -> BoxStream<'_, Result<Stored, StreamError>> {
        self.items_strong().map_ok(Stored::Event).map_err(unread("event table")).boxed()
    }
}
