//! DynamoDB's limits, checked before the call so that the error names the numbers.
//!
//! Source: "Quotas in Amazon DynamoDB", Amazon DynamoDB Developer Guide.

use ringfence::{LimitExceeded, LimitKind};

/// Actions of one transaction: events, fences, the command item.
pub const TRANSACTION_ACTIONS_MAX: usize = 100;
/// Items of one transaction together, in bytes.
pub const TRANSACTION_BYTES_MAX: usize = 4 * 1_024 * 1_024;
/// The item of one event, in bytes. An item may have 400 KB; the rest is kept free, so that an
/// event fits a page of the feed.
pub const EVENT_BYTES_MAX: usize = 350 * 1_024;
/// Any item, in bytes.
const ITEM_BYTES_MAX: usize = 400 * 1_024;
/// The text of one expression, in bytes.
const EXPRESSION_BYTES_MAX: usize = 4_096;
/// Operators and functions of one expression.
const EXPRESSION_OPERATORS_MAX: usize = 300;
/// A partition key, in bytes.
const KEY_BYTES_MAX: usize = 2_048;

pub(crate) fn actions(found: usize) -> Result<(), LimitExceeded> {
    let advice = "read and write fewer things in one decision";
    let subject = "the command's transaction";
    LimitExceeded::check(
        LimitKind::Append,
        subject,
        "actions",
        found,
        TRANSACTION_ACTIONS_MAX,
        advice,
    )
}

pub(crate) fn transaction(bytes: usize) -> Result<(), LimitExceeded> {
    let advice = "write fewer or smaller events in one decision";
    let subject = "the command's transaction";
    LimitExceeded::check(LimitKind::Append, subject, "bytes", bytes, TRANSACTION_BYTES_MAX, advice)
}

pub(crate) fn event(event_type: &str, bytes: usize) -> Result<(), LimitExceeded> {
    let advice = "keep large payloads elsewhere and refer to them";
    LimitExceeded::check(LimitKind::Event, event_type, "bytes", bytes, EVENT_BYTES_MAX, advice)
}

pub(crate) fn record(bytes: usize) -> Result<(), LimitExceeded> {
    let advice = "refuse in fewer words, or send the command without an idempotency key";
    let subject = "the record of the command's outcome";
    LimitExceeded::check(LimitKind::Record, subject, "bytes", bytes, ITEM_BYTES_MAX, advice)
}

pub(crate) fn key(subject: &str, id: &str) -> Result<(), LimitExceeded> {
    LimitExceeded::check(
        LimitKind::Key,
        subject,
        "bytes",
        id.len(),
        KEY_BYTES_MAX,
        "use a shorter one",
    )
}

pub(crate) fn expression(fence: &str, expression: &str) -> Result<(), LimitExceeded> {
    let advice = "read fewer event types in one decision";
    let subject = std::fmt::from_fn(|f| write!(f, "the condition on {fence}"));
    let check = |unit, found, limit| {
        LimitExceeded::check(LimitKind::Condition, &subject, unit, found, limit, advice)
    };
    check("bytes", expression.len(), EXPRESSION_BYTES_MAX)?;
    check("operators", operators(expression), EXPRESSION_OPERATORS_MAX)
}

/// Operators and functions, as they stand in the expressions of this crate.
fn operators(expression: &str) -> usize {
    let tokens = expression.split([' ', '(']);
    tokens.filter(|t| matches!(*t, "=" | "<" | "AND" | "OR" | "attribute_not_exists")).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_the_limit_is_allowed_and_one_more_is_not() {
        assert!(actions(100).is_ok());
        assert_eq!(
            actions(101).expect_err("one too many").to_string(),
            "the command's transaction: 101 actions, limit 100; \
             read and write fewer things in one decision"
        );
        let kind = |checked: Result<(), LimitExceeded>| checked.map_err(|exceeded| exceeded.kind);
        assert_eq!(kind(transaction(4_194_305)), Err(LimitKind::Append));
        assert_eq!(kind(event("E", 358_401)), Err(LimitKind::Event));
        assert_eq!(kind(key("k", &"x".repeat(2_049))), Err(LimitKind::Key));
        assert!(event("E", 358_400).is_ok() && event("E", 358_401).is_err());
        assert!(transaction(4_194_304).is_ok() && transaction(4_194_305).is_err());
        assert!(key("k", &"x".repeat(2_048)).is_ok() && key("k", &"x".repeat(2_049)).is_err());
        assert!(expression("f", &"x".repeat(4_096)).is_ok());
        assert!(expression("f", &"x".repeat(4_097)).is_err());
        assert!(expression("f", &"= ".repeat(300)).is_ok());
        assert!(expression("f", &"= ".repeat(301)).is_err());
    }

    #[test]
    fn operators_and_functions_are_counted() {
        let condition = "#c0 = :n0 AND (attribute_not_exists(#head) OR #head < :first)";
        assert_eq!(operators(condition), 5);
    }
}
