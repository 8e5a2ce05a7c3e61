//! Looks for faults: gaps, first events that the index does not list or lists wrongly, items that are not events, and
//! events that go back in time. Events go back in time if writers' clocks differ. This crate never causes the other
//! faults.

use std::collections::HashSet;

use futures::stream::TryStreamExt;
use ringfence_aws::Item;

use crate::item::{EVENT_STORE_ID, TIMESTAMP, decode_named, name_of, text_of};
use crate::{AggregateError, AggregateKey, AggregateTable, Range, Version, read, scan};

/// A fault of an aggregate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AggregateDefect {
    /// Versions are missing before this one.
    #[error("{key}: version {found} follows {after}")]
    Gap {
        /// The aggregate.
        key: AggregateKey,
        /// The version before the gap; 0 when the first event is missing.
        after: u64,
        /// The version after it.
        found: u64,
    },
    /// The event is older than its predecessor, because clocks differ.
    #[error("{key}: version {version} is of {timestamp}, earlier than its predecessor")]
    Order {
        /// The aggregate.
        key: AggregateKey,
        /// The event.
        version: u64,
        /// Its timestamp.
        timestamp: String,
    },
    /// The first event does not name its store, so no list has the aggregate; or a later event names it, so lists have
    /// the aggregate twice.
    #[error("{key}: version {version} has {EVENT_STORE_ID} {found:?}")]
    Listing {
        /// The aggregate.
        key: AggregateKey,
        /// The event.
        version: u64,
        /// The store that it names.
        found: Option<String>,
    },
    /// The item is not an event.
    #[error("{0} is not an event")]
    Item(String),
}

/// The result of [`AggregateTable::verify`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AggregateReport {
    /// Events.
    pub events: u64,
    /// Aggregates, by their first events.
    pub aggregates: u64,
    /// The faults in the order they were found; empty if nothing is wrong.
    pub wrong: Vec<AggregateDefect>,
}

impl AggregateTable {
    /// Looks at every item, while others may write. It reads and pays for the whole table once. It reads each aggregate
    /// that looks wrong once more, strongly and alone. `progress` gets the number of events so far.
    ///
    /// # Errors
    /// A page that can't be read.
    pub async fn verify(
        &self,
        progress: &(dyn Fn(u64) + Send + Sync),
    ) -> Result<AggregateReport, AggregateError> {
        let mut report = AggregateReport::default();
        let mut suspects = HashSet::new();
        let mut run: Option<Run> = None;
        let mut items = std::pin::pin!(scan::items(self));
        while let Some(item) = items.try_next().await? {
            let Ok(next) = Run::of(&item) else {
                report.wrong.push(AggregateDefect::Item(name_of(&item)));
                continue;
            };
            report.events += 1;
            progress(report.events);
            let before = run.take().filter(|run| run.key == next.key);
            report.aggregates += u64::from(next.version == 1);
            let is_new = !suspects.contains(&next.key);
            if is_new && next.follows(before.as_ref(), &item).next().is_some() {
                suspects.insert(next.key.clone());
                report.wrong.extend(self.wrong(&next.key).await?);
            }
            run = Some(next);
        }
        Ok(report)
    }

    /// The faults of one aggregate.
    async fn wrong(&self, key: &AggregateKey) -> Result<Vec<AggregateDefect>, AggregateError> {
        let (mut wrong, mut run) = (Vec::new(), None);
        let mut items =
            std::pin::pin!(read::items(self.clone(), key.clone(), Range::default(), true));
        while let Some(item) = items.try_next().await? {
            // The scan itself reports items that are not events.
            if let Ok(next) = Run::of(&item) {
                wrong.extend(next.follows(run.as_ref(), &item));
                run = Some(next);
            }
        }
        Ok(wrong)
    }
}

/// The last event that was looked at in an aggregate.
struct Run {
    key: AggregateKey,
    version: u64,
    timestamp: String,
}

impl Run {
    fn of(item: &Item) -> Result<Self, AggregateError> {
        let event = decode_named(item.clone())?;
        let Version(version) = event.version;
        Ok(Self { key: event.key, version, timestamp: event.timestamp })
    }

    /// The faults of this event after the event `before`. `item` is this event's item.
    fn follows(&self, before: Option<&Self>, item: &Item) -> impl Iterator<Item = AggregateDefect> {
        let key = || self.key.clone();
        let after = before.map_or(0, |before| before.version);
        let gap = || AggregateDefect::Gap { key: key(), after, found: self.version };
        let order = || AggregateDefect::Order {
            key: key(),
            version: self.version,
            timestamp: text_of(item, TIMESTAMP).unwrap_or_default().to_owned(),
        };
        let store = text_of(item, EVENT_STORE_ID).ok();
        let listed = (self.version == 1).then_some(self.key.store());
        let listing = || AggregateDefect::Listing {
            key: key(),
            version: self.version,
            found: store.map(str::to_owned),
        };
        let older = before.is_some_and(|before| self.timestamp < before.timestamp);
        let wrong = [
            (self.version != after + 1).then(gap),
            older.then(order),
            (store != listed).then(listing),
        ];
        wrong.into_iter().flatten()
    }
}
