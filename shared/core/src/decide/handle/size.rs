//! Checks that a log could take the append of a command.

use std::collections::BTreeMap;

use crate::{
    Access, LimitExceeded, LimitKind, LogError, Plan,
    limits::{self, ACTIONS_MAX},
};

/// A decision may depend on this many boundaries. Each is an action of the append, and at least one more puts an event,
/// unless that is in one of them.
pub const BOUNDARIES_MAX: usize = ACTIONS_MAX;

/// Refuses, before any read, a command whose append no log could take. If it has too many boundaries, the error names
/// the tag that makes most of them.
pub(super) fn check_size(plan: &Plan, recorded: bool) -> Result<(), LogError> {
    for read in plan.reads.iter().filter(|read| read.access != Access::Partition) {
        limits::types(&read.boundary, read.types.len())?;
    }
    let found = plan.reads.len();
    let limit = BOUNDARIES_MAX - usize::from(recorded);
    if found <= limit {
        return Ok(());
    }
    let mut keys: BTreeMap<&str, usize> = BTreeMap::new();
    for tag in plan.clauses.iter().flat_map(|clause| &clause.tags) {
        *keys.entry(&tag.key).or_default() += 1;
    }
    let most = keys.into_iter().max_by_key(|(_, count)| *count);
    let subject = most.map_or_else(String::new, |(key, count)| format!("{count} values of {key}"));
    let unit = "boundaries of one decision";
    let advice = "split the command; its transaction has 100 actions";
    Ok(LimitExceeded::check(LimitKind::Boundaries, subject, unit, found, limit, advice)?)
}

#[test]
fn too_many_event_types_of_a_fence_are_refused_before_any_read() {
    use crate::{BoundaryId, Name, Read, limits::TYPES_MAX};

    let read = |count: usize, access| Plan {
        clauses: Vec::new(),
        reads: vec![Read {
            boundary: BoundaryId::tagless(),
            access,
            types: (0..count).map(|n| Name::from(format!("T{n}"))).collect(),
            fenced: false,
            after: 0,
        }],
    };
    let of_fence = |count| check_size(&read(count, Access::TypeItems("T0".into())), false);
    assert!(of_fence(TYPES_MAX).is_ok());
    let error = of_fence(TYPES_MAX + 1).expect_err("above the limit");
    assert!(matches!(
        error,
        LogError::Limit(it) if it.kind == LimitKind::Condition && it.found == 101
    ));
    // The condition on a partition is only its next slot.
    assert!(check_size(&read(TYPES_MAX + 1, Access::Partition), false).is_ok());
}
