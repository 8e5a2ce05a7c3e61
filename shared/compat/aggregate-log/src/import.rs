//! Copies the events of another table, for example of a table of the older layout into a table for any stores.

use futures::stream::TryStreamExt;
use ringfence_aws::Item;

use crate::item::{EVENT_STORE_ID, decode_named, text};
use crate::push::{Entry, Prepared};
use crate::{AggregateError, AggregateKey, AggregateTable, Range, read};

impl AggregateTable {
    /// Puts an event that [`AggregateTable::scan`] found in another table, with its version, timestamp, payload and
    /// metadata. Returns false if it is there already. Nothing else should write to either table meanwhile.
    ///
    /// # Errors
    /// [`AggregateError::Conflict`] if this table has another event of the same version; otherwise the failure of a
    /// request.
    pub async fn import(&self, mut item: Item) -> Result<bool, AggregateError> {
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
