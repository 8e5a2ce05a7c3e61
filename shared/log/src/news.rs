//! What follows a place in a partition.
//!
//! The events of a partition are numbered without gaps. So the number after the last indexed one is the
//! next event, and a higher number shows that events are not visible yet.

use std::collections::BTreeMap;

use futures::{Stream, TryStreamExt};
use ringfence_aws::{Item, Retry, item_bytes};
use ringfence_core::BoundaryId;

use crate::BoxError;

/// What one read of a partition brings, in bytes, and at most one item more: a page of a query.
const NEWS_BYTES_MAX: usize = 1_024 * 1_024;
/// How often a partition with missing events is read. That takes some seconds; items become visible within
/// milliseconds.
const LOOKS_MAX: u32 = 8;

/// Some events of a partition, by slot, and whether more may follow.
pub type Found = (BTreeMap<u64, Item>, bool);

/// Why the new events of a partition can't be read.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// The indexer was made without this log.
    #[error("the indexer has no such log; name its table")]
    NoLog,
    /// Events are missing, and stay missing.
    #[error("{partition} has event {found} but not event {wanted}; put back what is missing")]
    Gap {
        /// The partition.
        partition: BoundaryId,
        /// The number of the next event.
        wanted: u64,
        /// The first that is there.
        found: u64,
    },
    /// An event is missing, and there was no time to wait for it.
    #[error("{partition} lacks an event, and no time was left to look again")]
    OutOfTime {
        /// The partition.
        partition: BoundaryId,
    },
    /// The partition can't be one of its log.
    #[error("{0}")]
    Name(BoxError),
    /// The log can't be read.
    #[error("the {what} can't be read")]
    Unread {
        /// What of it.
        what: &'static str,
        /// Whether it may succeed later.
        is_transient: bool,
        /// Why.
        #[source]
        source: BoxError,
    },
}

impl StreamError {
    /// Whether it may succeed later.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::OutOfTime { .. } => true,
            Self::Unread { is_transient, .. } => *is_transient,
            Self::NoLog | Self::Gap { .. } | Self::Name(_) => false,
        }
    }
}

/// The items from `wanted` up to the first gap; those after it stay in `items`.
pub fn dense(items: &mut BTreeMap<u64, Item>, wanted: u64) -> BTreeMap<u64, Item> {
    let mut dense = items.split_off(&wanted);
    let gap = (wanted..).zip(dense.keys()).find(|(n, slot)| n != *slot).map(|(n, _)| n);
    *items = gap.map(|gap| dense.split_off(&gap)).unwrap_or_default();
    dense
}

/// Some items of a stream by the number in their attribute `slot`, and whether there may be more.
///
/// # Errors
/// That of the stream.
pub async fn bounded<E>(
    items: impl Stream<Item = Result<Item, E>>,
    slot: &str,
) -> Result<Found, E> {
    let mut items = std::pin::pin!(items);
    let (mut found, mut bytes) = (BTreeMap::new(), 0);
    while let Some(item) = items.try_next().await? {
        bytes += item_bytes(&item);
        // A number that is not whole is not the slot of an event.
        found.extend(slot_of(&item, slot).map(|slot| (slot, item)));
        if bytes >= NEWS_BYTES_MAX {
            return Ok((found, true));
        }
    }
    Ok((found, false))
}

/// The events from slot `wanted` on, without gaps. A read is strong, yet the events of one transaction
/// may become visible one by one: where one is missing, it looks again, and what stays missing is an
/// error.
///
/// # Errors
/// That of `look`, which reads some items from a slot on.
pub async fn whole<F: Future<Output = Result<Found, StreamError>>>(
    partition: &BoundaryId,
    wanted: u64,
    known: &BTreeMap<u64, Item>,
    retry: Retry,
    look: impl Fn(u64) -> F,
) -> Result<Found, StreamError> {
    let mut attempts = retry.attempts_max(LOOKS_MAX).start();
    loop {
        let (mut items, more) = look(wanted).await?;
        if !more {
            let known = known.range(wanted..).map(|(slot, item)| (*slot, item.clone()));
            items.extend(known);
        }
        let dense = dense(&mut items, wanted);
        let Some(&found) = items.keys().next() else { return Ok((dense, more)) };
        if !dense.is_empty() {
            // The next call looks for what is missing.
            return Ok((dense, true));
        }
        if !attempts.again().await {
            let partition = partition.clone();
            return Err(match attempts.made() < LOOKS_MAX {
                true => StreamError::OutOfTime { partition },
                false => StreamError::Gap { partition, wanted, found },
            });
        }
    }
}

/// The number in an attribute.
pub(crate) fn slot_of(item: &Item, attribute: &str) -> Option<u64> {
    item.get(attribute)?.as_n().ok()?.parse().ok()
}
