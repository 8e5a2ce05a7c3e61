//! An entry of the index.

use ringfence_core::SequencedEvent;

use crate::checkpoint::Checkpoint;

/// One event of the feed. In the index it is the item that its own log has. No body is unpacked and no attribute is
/// converted, so an entry can hold whatever a log can.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The checkpoint after it, which a reader keeps when it is done with the event.
    pub checkpoint: Checkpoint,
    /// The event.
    pub event: SequencedEvent,
}
