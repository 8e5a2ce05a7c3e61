//! DynamoDB's limits on the condition of a fence, checked before the call so that the error names the
//! numbers. Those on what is written are the core's.
//!
//! Source: "Quotas in Amazon DynamoDB", Amazon DynamoDB Developer Guide.

use ringfence::{LimitExceeded, LimitKind};

/// The text of one expression, in bytes.
const EXPRESSION_BYTES_MAX: usize = 4_096;
/// Operators and functions of one expression.
const EXPRESSION_OPERATORS_MAX: usize = 300;
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
