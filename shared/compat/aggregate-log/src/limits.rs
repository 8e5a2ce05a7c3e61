//! Limits of groups and versions, checked before the request so that the error names the numbers. The core limits the
//! size of an event.

use ringfence_core::{ACTIONS_MAX, LimitExceeded, LimitKind, TRANSACTION_BYTES_MAX};

/// Events of one group: each takes one action of a transaction.
pub const GROUP_EVENTS_MAX: usize = ACTIONS_MAX;
/// The items of one group together, in bytes.
pub const GROUP_BYTES_MAX: usize = TRANSACTION_BYTES_MAX;
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
        assert!(version("a#1", 9_007_199_254_740_991).is_ok());
        assert!(version("a#1", 9_007_199_254_740_992).is_err());
    }
}
