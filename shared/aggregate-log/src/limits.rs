//! DynamoDB's limits, checked before the call so that the error names the numbers.
//!
//! Source: "Quotas in Amazon DynamoDB", Amazon DynamoDB Developer Guide.

use ringfence::{LimitExceeded, LimitKind};

/// Events of one group: the actions of a transaction.
pub const GROUP_EVENTS_MAX: usize = 100;
/// The items of one group together, in bytes.
pub const GROUP_BYTES_MAX: usize = 4 * 1_024 * 1_024;
/// The item of one event, in bytes. An item may have 400 KB; the rest is kept free, so that an
/// event fits a page of the feed.
pub const EVENT_BYTES_MAX: usize = 350 * 1_024;
/// The last version: the largest integer that JavaScript's numbers hold exactly.
pub const VERSION_MAX: u64 = (1 << 53) - 1;

pub(crate) fn group(events: usize, bytes: usize) -> Result<(), LimitExceeded> {
    let advice = "push fewer or smaller events in one group";
    let check = |unit, found, limit| {
        LimitExceeded::check(LimitKind::Append, "the group", unit, found, limit, advice)
    };
    check("events", events, GROUP_EVENTS_MAX)?;
    check("bytes", bytes, GROUP_BYTES_MAX)
}

pub(crate) fn event(event_type: &str, bytes: usize) -> Result<(), LimitExceeded> {
    let advice = "keep large payloads elsewhere and refer to them";
    LimitExceeded::check(LimitKind::Event, event_type, "bytes", bytes, EVENT_BYTES_MAX, advice)
}

pub(crate) fn version(subject: &str, version: u64) -> Result<(), LimitExceeded> {
    if version <= VERSION_MAX {
        return Ok(());
    }
    Err(LimitExceeded {
        kind: LimitKind::Version,
        subject: subject.to_owned(),
        found: version,
        limit: VERSION_MAX,
        unit: "as a version",
        advice: "begin another aggregate",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_the_limit_is_allowed_and_one_more_is_not() {
        assert!(group(100, 4_194_304).is_ok());
        assert!(group(101, 0).is_err() && group(1, 4_194_305).is_err());
        assert!(event("E", 358_400).is_ok());
        assert_eq!(
            event("E", 358_401).expect_err("one too many").to_string(),
            "E: 358401 bytes, limit 358400; keep large payloads elsewhere and refer to them"
        );
        assert!(version("a#1", 9_007_199_254_740_991).is_ok());
        assert!(version("a#1", 9_007_199_254_740_992).is_err());
    }
}
