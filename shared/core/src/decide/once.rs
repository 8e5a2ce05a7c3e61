//! Once: the place of the record of a command with an idempotency key (rule 10).
//!
//! If a decision reads the partitions that it writes, its events are the record. They have the key. A later run of the
//! command either sees them, or its append is refused because they have taken its slots. All other commands leave an
//! item.

use crate::{
    Catalog, Slice,
    decide::shapes::{Declared, made_up, omissions, tags},
};

/// Whether the events of the slice's commands are their records. They are if, for each command and each type that the
/// slice writes, the partition follows from tags that each command has, with one value each, and the decision reads
/// that partition.
///
/// Lists and options don't count. What a command is [about](crate::Slice::about) does not include the values of a list,
/// so a reaction that makes another command under the same key could read other partitions.
pub fn events_are_record<S: Slice>(catalog: &Catalog) -> bool {
    is_record(Declared::of::<S>(), catalog)
}

pub(crate) fn is_record(declared: Declared, catalog: &Catalog) -> bool {
    declared.shapes.iter().all(|shape| {
        let required = tags(shape, |n| shape[n].required);
        omissions(shape).iter().all(|omitted| match made_up(declared, shape, omitted, catalog) {
            Ok(plan) => declared.writes.iter().all(|written| {
                let partition = catalog.partition(&written.name, &required);
                partition.is_ok_and(|partition| plan.shows(&partition, &written.name))
            }),
            // The function refuses such a command.
            Err(_) => true,
        })
    })
}
