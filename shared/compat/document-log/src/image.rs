//! Events for the index and the EventTopic, from the images of the table's stream.

use ringfence_aws::{Item, ms_of_rfc3339};
use ringfence_core::{BoundaryId, Metadata, SequencedEvent, escape, unescape};
use serde_json::Value;

use crate::{Batch, BodyError, ItemError, StreamName, StreamNameError, TimelineEvent};

/// The events of one append.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The stream.
    pub stream: StreamName,
    /// The index of the first.
    pub index: u64,
    /// At least one, in order.
    pub events: Vec<TimelineEvent>,
}

impl Span {
    /// The append in a NEW_IMAGE of the table's stream. `None` if the image has no append: a calf, whose events were in
    /// the Tip before; unfolds without events; a trimmed Tip; an internal stream of a system.
    ///
    /// # Errors
    /// The item is neither a Tip nor a calf.
    pub fn of_image(image: Item) -> Result<Option<Self>, ItemError> {
        let tip = Batch::of_item(image)?;
        // Calves have no `a`. A trim by another program may leave the `a` of an append whose events are
        // gone.
        let appended = tip.appended.min(tip.events.len() as u64);
        if appended == 0 || tip.stream.is_internal() {
            return Ok(None);
        }
        let index = tip.version - appended;
        let base = tip.base();
        let events = (base..).zip(tip.events).map(|(index, event)| TimelineEvent { index, event });
        let events = events.filter(|recorded| recorded.index >= index).collect();
        Ok(Some(Self { stream: tip.stream, index, events }))
    }
}

impl StreamName {
    /// The stream's partition on the EventTopic and in the index. It is escaped, so that it never equals a
    /// partition of another log.
    #[must_use]
    pub fn partition(&self) -> BoundaryId {
        BoundaryId::stored(escape(self.as_str()))
    }

    /// The stream of a partition.
    ///
    /// # Errors
    /// The partition does not name a stream.
    pub fn of_partition(partition: &BoundaryId) -> Result<Self, StreamNameError> {
        let name = unescape(partition.as_str());
        Self::try_from(name.unwrap_or_else(|| partition.to_string()))
    }
}

impl TimelineEvent {
    /// The event as the EventTopic and the index have it: the category is its context, the stream its
    /// partition.
    ///
    /// # Errors
    /// A body can't be read.
    pub fn fed(&self, stream: &StreamName) -> Result<SequencedEvent, BodyError> {
        let event = &self.event;
        let meta = event.meta.json()?.unwrap_or_default();
        let (mut metadata, version) = Metadata::foreign(meta, &event.event_type);
        for (key, id) in
            [("correlationId", &event.correlation_id), ("causationId", &event.causation_id)]
        {
            if let (None, Some(id)) = (metadata.text(key), id) {
                metadata.insert(key, id.as_str()).expect("none of the log's own");
            }
        }
        Ok(SequencedEvent {
            partition: stream.partition(),
            slot: self.index,
            at: ms_of_rfc3339(&event.time).unwrap_or(0),
            rest: 0,
            event_type: event.event_type.clone(),
            context: stream.category().to_owned(),
            tags: Vec::new(),
            version,
            data: event.data.json()?.unwrap_or(Value::Null),
            metadata,
        })
    }
}
