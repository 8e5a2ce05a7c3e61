//! Errors of the log and of the decoding of items.

use ringfence_core::{
    Change, CurrentError, DowncastError, FilingError, HandleError, KeyReused, LimitExceeded,
    LogError, NewerVersion, PlanError, StoreError, SubjectError, VaultError,
};
use serde::de::Error as _;

use crate::{BodyError, StreamName, StreamNameError};

/// Another writer wrote to the stream after the read. A [`StoreError::Contention`] names it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{stream} was written after its version {seen} was read{}", now(*found))]
pub struct StreamConflict {
    /// The stream.
    pub stream: StreamName,
    /// The number of events that the decision has seen.
    pub seen: u64,
    /// The number of events in the stream, if the refusal had it. Equal to `seen` if an unfold was replaced.
    pub found: Option<u64>,
}

fn now(found: Option<u64>) -> String {
    found.map_or_else(String::new, |found| format!("; it is at version {found}"))
}

/// The error of an operation. Only [`StoreError::OutcomeUnknown`] leaves open whether anything was written.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// Too large; nothing is written.
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
    /// The id can't name a stream.
    #[error(transparent)]
    Name(#[from] StreamNameError),
    /// The name of the stream is too long for the index.
    #[error(transparent)]
    Filing(#[from] FilingError),
    /// Another command of the stream was carried out under the idempotency key.
    #[error(transparent)]
    KeyReused(#[from] KeyReused),
    /// The category keeps only the state, so it can't recognise a repeat of a command.
    #[error("{category} keeps no events, so it can't know a repeat; send no idempotency key")]
    KeyWithoutEvents {
        /// The category.
        category: &'static str,
    },
    /// There is neither an event nor an unfold to write.
    #[error("nothing to write to {stream}: give events or unfolds")]
    Nothing {
        /// The stream.
        stream: StreamName,
    },
    /// An event or unfold has no JSON form that can be read back; nothing is written.
    #[error("an event of {stream} can't be encoded")]
    Unencodable {
        /// The stream.
        stream: StreamName,
        /// The cause.
        #[source]
        source: serde_json::Error,
    },
    /// The older version that a type still writes can't hold an event; nothing is written.
    #[error(transparent)]
    Downcast(#[from] DowncastError),
    /// The context's catalog does not have the type of an event; nothing is written.
    #[error(
        "{event_type} can't be written to {stream}, because the catalog of its context does not have it: add \
         {event_type}::SCHEMA"
    )]
    Undeclared {
        /// The stream.
        stream: StreamName,
        /// The type.
        event_type: String,
    },
    /// A decision on one document has made an event of another one; nothing is written.
    #[error(
        "a decision on {stream} has made an event of type {event_type} of the document {named:?}"
    )]
    OtherStream {
        /// The stream of the decision.
        stream: StreamName,
        /// The type.
        event_type: String,
        /// The id that the event's tag has; empty if it has none.
        named: String,
    },
    /// The body of an event or unfold can't be read.
    #[error("event {index} of {stream} ({event_type}) can't be read")]
    Body {
        /// The stream.
        stream: StreamName,
        /// Its index.
        index: u64,
        /// Its type.
        event_type: String,
        /// The cause.
        #[source]
        source: BodyError,
    },
    /// An event or unfold of a known type does not have the shape of its type.
    #[error("event {index} of {stream} ({event_type}) can't be decoded")]
    Undecodable {
        /// The stream.
        stream: StreamName,
        /// Its index.
        index: u64,
        /// Its type.
        event_type: String,
        /// The cause.
        #[source]
        source: serde_json::Error,
    },
    /// An event of a type that the context does not have: a newer function has written it, or the type was renamed.
    /// Nothing is written.
    #[error(
        "event {index} of {stream} is of the type {event_type}, which its context does not have"
    )]
    UnknownType {
        /// The stream.
        stream: StreamName,
        /// Its index.
        index: u64,
        /// The type.
        event_type: String,
    },
    /// An event has a version that this program does not know; nothing is written.
    #[error(transparent)]
    NewerVersion(#[from] NewerVersion),
    /// Events that the read needs were pruned, and no unfold replaces them.
    #[error("{stream} begins at event {first}, event {wanted} was pruned")]
    Pruned {
        /// The stream.
        stream: StreamName,
        /// The first event to read.
        wanted: u64,
        /// The first event that is left.
        first: u64,
    },
    /// Events in the middle of the stream are missing.
    #[error("{stream} lacks events {from} to {to}; `verify` says more", to = to - 1)]
    Hole {
        /// The stream.
        stream: StreamName,
        /// The first missing event.
        from: u64,
        /// The first event after them.
        to: u64,
    },
    /// The stream has calves and no Tip.
    #[error("{stream} has no Tip; `verify` says more")]
    NoTip {
        /// The stream.
        stream: StreamName,
    },
    /// A personal value has no subject; nothing is written.
    #[error(transparent)]
    Subject(#[from] SubjectError),
    /// Personal values can't be sealed or opened; nothing is written.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// A request failed for good or too often, or an item can't be decoded.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<StreamConflict> for ringfence_core::Conflict {
    fn from(StreamConflict { stream, seen, .. }: StreamConflict) -> Self {
        let event_type = "something else".into();
        Self(vec![Change::Slot { partition: stream.partition(), slot: seen, event_type }])
    }
}

/// Converts to the error of every log.
impl From<DocumentError> for HandleError {
    fn from(error: DocumentError) -> Self {
        let undecodable = |event: String, source| LogError::Undecodable { event, source };
        Self::Log(match error {
            DocumentError::KeyWithoutEvents { .. } => {
                let field = "Idempotency-Key (commandId)".to_owned();
                LogError::Unstorable { field, reason: error.to_string() }
            }
            // A command with an empty id names no document.
            DocumentError::Name(_) => return PlanError::Nothing.into(),
            DocumentError::Filing(error) => return PlanError::Boundary(error).into(),
            DocumentError::Limit(limit) => LogError::Limit(limit),
            DocumentError::Subject(error) => return error.into(),
            DocumentError::Vault(error) => error.into(),
            DocumentError::KeyReused(error) => LogError::KeyReused(error),
            DocumentError::Downcast(error) => LogError::Downcast(error),
            DocumentError::Nothing { .. } => LogError::Nothing,
            DocumentError::UnknownType { stream, index, event_type } => {
                let event = format!("{}/{index}", stream.partition());
                LogError::UnknownType { event, event_type, context: stream.category().to_owned() }
            }
            DocumentError::NewerVersion(newer) => LogError::NewerVersion(newer),
            DocumentError::Store(StoreError::Contention { attempts, over: Some(over) }) => {
                let over = match over.downcast::<StreamConflict>() {
                    Ok(conflict) => ringfence_core::Conflict::from(*conflict).into(),
                    Err(over) => over,
                };
                LogError::Store(StoreError::Contention { attempts, over: Some(over) })
            }
            DocumentError::Store(error) => LogError::Store(error),
            DocumentError::Body { ref stream, index, .. }
            | DocumentError::Undecodable { ref stream, index, .. } => {
                undecodable(format!("{}/{index}", stream.partition()), error.into())
            }
            DocumentError::Unencodable { ref stream, .. }
            | DocumentError::Undeclared { ref stream, .. }
            | DocumentError::OtherStream { ref stream, .. }
            | DocumentError::Pruned { ref stream, .. }
            | DocumentError::Hole { ref stream, .. }
            | DocumentError::NoTip { ref stream } => {
                undecodable(format!("of {}", stream.partition()), error.into())
            }
        })
    }
}

/// The reason that a state can't be folded from an event.
pub(crate) enum Unreadable {
    Newer(NewerVersion),
    Shape(serde_json::Error),
}

impl From<serde_json::Error> for Unreadable {
    fn from(error: serde_json::Error) -> Self {
        Self::Shape(error)
    }
}

impl From<CurrentError> for Unreadable {
    fn from(error: CurrentError) -> Self {
        match error {
            CurrentError::Newer(newer) => Self::Newer(newer),
            CurrentError::Upcast { source, .. } => Self::Shape(serde_json::Error::custom(source)),
        }
    }
}

impl From<Unreadable> for serde_json::Error {
    fn from(error: Unreadable) -> Self {
        match error {
            Unreadable::Newer(newer) => Self::custom(newer),
            Unreadable::Shape(error) => error,
        }
    }
}

/// The reason that an item is neither a Tip nor a calf.
#[derive(Debug, thiserror::Error)]
pub enum ItemError {
    /// An attribute is missing or of another type.
    #[error("attribute {attribute} of item {stream} is not {expected}")]
    Attribute {
        /// Its `p`, if it has one.
        stream: String,
        /// The attribute.
        attribute: &'static str,
        /// The expected type.
        expected: &'static str,
    },
    /// `c` and `e` have different lengths.
    #[error("item {stream} has {types} types for {events} events")]
    Types {
        /// Its `p`.
        stream: String,
        /// In `c`.
        types: usize,
        /// In `e`.
        events: usize,
    },
    /// There are more events than indexes.
    #[error("item {stream} has {events} events up to version {version}")]
    Version {
        /// Its `p`.
        stream: String,
        /// In `e`.
        events: usize,
        /// `n`.
        version: u64,
    },
    /// The key can't name a stream.
    #[error("item {stream} does not belong to a stream: {cause}")]
    Name {
        /// Its `p`.
        stream: String,
        /// The cause.
        cause: StreamNameError,
    },
}

impl ItemError {
    /// The `p` of the item, empty if it has none.
    #[must_use]
    pub fn stream(&self) -> &str {
        match self {
            Self::Attribute { stream, .. }
            | Self::Types { stream, .. }
            | Self::Version { stream, .. }
            | Self::Name { stream, .. } => stream,
        }
    }
}
