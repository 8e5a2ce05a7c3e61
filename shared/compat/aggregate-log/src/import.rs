//! Copying a table into another one. A table of the older layout, one store a table, becomes one for any stores so.

use futures::stream::TryStreamExt;
use ringfence_aws::Item;

use crate::item::{EVENT_STORE_ID, decode_named, text};
use crate::push::{Entry, Prepared};
use crate::{AggregateError, AggregateKey, AggregateTable, Range, read, scan};

/// Events that are imported at the same time.
const IMPORTS_MAX: usize = 16;

/// The result of an import: what became of the events of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableImport {
    /// Events that were put.
    pub events: u64,
    /// Events that were there already, from an earlier run.
    pub present: u64,
}

impl AggregateTable {
    /// Puts every event of the table `from` into this one as it is: version, timestamp, payload and metadata. If it fails,
    /// it can be run again, and goes on where events are missing. Nothing else should write to either table meanwhile.
    /// `progress` gets the number of events that were copied or were there.
    ///
    /// # Errors
    /// [`AggregateError::Conflict`] if this table has another event in the place of one; otherwise the failure
    /// of a request.
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

    /// Puts an item without an id of a push. Returns false if it is there already.
    async fn put_once(&self, mut item: Item) -> Result<bool, AggregateError> {
        let event = decode_named(item.clone())?;
        let (key, version) = (AggregateKey::new(event.key.store(), event.key.id())?, event.version);
        self.stores.check(key.store())?;
        // Lists have each aggregate once, also if the other writer has left that out.
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
        let found = read::items(self.clone(), conflict.key.clone(), range);
        match found.try_collect::<Vec<_>>().await?.as_slice() {
            [found] if *found == item => Ok(false),
            _ => Err(AggregateError::Conflict(conflict)),
        }
    }
}
