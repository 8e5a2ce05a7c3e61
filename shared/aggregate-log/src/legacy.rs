//! The original's older layout, one table a store: read and imported, never written.
//!
//! Its partition key is the bare id of the aggregate; first events have `isInitialEvent` = 1, by
//! which the index `initialEvents` lists them.

use aws_sdk_dynamodb::Client;
use futures::stream::{BoxStream, StreamExt, TryStreamExt};
use ringfence_dynamo::{Clock, Item};

use crate::item::{AGGREGATE_ID, EVENT_STORE_ID, decode_named, number, text, text_of, version_of};
use crate::list::{self, IS_INITIAL_EVENT, Of};
use crate::push::{Entry, Prepared};
use crate::{
    AggregateError, AggregateEvent, AggregateKey, AggregatePage, AggregateTable, DecodeError,
    ListOptions, Range, read, scan,
};

/// Aggregates that are imported at the same time.
const IMPORTS_MAX: usize = 16;

/// The table of one store.
#[derive(Clone, Debug)]
pub struct LegacyTable {
    table: AggregateTable,
    store: String,
}

/// The result of an import: what became of the events of a legacy table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LegacyImport {
    /// Events that were put.
    pub events: u64,
    /// Events that were there already, from an earlier run.
    pub present: u64,
}

impl LegacyTable {
    /// The table `name`, which holds the events of `store`.
    ///
    /// # Errors
    /// [`AggregateError::Key`] if `store` can't name a store.
    pub fn new(
        client: Client,
        name: impl Into<String>,
        store: impl Into<String>,
    ) -> Result<Self, AggregateError> {
        let store = store.into();
        crate::key::check_store(&store)?;
        Ok(Self { table: AggregateTable::new(client, name, Clock::system()), store })
    }

    /// Puts every event into `to` as it is: version, timestamp, payload and metadata. If it fails, it can
    /// be run again, and goes on where events are missing. Nothing else should write to either table
    /// meanwhile.
    ///
    /// # Errors
    /// [`AggregateError::Conflict`] if `to` has another event in the place of one; otherwise the failure
    /// of a request.
    pub async fn import(&self, to: &AggregateTable) -> Result<LegacyImport, AggregateError> {
        let put = |item| async move {
            let entry = self.entry(item)?;
            to.put_once(entry).await
        };
        let puts = scan::items(&self.table).map_ok(put).try_buffer_unordered(IMPORTS_MAX);
        puts.try_fold(LegacyImport::default(), async |sum, is_new| {
            let (events, present) = (u64::from(is_new), u64::from(!is_new));
            Ok(LegacyImport { events: sum.events + events, present: sum.present + present })
        })
        .await
    }

    /// The item in the layout of one table for all stores.
    fn entry(&self, item: Item) -> Result<Entry, AggregateError> {
        let item = self.prefixed(item)?;
        let event = decode_named(item.clone())?;
        Ok(Entry {
            key: event.key,
            version: event.version.number(),
            forced: false,
            item: Some(item),
        })
    }

    fn prefixed(&self, mut item: Item) -> Result<Item, AggregateError> {
        let name = crate::item::name_of(&item);
        let undecodable = |error: DecodeError| AggregateError::undecodable(name, error);
        let read = || Ok((text_of(&item, AGGREGATE_ID)?.to_owned(), version_of(&item)?));
        let (id, version) = read().map_err(undecodable)?;
        let key = AggregateKey::new(&self.store, id)?;
        item.remove(IS_INITIAL_EVENT);
        item.insert(AGGREGATE_ID.to_owned(), text(key.to_string()));
        if version.number() == 1 {
            item.insert(EVENT_STORE_ID.to_owned(), text(&self.store));
        }
        Ok(item)
    }
}

impl AggregateTable {
    /// Puts an item without an id of a push. Returns false if it is there already.
    async fn put_once(&self, entry: Entry) -> Result<bool, AggregateError> {
        let (key, version, item) = (entry.key.clone(), entry.version, entry.item.clone());
        let prepared = Prepared { push_id: String::new(), entries: vec![entry] };
        match self.send(&prepared).await {
            Ok(()) => Ok(true),
            Err(AggregateError::Conflict(conflict)) => {
                let range = Range {
                    min_version: Some(version),
                    max_version: Some(version),
                    ..Range::default()
                };
                let found =
                    read::items(self.clone(), key.to_string(), range).try_collect::<Vec<_>>();
                match found.await?.as_slice() {
                    [found] if Some(found) == item.as_ref() => Ok(false),
                    _ => Err(AggregateError::Conflict(conflict)),
                }
            }
            Err(error) => Err(error),
        }
    }
}

impl LegacyTable {
    /// As [`AggregateTable::get_events`].
    pub fn get_events(
        &self,
        key: &AggregateKey,
        range: Range,
    ) -> BoxStream<'_, Result<AggregateEvent, AggregateError>> {
        if key.store() != self.store {
            let why = format!("{key} is not in the table of {}", self.store);
            let refused = Err(AggregateError::Invalid(why));
            return futures::stream::once(std::future::ready(refused)).boxed();
        }
        read::items(self.table.clone(), key.id().to_owned(), range)
            .map(|item| item.and_then(|item| self.prefixed(item)).and_then(decode_named))
            .boxed()
    }

    /// As [`AggregateTable::list_aggregate_ids`].
    ///
    /// # Errors
    /// As [`AggregateTable::list_aggregate_ids`], and a store that is not in the table.
    pub async fn list_aggregate_ids(
        &self,
        store: &str,
        list: &ListOptions,
    ) -> Result<AggregatePage, AggregateError> {
        if store != self.store {
            let why = format!("{store} is not in the table of {}", self.store);
            return Err(AggregateError::Invalid(why));
        }
        list::page(&self.table, Of { name: IS_INITIAL_EVENT, value: number(1) }, list).await
    }
}
