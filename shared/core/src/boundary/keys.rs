//! The keys of commands whose events a handler has read (rule 10).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{BoundaryId, CommandRecord, KEY_KEPT_SECONDS, SequencedEvent, model::place::hash};

/// The keys of a slice's commands whose events were read. A caller's key is remembered as long as a repeat must be
/// recognized. The key of a reaction or a due has no such limit: if it may have been forgotten, everything is read.
///
/// A snapshot contains the keys too, so they are short: half of each key's hash, under the partition and the day of its
/// event. If two keys share such a hash, everything is read.
///
/// Only the events decide which keys are forgotten, because a handler's clock may be wrong. A writer whose clock is
/// ahead moves its partition to a later time, and the following events come after that time. So the time between two
/// events is not known. But the times of a partition grow. Therefore the days with such events are counted: a clock
/// adds one day, however far it is ahead.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Keys(BTreeMap<BoundaryId, BTreeMap<u64, Vec<u32>>>);

impl Keys {
    /// Remembers the key of an event of this slice, if its command had one.
    pub(crate) fn note(&mut self, slice: &str, event: &SequencedEvent) {
        let marks = CommandRecord::MARKS.map(|mark| event.metadata.text(mark));
        if let [Some(key), Some(of), Some(_)] = marks
            && of == slice
        {
            let days = self.0.entry(event.partition.clone()).or_default();
            let (of_day, key) = (days.entry(event.at / DAY_MS).or_default(), short(key));
            // The events of one command are consecutive.
            of_day.pop_if(|last| *last == key);
            of_day.push(key);
            if days.len() as u64 > DAYS_KEPT {
                days.pop_first();
            }
        }
    }

    /// Whether an event of the command may have been read. Its events are later than its cause.
    pub(crate) fn may_have(&self, record: &CommandRecord, cause_ms: Option<u64>) -> bool {
        let key = short(&record.key);
        let is_known =
            || self.0.values().flat_map(BTreeMap::values).flatten().any(|known| *known == key);
        is_known() || (record.is_of_event() && self.has_forgotten(cause_ms.unwrap_or(0)))
    }

    /// Whether keys of a partition after this time may have been forgotten.
    fn has_forgotten(&self, since_ms: u64) -> bool {
        self.0
            .values()
            .filter(|days| days.len() as u64 == DAYS_KEPT)
            .any(|days| days.first_key_value().is_some_and(|(first, _)| since_ms / DAY_MS < *first))
    }
}

const DAY_MS: u64 = 24 * 3_600 * 1_000;
/// The keys of this many such days are remembered for each partition: the days in which a caller may repeat, the day
/// that has begun, and four more, so the clocks of four writers may be ahead.
const DAYS_KEPT: u64 = KEY_KEPT_SECONDS * 1_000 / DAY_MS + 1 + 4;

fn short(key: &str) -> u32 {
    let [a, b, c, d, ..] = hash(key.bytes()).to_be_bytes();
    u32::from_be_bytes([a, b, c, d])
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::{Envelope, Metadata};

    impl Keys {
        fn has(&self, key: &str) -> bool {
            self.may_have(&CommandRecord::new("rename", key, &()), None)
        }
    }

    fn noted<'a>(events: impl IntoIterator<Item = (u64, &'a str)>) -> Keys {
        let mut keys = Keys::default();
        note(&mut keys, "p", events);
        keys
    }

    /// Notes events of a partition, each with its time and the key of its command.
    fn note<'a>(
        keys: &mut Keys,
        partition: &str,
        events: impl IntoIterator<Item = (u64, &'a str)>,
    ) {
        for (at, key) in events {
            let mut metadata = Metadata::default();
            for (mark, text) in CommandRecord::MARKS.into_iter().zip([key, "rename", "a hash"]) {
                metadata.insert(mark, text).expect("not a key of the log");
            }
            let event = SequencedEvent {
                partition: BoundaryId::stored(partition),
                slot: at,
                at,
                rest: 0,
                event_type: "Renamed".to_owned(),
                context: "shop".to_owned(),
                tags: Vec::new(),
                version: 1,
                data: Value::Null,
                metadata,
            };
            keys.note("rename", &event);
        }
    }

    #[test]
    fn a_key_is_kept_once_for_the_events_of_a_command() {
        let next_day = [(DAY_MS - 1, "a"), (DAY_MS, "a")];
        let keys = noted([(1, "a"), (2, "a"), (3, "b"), (4, "a")].into_iter().chain(next_day));
        let [a, b] = ["a", "b"].map(short);
        let days = BTreeMap::from([(0, vec![a, b, a]), (1, vec![a])]);
        assert_eq!(keys.0, BTreeMap::from([(BoundaryId::stored("p"), days)]));
        assert!(keys.has("a") && keys.has("b") && !keys.has("c"));
    }

    #[test]
    fn the_id_of_a_command_without_a_key_is_not_kept() {
        let envelope = Envelope::default().written_by("rename");
        let mut event = SequencedEvent::gap(BoundaryId::stored("p"), 1, 1);
        event.metadata = envelope.metadata;
        event.metadata.insert("commandId", "a").expect("not a key of the log");
        let mut keys = Keys::default();
        keys.note("rename", &event);
        assert!(keys.0.is_empty());
    }

    #[test]
    fn a_key_is_forgotten_after_as_many_later_days_of_its_partition_as_are_kept() {
        let days = |days: std::ops::Range<u64>| days.map(|day| (day * DAY_MS, "later"));
        let mut keys = noted([(0, "first"), (DAY_MS - 1, "last")].into_iter().chain(days(1..20)));
        // Another partition may be as far ahead as it wants, and a clock that is years ahead is one day.
        note(&mut keys, "q", [(0, "of q")].into_iter().chain(days(1_000..1_019)));
        assert!(["first", "last", "of q"].iter().all(|key| keys.has(key)));
        note(&mut keys, "p", [(5_000 * DAY_MS, "ahead")]);
        assert_eq!(["first", "last", "of q"].map(|key| keys.has(key)), [false, false, true]);
        assert!(keys.has("later") && keys.has("ahead"));
    }

    #[test]
    fn a_key_takes_eleven_bytes_of_a_snapshot() {
        let names: Vec<String> = (0..3_000).map(|key| format!("key {key}")).collect();
        let keys = noted(names.iter().map(|key| (1, &**key)));
        let text = serde_json::to_string(&keys).expect("it has a JSON");
        assert!(text.len() < 11 * names.len(), "{}", text.len());
        let read: Keys = serde_json::from_str(&text).expect("it is one");
        assert!(names.iter().all(|key| read.has(key)) && !read.has("key"));
    }
}
