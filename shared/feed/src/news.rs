//! The new events of a partition of any log.

use std::sync::Arc;

use ringfence_aws::{Item, attribute_bytes, item_bytes};
use ringfence_log::Source;
use ringfence_log::news::Found;

use crate::error::IndexError;
use crate::mark::Mark;
use crate::partition::Partition;
use crate::reference::{BLOCK_BYTES, Body, Reference};

/// An event to index.
#[derive(Clone, Debug)]
pub(crate) struct Fresh {
    /// Its size on a page, in bytes.
    pub(crate) bytes: usize,
    pub(crate) entry: Reference,
}

impl Fresh {
    /// The entry of an item, if readers can decode it.
    fn of(
        source: &dyn Source,
        partition: &Partition,
        slot: u64,
        item: Item,
    ) -> Result<Self, IndexError> {
        let body = match source.keeps_events() {
            true => {
                let blocks = item_bytes(&item).div_ceil(BLOCK_BYTES) as u64;
                Body::InLog(Mark::of(source, &item), blocks)
            }
            false => Body::Here(item.clone()),
        };
        let event = source.event(item).map_err(|error| {
            let (partition, source) = (partition.clone(), Arc::new(error.into()));
            IndexError::Undecodable { partition, slot, source }
        })?;
        let (partition, at, event_type) = (partition.clone(), event.at, event.event_type);
        let entry = Reference { partition, slot, event_type, at, body };
        // One byte for its place in the list.
        let bytes = 1 + attribute_bytes(&entry.attribute());
        Ok(Self { bytes, entry })
    }
}

/// The next events of a partition, without gaps.
#[derive(Debug, Default)]
pub(crate) struct News {
    pub(crate) fresh: Vec<Fresh>,
    /// Why the next event can't be indexed. Later ones wait for it.
    pub(crate) failed: Option<IndexError>,
    /// Whether more may follow.
    pub(crate) more: bool,
}

impl News {
    /// Takes the items up to the first that can't be indexed.
    pub(crate) fn of(source: &dyn Source, partition: &Partition, (items, more): Found) -> Self {
        let mut news = Self { more, ..Self::default() };
        for (slot, item) in items {
            match Fresh::of(source, partition, slot, item) {
                Ok(fresh) => news.fresh.push(fresh),
                Err(error) => return Self { failed: Some(error), more: false, ..news },
            }
        }
        news
    }
}
