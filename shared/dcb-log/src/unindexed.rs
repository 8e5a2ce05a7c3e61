//! Finds and mends events that an index lacks, while writers continue.
//!
//! An event never changes, and the catalog alone determines its entries in indexes. So the event's own transaction
//! and any number of repairs write the same to an index. A repair sets an index attribute to the value that follows
//! from the event, and puts an index item if it is missing. It replaces nothing that exists. It does not touch
//! fences, and of an event only the index attributes.
//!
//! *An entry that is reported as missing is missing.* The event was seen, so its transaction is committed. But its
//! items become visible one by one, and a strong read of an index item can miss one. Only a transaction or a
//! condition that is judged after the event was seen is sure to see all of them. `verify` reads index items in a
//! transaction. `repair` puts an index item under the condition that it is missing.

use std::collections::{BTreeMap, BTreeSet};

use ringfence_aws::{BATCH_KEYS_MAX, Item, Retry};
use ringfence_core::{Filing, LogError};

use crate::get::{get_all, get_committed};
use crate::item::{COMPOSITE_INDEX, ID, POSITION, index_item, items_id, key_of, tag_index, text};
use crate::log::DcbLog;
use crate::mend::{put_new, set_attributes};

/// Index items that are read together: 4 MB hold no more at [`ringfence_core::EVENT_BYTES_MAX`] each.
const TOGETHER_MAX: usize = 10;

/// Looks at events, one by one, for entries that indexes lack.
pub(crate) struct Unindexed<'a> {
    log: &'a DcbLog,
    repair: bool,
    /// Index items to look for, each with the name of its index.
    items: Vec<(String, Item)>,
    /// The number of entries that each index lacks, or lacked.
    lacking: BTreeMap<String, u64>,
}

impl<'a> Unindexed<'a> {
    pub(crate) fn new(log: &'a DcbLog, repair: bool) -> Self {
        Self { log, repair, items: Vec::new(), lacking: BTreeMap::new() }
    }

    /// Looks at the event of `item`.
    pub(crate) async fn event(&mut self, item: &Item, filing: &Filing) -> Result<(), LogError> {
        let mut attributes = index_attributes(filing);
        attributes.retain(|name, _| !item.contains_key(name));
        if !attributes.is_empty() {
            if self.repair {
                set_attributes(self.log, &key_item(item), &attributes).await?;
            }
            for name in attributes.into_keys() {
                *self.lacking.entry(name).or_default() += 1;
            }
        }
        for boundary in &filing.items {
            let id = items_id(boundary);
            let index = id.split_once(':').map_or(&*id, |(index, _)| index).to_owned();
            self.items.push((index, index_item(item, filing, boundary)));
            if self.items.len() == BATCH_KEYS_MAX {
                self.look().await?;
            }
        }
        Ok(())
    }

    /// Ends the search. Returns how many entries each index lacks or, after a repair, lacked.
    pub(crate) async fn end(mut self) -> Result<BTreeMap<String, u64>, LogError> {
        self.look().await?;
        Ok(self.lacking)
    }

    async fn look(&mut self) -> Result<(), LogError> {
        let mut items = std::mem::take(&mut self.items);
        let keys = items.iter().map(|(_, item)| key_item(item)).collect();
        let there = get_all(self.log, Retry::default(), keys, true).await?;
        let there: BTreeSet<_> = there.iter().map(key_of).collect();
        items.retain(|(_, item)| !there.contains(&key_of(item)));
        for some in items.chunks(TOGETHER_MAX) {
            for index in self.absent(some).await? {
                *self.lacking.entry(index).or_default() += 1;
            }
        }
        Ok(())
    }

    /// The index of each missing item of `items`.
    async fn absent(&self, items: &[(String, Item)]) -> Result<Vec<String>, LogError> {
        let mut absent = Vec::new();
        if self.repair {
            for (index, item) in items {
                absent.extend(put_new(self.log, item).await?.then(|| index.clone()));
            }
            return Ok(absent);
        }
        let keys = items.iter().map(|(_, item)| key_item(item));
        let found = get_committed(self.log, Retry::default(), keys).await?;
        for ((index, _), found) in items.iter().zip(found) {
            absent.extend(found.is_none().then(|| index.clone()));
        }
        Ok(absent)
    }
}

fn key_item(item: &Item) -> Item {
    [ID, POSITION].map(|name| (name.to_owned(), item[name].clone())).into()
}

/// The attributes that put an event into indexes.
fn index_attributes(filing: &Filing) -> Item {
    let tags = filing.indexed.iter().map(|tag| (tag_index(&tag.key), text(&tag.value)));
    let composite =
        filing.composite.iter().map(|id| (COMPOSITE_INDEX.to_owned(), text(id.as_str())));
    tags.chain(composite).collect()
}
