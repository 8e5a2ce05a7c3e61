//! Reads the events after a place in a partition.
//!
//! The events of a partition are numbered without gaps. So the number after the last indexed one is the
//! next event, and a higher number shows that events are not visible yet.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use futures::{Stream, TryStreamExt};
use ringfence_aws::{Item, Retry, item_bytes};
use ringfence_core::BoundaryId;

use crate::BoxError;

/// How many bytes one read of a partition returns. It can exceed them by one item: a page of a query.
const NEWS_BYTES_MAX: usize = 1_024 * 1_024;
/// How often a partition with missing events is read. The reads take some seconds, and items become visible within
/// milliseconds.
const LOOKS_MAX: u32 = 8;

/// A partition, and the number of an event there.
pub type Single<'a> = (&'a BoundaryId, u64);
/// A partition, and the numbers of events that follow one another there.
pub type Run<'a> = (&'a BoundaryId, RangeInclusive<u64>);

/// Some events of a partition by slot, and whether more may follow.
pub type Found = (BTreeMap<u64, Item>, bool);

/// Why the new events of a partition can't be read.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// The table of the log is not named.
    #[error("the table of its log is not named")]
    NoLog,
    /// Events are missing, and remain missing.
    #[error("{partition} has event {found} but not event {wanted}; put back what is missing")]
    Gap {
        /// The partition.
        partition: BoundaryId,
        /// The number of the next event.
        wanted: u64,
        /// The number of the first event after the gap.
        found: u64,
    },
    /// An event is missing, and there was no time to wait for it.
    #[error("{partition} lacks an event, and no time was left to look again")]
    OutOfTime {
        /// The partition.
        partition: BoundaryId,
    },
    /// The name is not the name of a partition of its log.
    #[error("{0}")]
    Name(BoxError),
    /// The log can't be read.
    #[error("the {what} can't be read")]
    Unread {
        /// The part that can't be read.
        what: &'static str,
        /// Whether a later read may succeed.
        is_transient: bool,
        /// Why.
        #[source]
        source: BoxError,
    },
}

impl StreamError {
    /// Whether a later read may succeed.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::OutOfTime { .. } => true,
            Self::Unread { is_transient, .. } => *is_transient,
            Self::NoLog | Self::Gap { .. } | Self::Name(_) => false,
        }
    }
}

/// The items from `wanted` up to the first gap. The items after the gap stay in `items`.
pub fn dense(items: &mut BTreeMap<u64, Item>, wanted: u64) -> BTreeMap<u64, Item> {
    let mut dense = items.split_off(&wanted);
    let gap = (wanted..).zip(dense.keys()).find(|(n, slot)| n != *slot).map(|(n, _)| n);
    *items = gap.map(|gap| dense.split_off(&gap)).unwrap_or_default();
    dense
}

/// Some items of a stream by the number in their attribute `slot`, and whether there may be more.
///
/// # Errors
/// The stream fails.
pub async fn bounded<E>(
    items: impl Stream<Item = Result<Item, E>>,
    slot: &str,
) -> Result<Found, E> {
    let mut items = std::pin::pin!(items);
    let (mut found, mut bytes) = (BTreeMap::new(), 0);
    while let Some(item) = items.try_next().await? {
        bytes += item_bytes(&item);
        // A number that is not an integer is not the slot of an event.
        found.extend(slot_of(&item, slot).map(|slot| (slot, item)));
        if bytes >= NEWS_BYTES_MAX {
            return Ok((found, true));
        }
    }
    Ok((found, false))
}

/// The events from slot `wanted` on, without gaps. A read is strong, but the events of one transaction may become
/// visible one by one. So it looks again if one is missing. An event that remains missing is an error.
///
/// # Errors
/// The error of `look`, which reads some items from a slot on.
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
            // The next call looks for the missing events.
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
