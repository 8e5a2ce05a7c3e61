//! Once: where a command with an idempotency key leaves its record (rule 10).
//!
//! Where a decision reads the partitions that it writes, its events are the record. They carry the key, and
//! whoever decides the command again either sees them, or is refused for the slots that they took. All other
//! commands leave an item.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::{
    Catalog, CommandRecord, DcbSlice, KEY_KEPT_SECONDS, SequencedEvent, Writes,
    dcb::{made_up, omissions, tags},
    place::hash,
};

/// Whether the events of a command of the slice are its record: whatever the command looks like, and whichever
/// of its types the slice writes, the partition follows from tags that each command has, one value each, and
/// the decision reads it.
///
/// Lists and options don't count. What a command is [about](crate::Slice::about) does not say which values a
/// list has, so a reaction that makes another command under the same key could read other partitions.
pub fn events_are_record<S: DcbSlice>(catalog: &Catalog) -> bool {
    S::SHAPES.iter().all(|shape| {
        let required = tags(shape, |n| shape[n].required);
        omissions(shape).iter().all(|omitted| match made_up::<S>(shape, omitted, catalog) {
            Ok(plan) => S::Writes::SCHEMAS.iter().all(|written| {
                let partition = catalog.partition(&written.name, &required);
                partition.is_ok_and(|partition| plan.shows(&partition, &written.name))
            }),
            // The function refuses such a command.
            Err(_) => true,
        })
    })
}

/// The keys of a slice's commands whose events were read. A key is remembered for as long as a repeat has to be
/// recognized.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Keys(VecDeque<(u64, u64)>);

impl Keys {
    /// Remembers the key of an event of this slice.
    pub(crate) fn note(&mut self, slice: &str, event: &SequencedEvent) {
        let [key, of, _] = CommandRecord::MARKS;
        if event.metadata.text(of) == Some(slice)
            && let Some(key) = event.metadata.text(key)
        {
            let key = hash(key.bytes());
            // The events of one command come one after the other.
            self.0.pop_back_if(|(_, last)| *last == key);
            self.0.push_back((event.at, key));
        }
    }

    /// Whether an event of the key may have been read. Two keys can have the same hash.
    pub(crate) fn may_have(&self, key: &str) -> bool {
        let key = hash(key.bytes());
        self.0.iter().any(|(_, known)| *known == key)
    }

    /// Forgets the keys of events that are older than a repeat can be.
    pub(crate) fn forget(&mut self, now_ms: u64) {
        let is_old =
            |(at, _): &mut (u64, u64)| at.saturating_add(KEY_KEPT_SECONDS * 1_000) < now_ms;
        while self.0.pop_front_if(is_old).is_some() {}
    }
}
