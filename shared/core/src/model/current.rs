//! An event in the newest shape of its type. All readers of events take this type.
//!
//! Only a catalog creates it, by the upcasts of the type. So a reader never gets a payload of an older version, and
//! never takes one of a newer version for its own.

use std::borrow::Cow;
use std::ops::Deref;

use serde_json::Value;

use crate::{NewEvent, SequencedEvent, UpcastError, Upcasts};

/// An event whose payload has the newest version that the catalog knows for its type. It can be decoded as its event
/// type. Only [`Catalog::current`](crate::Catalog::current), [`Catalogs::current`](crate::Catalogs::current) and
/// [`Cause::current`](crate::Cause::current) create it.
#[derive(Clone, Debug, PartialEq)]
pub struct Current<'e, E: Clone = SequencedEvent>(Cow<'e, E>);

impl<E: Clone> Deref for Current<'_, E> {
    type Target = E;

    fn deref(&self) -> &E {
        &self.0
    }
}

impl<E: Clone> Current<'_, E> {
    /// The event itself.
    #[must_use]
    pub fn into_event(self) -> E {
        self.0.into_owned()
    }
}

/// The event without its place.
impl From<Current<'_>> for NewEvent {
    fn from(event: Current<'_>) -> Self {
        let event = event.into_event();
        Self { event_type: event.event_type.into(), tags: event.tags, data: event.data }
    }
}

/// The events that a slice reads. Derive it for an enum of type names, each with the fields that
/// the fold needs.
pub trait Reads: Sized {
    /// The type names.
    const TYPES: &'static [&'static str];
    /// The types of which it reads personal values. Only their events are opened.
    const PERSONAL: &'static [&'static str] = &[];

    /// Decodes an event of one of the types.
    fn decode(event: &Current<'_>) -> Result<Self, serde_json::Error>;
}

/// A type with a versioned payload.
pub(crate) trait Versioned: Clone {
    fn id(&self) -> String;
    /// The event type, and the version of the payload.
    fn shape(&self) -> (&str, u32);
    fn payload(&mut self) -> (&mut u32, &mut Value);
}

impl Versioned for SequencedEvent {
    fn id(&self) -> String {
        self.id()
    }

    fn shape(&self) -> (&str, u32) {
        (&self.event_type, self.version)
    }

    fn payload(&mut self) -> (&mut u32, &mut Value) {
        (&mut self.version, &mut self.data)
    }
}

impl<'e> From<&'e SequencedEvent> for Cow<'e, SequencedEvent> {
    fn from(event: &'e SequencedEvent) -> Self {
        Self::Borrowed(event)
    }
}

impl From<SequencedEvent> for Cow<'_, SequencedEvent> {
    fn from(event: SequencedEvent) -> Self {
        Self::Owned(event)
    }
}

/// Upcasts the event to the newest version of its type. An event of the newest version is not copied.
pub(crate) fn current<'e, E: Versioned>(
    event: Cow<'e, E>,
    upcasts: Upcasts,
) -> Result<Current<'e, E>, CurrentError> {
    let ((event_type, version), known) = (event.shape(), upcasts.version());
    if version == known {
        return Ok(Current(event));
    }
    let event_type = event_type.to_owned();
    if version > known {
        return Err(NewerVersion { event: event.id(), event_type, version, known }.into());
    }
    let mut event = event.into_owned();
    let (from, data) = event.payload();
    let upcast = upcasts.apply(&event_type, version, data.take());
    (*from, *data) = match upcast {
        Ok(data) => (known, data),
        Err(source) => return Err(CurrentError::Upcast { event: event.id(), source }),
    };
    Ok(Current(Cow::Owned(event)))
}

/// The reason why an event has no shape that this program knows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CurrentError {
    /// A newer program has written it.
    #[error(transparent)]
    Newer(#[from] NewerVersion),
    /// An upcast fails.
    #[error("event {event} can't be read")]
    Upcast {
        /// Its id: partition and slot.
        event: String,
        /// The failure.
        #[source]
        source: UpcastError,
    },
}

/// A newer program has written the event, as happens during a deploy or before a roll-back. This program can't know
/// its meaning, so it decides nothing and skips nothing. The newer program can read the event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "event {event} has version {version} of {event_type}, and this program knows the versions up to {known}; deploy one \
     that knows it"
)]
pub struct NewerVersion {
    /// Its id: partition and slot.
    pub event: String,
    /// Its type.
    pub event_type: String,
    /// The version of its payload.
    pub version: u32,
    /// The newest version that this program knows.
    pub known: u32,
}
