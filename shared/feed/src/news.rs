//! The new events of a partition of any log.

use std::collections::BTreeMap;
use std::sync::Arc;

use aws_sdk_dynamodb::types::AttributeValue;
use futures::{Stream, TryStreamExt};
use ringfence_aws::{Item, attribute_bytes, item_bytes};
use ringfence_core::LogKind;

use crate::entry::{event_of, slot_of};
use crate::error::{IndexError, StreamError};
use crate::partition::Partition;

/// What one read of a partition brings, in bytes, and at most one item more: a page of a query.
pub(crate) const NEWS_BYTES_MAX: usize = 1_024 * 1_024;

/// An event to index.
#[derive(Clone, Debug)]
pub(crate) struct Fresh {
    pub(crate) slot: u64,
    /// When it was recorded, or 0 if that is not known: older events come first.
    pub(crate) at: u64,
    /// Its size on a page, in bytes.
    pub(crate) bytes: usize,
    pub(crate) entry: AttributeValue,
}

impl Fresh {
    /// The entry of an item, if readers can decode it.
    fn of(partition: &Partition, slot: u64, mut item: Item) -> Result<Self, IndexError> {
        if partition.log == LogKind::Dcb {
            item.retain(|name, _| !name.starts_with("tag_"));
        }
        let event = event_of(item.clone()).map_err(|source| {
            let (partition, source) = (partition.clone(), Arc::new(source));
            IndexError::Undecodable { partition, slot, source }
        })?;
        let entry = AttributeValue::M(item);
        // One byte for its place in the list.
        let bytes = 1 + attribute_bytes(&entry);
        Ok(Self { slot, at: event.at, bytes, entry })
    }
}

/// Some events of a partition, by slot, and whether more may follow.
pub(crate) type Found = (BTreeMap<u64, Item>, bool);

/// The next events of a partition, without gaps.
#[derive(Debug, Default)]
pub(crate) struct News {
    pub(crate) fresh: Vec<Fresh>,
    /// Why the next one can't be indexed; those after it wait for it.
    pub(crate) failed: Option<IndexError>,
    /// Whether more may follow.
    pub(crate) more: bool,
}

impl News {
    /// Takes the items up to the first that can't be indexed.
    pub(crate) fn of(partition: &Partition, (items, more): Found) -> Self {
        let mut news = Self { more, ..Self::default() };
        for (slot, item) in items {
            match Fresh::of(partition, slot, item) {
                Ok(fresh) => news.fresh.push(fresh),
                Err(error) => return Self { failed: Some(error), more: false, ..news },
            }
        }
        news
    }
}

/// The items from `wanted` up to the first gap; those after it stay in `items`.
pub(crate) fn dense(items: &mut BTreeMap<u64, Item>, wanted: u64) -> BTreeMap<u64, Item> {
    let mut dense = items.split_off(&wanted);
    let gap = (wanted..).zip(dense.keys()).find(|(n, slot)| n != *slot).map(|(n, _)| n);
    *items = gap.map(|gap| dense.split_off(&gap)).unwrap_or_default();
    dense
}

/// Some items of a stream by slot, and whether there may be more.
pub(crate) async fn bounded<E: Into<StreamError>>(
    items: impl Stream<Item = Result<Item, E>>,
) -> Result<Found, StreamError> {
    let mut items = std::pin::pin!(items);
    let (mut found, mut bytes) = (BTreeMap::new(), 0);
    while let Some(item) = items.try_next().await.map_err(Into::into)? {
        bytes += item_bytes(&item);
        // A number that is not whole is not the slot of an event.
        found.extend(slot_of(&item).map(|slot| (slot, item)));
        if bytes >= NEWS_BYTES_MAX {
            return Ok((found, true));
        }
    }
    Ok((found, false))
}
