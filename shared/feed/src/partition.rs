//! Partitions of the logs, and what wakes the indexer for one.

use std::{collections::BTreeMap, fmt};

use ringfence_aws::Item;
use ringfence_core::{BoundaryId, LogKind, SequencedEvent};
use ringfence_log::{EntryError, Sources};

/// Events that have one order: a partition of the DCB log, an aggregate, a document's stream.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Partition {
    /// Its log.
    pub log: LogKind,
    /// Its name among the partitions of all logs.
    pub id: BoundaryId,
}

impl Partition {
    /// The partition of an event.
    #[must_use]
    pub fn of(event: &SequencedEvent) -> Self {
        event.partition.clone().into()
    }
}

impl From<BoundaryId> for Partition {
    fn from(id: BoundaryId) -> Self {
        Self { log: LogKind::of(&id), id }
    }
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.id.fmt(f)
    }
}

/// A partition that has something new. [`Notification::of_image`] makes one of a stream record's image.
#[derive(Clone, Debug, PartialEq)]
pub struct Notification {
    /// The partition.
    pub partition: Partition,
    /// Events that the partition is known to have, by slot, each as its log has it. If they continue the
    /// indexed events, they are taken as they are. If not, or if there are none, the partition is read.
    pub events: BTreeMap<u64, Item>,
}

impl<P: Into<Partition>> From<P> for Notification {
    fn from(partition: P) -> Self {
        Self { partition: partition.into(), events: BTreeMap::new() }
    }
}

impl Notification {
    /// The notification of a NEW_IMAGE in a stream of one of the tables; `None` if the image shows no new event. A
    /// document's Tip shows the events of its last append.
    ///
    /// # Errors
    /// The image is not of these tables.
    pub fn of_image(sources: &Sources, image: Item) -> Result<Option<Self>, EntryError> {
        let news = sources.news(image)?;
        Ok(news.map(|(log, (id, events))| Self { partition: Partition { log, id }, events }))
    }
}
