//! What is new in a partition, whichever log it is of.

use std::sync::Arc;

use aws_sdk_dynamodb::types::AttributeValue;
use ringfence::Sequence;
use ringfence_dynamo::{Item, attribute_bytes};

use crate::entry::{event_of, position_of};
use crate::error::IndexError;
use crate::partition::{Log, Partition};

/// How often a stream is read until nothing is missing in it: some seconds, where items become
/// visible within milliseconds.
pub(crate) const LOOKS_MAX: u32 = 8;
/// What one read of a stream brings, in bytes, and at most one item more: a page of a query.
pub(crate) const NEWS_BYTES_MAX: usize = 1_024 * 1_024;

/// An event that is to be indexed.
#[derive(Clone, Debug)]
pub(crate) struct Fresh {
    pub(crate) position: Sequence,
    /// When it was recorded, as far as that is known: what is older comes first.
    pub(crate) ms: u64,
    pub(crate) event_type: String,
    /// What it takes of a page, in bytes.
    pub(crate) bytes: usize,
    pub(crate) entry: AttributeValue,
}

impl Fresh {
    /// The entry of an item, if readers will be able to decode it.
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

/// Up to where a partition is read.
#[derive(Clone, Debug)]
pub(crate) enum Mark {
    /// What a fence says.
    Fence(ringfence_dcb_log::Mark),
    /// To the end of a stream.
    End,
}

/// The next events of a partition, in order.
#[derive(Debug, Default)]
pub(crate) struct News {
    pub(crate) fresh: Vec<Fresh>,
    /// Why the next one can't be indexed; those behind it wait for it.
    pub(crate) failed: Option<IndexError>,
    /// What to go on with, where more follow.
    pub(crate) more: Option<Mark>,
}

impl News {
    /// Takes what can be indexed of the items, up to the first that can't.
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

/// The version behind the last one that is indexed; `first` where none is.
pub(crate) fn next(after: Option<u64>, first: u64) -> u64 {
    after.map_or(first, |after| after.saturating_add(1))
}
