//! The new events of a partition of any log.

use std::sync::Arc;

use aws_sdk_dynamodb::types::AttributeValue;
use ringfence::Sequence;
use ringfence_dynamo::{Item, attribute_bytes};

use crate::entry::{event_of, position_of};
use crate::error::IndexError;
use crate::partition::{Log, Partition};

/// How often a stream with missing events is read. That takes some seconds; items become visible within
/// milliseconds.
pub(crate) const LOOKS_MAX: u32 = 8;
/// The bytes of one read of a stream, which may bring one item more: a page of a query.
pub(crate) const NEWS_BYTES_MAX: usize = 1_024 * 1_024;

/// An event to index.
#[derive(Clone, Debug)]
pub(crate) struct Fresh {
    pub(crate) position: Sequence,
    /// When it was recorded, as far as that is known: older events come first.
    pub(crate) ms: u64,
    pub(crate) event_type: String,
    /// Its size on a page, in bytes.
    pub(crate) bytes: usize,
    pub(crate) entry: AttributeValue,
}

impl Fresh {
    /// The entry of an item, if readers can decode it.
    pub(crate) fn of(partition: &Partition, mut item: Item) -> Result<Self, IndexError> {
        let (partition, position) = (partition.clone(), position_of(&item));
        if partition.log == Log::Dcb {
            item.retain(|name, _| !name.starts_with("tag_"));
        }
        let event = match event_of(item.clone()) {
            Ok(event) => event,
            Err(source) => {
                let source = Arc::new(source);
                return Err(IndexError::Undecodable { partition, position, source });
            }
        };
        let (ms, position, event_type) = (event.ms(), event.position, event.event_type);
        let entry = AttributeValue::M(item);
        // One byte for its place in the list.
        let bytes = 1 + attribute_bytes(&entry);
        Ok(Self { position, ms: ms.unwrap_or(0), event_type, bytes, entry })
    }
}

/// The mark up to which a partition is read.
#[derive(Clone, Debug)]
pub(crate) enum Mark {
    /// As a fence says.
    Fence(ringfence_dcb_log::Mark),
    /// To the end of a stream.
    End,
}

/// The next events of a partition, in order.
#[derive(Debug, Default)]
pub(crate) struct News {
    pub(crate) fresh: Vec<Fresh>,
    /// Why the next one can't be indexed; later ones wait for it.
    pub(crate) failed: Option<IndexError>,
    /// The mark to go on with, if more follow.
    pub(crate) more: Option<Mark>,
}

impl News {
    /// Takes the items up to the first that can't be indexed.
    pub(crate) fn of(partition: &Partition, items: Vec<Item>, more: Option<Mark>) -> Self {
        let mut news = Self { more, ..Self::default() };
        for item in items {
            match Fresh::of(partition, item) {
                Ok(fresh) => news.fresh.push(fresh),
                Err(error) => return Self { failed: Some(error), more: None, ..news },
            }
        }
        news
    }
}

/// The version after the last indexed one; `first` if none is indexed.
pub(crate) fn next(after: Option<u64>, first: u64) -> u64 {
    after.map_or(first, |after| after.saturating_add(1))
}
