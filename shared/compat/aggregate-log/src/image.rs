//! Events for the index and the EventTopic, from the images of the table's stream.

use futures::stream::Stream;
use ringfence_aws::{Item, ms_of_rfc3339};
use ringfence_core::{BoundaryId, EventRef, Metadata, SequencedEvent};

use crate::item::decode;
use crate::{
    AggregateError, AggregateEvent, AggregateKey, AggregateTable, DecodeError, Range, read, scan,
};

/// The event of a NEW_IMAGE. Any writer of the layout may have written it.
///
/// # Errors
/// The image is not an event.
pub fn event_of_image(image: Item) -> Result<AggregateEvent, DecodeError> {
    decode(image)
}

/// The name of the event in an answer.
impl From<&AggregateEvent> for EventRef {
    fn from(AggregateEvent { key, version, event_type, .. }: &AggregateEvent) -> Self {
        let (event_type, partition) = (event_type.clone(), key.to_string());
        Self { event_type, partition, slot: version.number() }
    }
}

impl From<AggregateEvent> for SequencedEvent {
    /// The store is its context, the aggregate its partition.
    fn from(event: AggregateEvent) -> Self {
        let metadata = event.metadata.unwrap_or_default();
        let (metadata, version) = Metadata::foreign(metadata, &event.event_type);
        Self {
            partition: BoundaryId::stored(event.key.to_string()),
            slot: event.version.number(),
            at: ms_of_rfc3339(&event.timestamp).unwrap_or(0),
            rest: event.rest,
            event_type: event.event_type,
            context: event.key.store().to_owned(),
            tags: Vec::new(),
            version,
            data: event.payload.unwrap_or_default(),
            metadata,
        }
    }
}

impl AggregateTable {
    /// The items of an aggregate's events in `range`, strongly consistent.
    pub fn items(
        &self,
        key: &AggregateKey,
        range: Range,
    ) -> impl Stream<Item = Result<Item, AggregateError>> + Send + use<> {
        read::items(self.clone(), key.clone(), range, true)
    }

    /// Every item of the table, strongly consistent. Reads the whole table.
    pub fn scan(&self) -> impl Stream<Item = Result<Item, AggregateError>> + Send + '_ {
        scan::items(self)
    }
}
