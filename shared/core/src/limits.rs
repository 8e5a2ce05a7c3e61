//! Limits of an append, checked before it writes, so the error names the numbers. They are DynamoDB's. The log in
//! memory has them too, so a slice meets them in its tests.
//!
//! Source: "Quotas in Amazon DynamoDB", Amazon DynamoDB Developer Guide.

use std::fmt;

/// The kind of a limit, for programs that handle them differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LimitKind {
    /// The boundaries of one decision.
    Boundaries,
    /// A partition key, made of tags.
    Key,
    /// One event.
    Event,
    /// One append: its events and its other items.
    Append,
    /// The condition on one boundary.
    Condition,
    /// A snapshot of a slice's state.
    Snapshot,
    /// The versions of one stream.
    Version,
    /// The item that holds a stream's latest events and unfolds.
    Tip,
    /// A view's row.
    Row,
    /// The id of a view's row.
    RowId,
}

/// Input that is larger than a limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{subject}: {found} {unit}, limit {limit}; {advice}")]
pub struct LimitExceeded {
    /// The kind of the limit.
    pub kind: LimitKind,
    /// The name of what is too large: a field, a tag, an event type.
    pub subject: String,
    /// Its size.
    pub found: u64,
    /// The largest allowed size.
    pub limit: u64,
    /// The unit of both.
    pub unit: &'static str,
    /// The way out.
    pub advice: &'static str,
}

impl LimitExceeded {
    /// Checks that `found` is at most `limit`, in `unit`.
    ///
    /// # Errors
    /// `found` is larger than `limit`.
    pub fn check(
        kind: LimitKind,
        subject: impl fmt::Display,
        unit: &'static str,
        found: usize,
        limit: usize,
        advice: &'static str,
    ) -> Result<(), Self> {
        if found <= limit {
            return Ok(());
        }
        let (subject, found, limit) = (subject.to_string(), found as u64, limit as u64);
        Err(Self { kind, subject, found, limit, unit, advice })
    }
}

/// An append may have this many actions, as many as a transaction.
pub const ACTIONS_MAX: usize = 100;
/// The condition on one boundary may name this many event types. A condition expression of DynamoDB has at most 4,096
/// bytes and 300 operators. A type takes up to 32 bytes and 2 operators, and the guard of the fence's head takes 48 and
/// 4.
pub const TYPES_MAX: usize = 100;
/// The items of one append together, in bytes.
pub const TRANSACTION_BYTES_MAX: usize = 4 * 1_024 * 1_024;
/// The item of one event, in bytes. An item may have 400 KB. The rest is kept free, so an event fits into a page of the
/// feed.
pub const EVENT_BYTES_MAX: usize = 350 * 1_024;
/// The text of a snapshot, in bytes. An item may have 400 KB with its key.
pub const SNAPSHOT_BYTES_MAX: usize = 390 * 1_024;
/// A partition key, in bytes.
pub(crate) const KEY_BYTES_MAX: usize = 2_048;

/// The number of an append's actions.
///
/// # Errors
/// It is above the limit.
pub fn actions(found: usize) -> Result<(), LimitExceeded> {
    let advice = "read and write fewer things in one decision";
    LimitExceeded::check(LimitKind::Append, TRANSACTION, "actions", found, ACTIONS_MAX, advice)
}

/// The event types in the condition on a boundary.
///
/// # Errors
/// There are more than the limit.
pub(crate) fn types(boundary: &impl fmt::Display, found: usize) -> Result<(), LimitExceeded> {
    let (unit, advice) = ("event types", "read fewer event types in one decision");
    let subject = fmt::from_fn(|f| write!(f, "the condition on {boundary}"));
    LimitExceeded::check(LimitKind::Condition, subject, unit, found, TYPES_MAX, advice)
}

/// The bytes of an append.
///
/// # Errors
/// They are above the limit.
pub fn transaction(bytes: usize) -> Result<(), LimitExceeded> {
    let advice = "write fewer or smaller events in one decision";
    let limit = TRANSACTION_BYTES_MAX;
    LimitExceeded::check(LimitKind::Append, TRANSACTION, "bytes", bytes, limit, advice)
}

const TRANSACTION: &str = "the command's transaction";

/// The bytes of an event's item.
///
/// # Errors
/// They are above the limit.
pub fn event(event_type: &str, bytes: usize) -> Result<(), LimitExceeded> {
    let advice = "keep large payloads elsewhere and refer to them";
    LimitExceeded::check(LimitKind::Event, event_type, "bytes", bytes, EVENT_BYTES_MAX, advice)
}

/// The text of a snapshot.
///
/// # Errors
/// It is longer than the limit.
pub fn snapshot(text: &str) -> Result<(), LimitExceeded> {
    let advice = "keep less in the state, or send fewer commands with a key about one thing: each takes eleven bytes, \
                  until there are commands on twenty later days";
    let (subject, limit) = ("the snapshot", SNAPSHOT_BYTES_MAX);
    LimitExceeded::check(LimitKind::Snapshot, subject, "bytes", text.len(), limit, advice)
}

/// The partition key of an item that is not an event: its id.
///
/// # Errors
/// It is longer than the limit.
pub fn key(subject: &str, id: &str) -> Result<(), LimitExceeded> {
    let advice = "use a shorter one";
    LimitExceeded::check(LimitKind::Key, subject, "bytes", id.len(), KEY_BYTES_MAX, advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_the_limit_is_allowed_and_one_more_is_not() {
        let kind = |checked: Result<(), LimitExceeded>| checked.map_err(|exceeded| exceeded.kind);
        let id = |bytes| "x".repeat(bytes);
        assert_eq!((kind(actions(100)), kind(actions(101))), (Ok(()), Err(LimitKind::Append)));
        assert_eq!(kind(transaction(4_194_304)), Ok(()));
        assert_eq!(kind(transaction(4_194_305)), Err(LimitKind::Append));
        assert_eq!(
            (kind(event("E", 358_400)), kind(event("E", 358_401))),
            (Ok(()), Err(LimitKind::Event))
        );
        assert_eq!(
            (kind(snapshot(&id(399_360))), kind(snapshot(&id(399_361)))),
            (Ok(()), Err(LimitKind::Snapshot))
        );
        assert_eq!(
            (kind(key("k", &id(2_048))), kind(key("k", &id(2_049)))),
            (Ok(()), Err(LimitKind::Key))
        );
    }
}
