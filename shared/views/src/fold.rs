//! Folds events into one row, and says why it may have to be parked.

use aws_sdk_dynamodb::types::AttributeValue;
use ringfence_aws::{CodecError, attribute_bytes, to_attribute};
use ringfence_core::{Current, LimitExceeded, LimitKind};
use serde_json::Value;

use crate::row::{Becomes, Content, ID_BYTES_MAX, Parked, ROW_BYTES_MAX, Stored};
use crate::view::Definition;

/// The longest cause that is kept with a parked row, in bytes.
const CAUSE_BYTES_MAX: usize = 1_000;

/// Why a row can't be written. The row is parked, and the view goes on.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum RowError {
    /// The stored row does not match the view's row type, or the view makes a row that is not JSON.
    #[error("the row can't be folded: {0}; mend the view's fold or its type of rows")]
    Fold(String),
    /// The row holds a value that DynamoDB can't hold.
    #[error("the row can't be stored: {0}")]
    Value(#[from] CodecError),
    /// The row or its id is too large.
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
}

/// A row while events are folded into it.
#[derive(Clone, Debug)]
pub(crate) struct Folding {
    state: State,
    /// The id of the last event that was folded.
    newest: String,
}

#[derive(Clone, Debug)]
enum State {
    /// The row; `None` if there is none.
    Row(Option<Value>),
    /// An event could not be folded.
    Failed(RowError),
    /// It was parked before. A retry folds it from the first event on.
    Parked(Parked),
}

impl Folding {
    /// A row as it is stored.
    pub(crate) fn of(stored: Option<&Stored>) -> Self {
        let state = match stored.and_then(|stored| stored.content.as_ref()) {
            None => State::Row(None),
            Some(Content::Row(row)) => State::Row(Some(row.clone())),
            Some(Content::Parked(parked)) => State::Parked(parked.clone()),
        };
        Self { state, newest: String::new() }
    }

    /// The row after an event that touches it.
    pub(crate) fn after(self, view: &Definition, id: &str, event: &Current<'_>) -> Self {
        let State::Row(row) = self.state else { return self };
        let state = match view.evolve(row, id, event) {
            Ok(row) => State::Row(row),
            Err(error) => State::Failed(RowError::Fold(error.to_string())),
        };
        Self { state, newest: event.id() }
    }

    /// The row if `error` prevents that it is written.
    pub(crate) fn failed(self, event: &Current<'_>, error: &RowError) -> Self {
        let State::Row(_) = self.state else { return self };
        Self { state: State::Failed(error.clone()), newest: event.id() }
    }

    /// Whether there is no row, as before its first event.
    pub(crate) fn is_gone(&self) -> bool {
        matches!(self.state, State::Row(None))
    }

    /// How the row is to be written.
    pub(crate) fn end(self, id: &str) -> Becomes {
        let stored = match self.state {
            State::Row(None) => return Becomes::Nothing,
            State::Parked(parked) => return Becomes::StillParked(parked),
            State::Row(Some(row)) => encode(id, &row),
            State::Failed(error) => Err(error),
        };
        stored
            .map(Becomes::Row)
            .unwrap_or_else(|error| Becomes::Parked(parked(self.newest, error.to_string())))
    }
}

/// A row while it waits for its next event. As text it takes a fifth of the memory of its parts.
pub(crate) enum Kept {
    Row { json: Box<str>, newest: Box<str> },
    Other(Box<Folding>),
}

impl Kept {
    /// The memory for the row, in bytes.
    pub(crate) fn held(&self) -> usize {
        match self {
            Self::Row { json, newest } => json.len() + newest.len(),
            Self::Other(row) => row.newest.len(),
        }
    }
}

impl From<Folding> for Kept {
    fn from(row: Folding) -> Self {
        let json = match &row.state {
            State::Row(Some(row)) => serde_json::to_string(row).ok(),
            _ => None,
        };
        match json {
            Some(json) => Self::Row { json: json.into(), newest: row.newest.into() },
            None => Self::Other(row.into()),
        }
    }
}

impl From<Kept> for Folding {
    fn from(kept: Kept) -> Self {
        match kept {
            Kept::Row { json, newest } => {
                let state = match serde_json::from_str(&json) {
                    Ok(row) => State::Row(Some(row)),
                    Err(error) => State::Failed(RowError::Fold(error.to_string())),
                };
                Self { state, newest: newest.into() }
            }
            Kept::Other(row) => *row,
        }
    }
}

fn parked(event: String, mut cause: String) -> Parked {
    cause.truncate(cause.floor_char_boundary(CAUSE_BYTES_MAX));
    Parked { event, cause }
}

/// An event that the view can't read, with the reason.
pub(crate) fn unread(event: String, why: &str) -> Parked {
    parked(event, format!("the event can't be read: {why}"))
}

fn encode(id: &str, row: &Value) -> Result<AttributeValue, RowError> {
    let row = to_attribute("row", row)?;
    let found = id.len() + attribute_bytes(&row);
    let advice = "split it into several rows, such as id/1, id/2";
    LimitExceeded::check(LimitKind::Row, "the row", "bytes", found, ROW_BYTES_MAX, advice)?;
    Ok(row)
}

/// Whether rows can have this id.
pub(crate) fn check_id(id: &str) -> Result<(), RowError> {
    let advice = "use an id of 1 to 1024 bytes";
    let (found, limit) = (id.len() as u64, ID_BYTES_MAX as u64);
    let (kind, subject, unit) = (LimitKind::RowId, "the row's id".to_owned(), "bytes");
    match id.len() {
        1..=ID_BYTES_MAX => Ok(()),
        _ => Err(LimitExceeded { kind, subject, found, limit, unit, advice }.into()),
    }
}

/// The id under which a row is parked if its own can't be a key.
pub(crate) fn substitute(id: &str) -> String {
    let begin = &id[..id.floor_char_boundary(CAUSE_BYTES_MAX)];
    format!("{begin}… (not an id)")
}
