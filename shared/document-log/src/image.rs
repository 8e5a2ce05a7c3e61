//! What a stream image of the table says was appended.

use ringfence_dynamo::Item;

use crate::{Batch, ItemError, Recorded, StreamName};

/// The events of one append.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The stream.
    pub stream: StreamName,
    /// The index of the first.
    pub index: u64,
    /// At least one, in order.
    pub events: Vec<Recorded>,
}

impl Span {
    /// The append that a NEW_IMAGE of the table's stream shows; `None` for one that shows none: a
    /// calf, whose events were in the Tip before; unfolds alone; a trimmed Tip; a stream that a
    /// system keeps for itself.
    ///
    /// # Errors
    /// The item is neither a Tip nor a calf.
    pub fn of_image(image: Item) -> Result<Option<Self>, ItemError> {
        let tip = Batch::of_item(image)?;
        // Calves say nothing of `a`. A trim by another program may leave the `a` of an append whose
        // events are gone.
        let appended = tip.appended.min(tip.events.len() as u64);
        if appended == 0 || tip.stream.is_internal() {
            return Ok(None);
        }
        let index = tip.version - appended;
        let base = tip.base();
        let events = (base..).zip(tip.events).map(|(index, event)| Recorded { index, event });
        let events = events.filter(|recorded| recorded.index >= index).collect();
        Ok(Some(Self { stream: tip.stream, index, events }))
    }
}
