//! A case of a reactor, as data. [`crate::kit`] writes and runs cases.

use std::panic::Location;

use ringfence_core::SequencedEvent;

/// An event, and the effects that follow from it.
pub struct ReactorCase<E> {
    pub(crate) event: SequencedEvent,
    pub(crate) then: Vec<E>,
    pub(crate) at: &'static Location<'static>,
}
