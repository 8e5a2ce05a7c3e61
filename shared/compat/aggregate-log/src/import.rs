//! Copies a table into another one, for example a table of the older layout into a table for any stores.

use futures::stream::TryStreamExt;
use ringfence_aws::Item;

use crate::item::{EVENT_STORE_ID, decode_named, text};
use crate::push::{Entry, Prepared};
use crate::{AggregateError, AggregateKey, AggregateTable, Range, read, scan};

/// Events that are imported at the same time.
const IMPORTS_MAX: usize = 16;

/// The result of an import.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableImport {
    /// Events that were put.
    pub events: u64,
    /// Events that were there already, from an earlier run.
    pub present: u64,
}

impl AggregateTable {
    /// Puts every event of the table `from` into this table, with its version, timestamp, payload and metadata. If it
    /// fails, it can run again, and puts only the missing events. Nothing else should write to either table meanwhile.
    /// `progress` gets the number of events so far, copied or already present.
    ///
    /// # Errors
    /// [`AggregateError::Conflict`] if this table has another event of the same version; otherwise the failure of a
    /// request.
    pub async fn import(
        &self,
        from: &Self,
        progress: &(dyn Fn(u64) + Send + Sync),
    ) -> Result<TableImport, AggregateError> {
        let puts = scan::items(from).map_ok(|item| self.put_once(item));
        let puts = puts.try_buffer_unordered(IMPORTS_MAX);
        puts.try_fold(TableImport::default(), async |sum, is_new| {
            let (events, present) = (u64::from(is_new), u64::from(!is_new));
            let sum = TableImport { events: sum.events + events, present: sum.present + present };
            progress(sum.events + sum.present);
            Ok(sum)
        })
        .await
    }

    /// Puts an item. Returns false if it is there already.
    async fn put_once(&self, mut item: Item) -> Result<bool, AggregateError> {
        let event = decode_named(item.clone())?;
        let (key, version) = (AggregateKey::new(event.key.store(), event.key.id())?, event.version);
        self.stores.check(key.store())?;
        // Only the first event names its store, whatever the other writer did, so that lists have each aggregate once.
        item.remove(EVENT_STORE_ID);
        if version.number() == 1 {
            item.insert(EVENT_STORE_ID.to_owned(), text(key.store()));
        }
        let (version, forced) = (version.number(), false);
        let entry = Entry { table: self, key, version, forced, item: Some(item.clone()) };
        let prepared = Prepared { push_id: String::new(), entries: vec![entry] };
        let conflict = match self.send(&prepared).await {
            Ok(()) => return Ok(true),
            Err(AggregateError::Conflict(conflict)) => conflict,
            Err(error) => return Err(error),
        };
        let (min_version, max_version) = (Some(version), Some(version));
        let range = Range { min_version, max_version, ..Range::default() };
        let found = read::items(self.clone(), conflict.key.clone(), range, true);
        match found.try_collect::<Vec<_>>().await?.as_slice() {
            [found] if *found == item => Ok(false),
            _ => Err(AggregateError::Conflict(conflict)),
        }
    }
}
