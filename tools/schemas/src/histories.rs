//! Histories: the events of the cases of slices, in their order.

use std::collections::BTreeSet;

use ringfence_core::kit::BEGIN_MS;
use ringfence_core::{BoundaryId, LogKind, Metadata, SequencedEvent};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::Value;

use crate::object::objects;

/// The most histories of a lock.
const HISTORIES_MAX: usize = 16;
/// The most events of a history. The later events of a longer case are left out.
const EVENTS_MAX: usize = 32;

/// The histories of a lock. Each event is written once, and a history is a list of numbers of events.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Histories {
    #[serde(deserialize_with = "objects")]
    events: Vec<LockedEvent>,
    sequences: Vec<Sequence>,
}

/// An event as its log stores it, with only the parts that a fold sees.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LockedEvent {
    context: String,
    partition: String,
    #[serde(rename = "type")]
    event_type: String,
    #[serde(default = "first", skip_serializing_if = "is_first")]
    version: u32,
    data: Value,
}

fn first() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_first(version: &u32) -> bool {
    *version == first()
}

/// The numbers of events, from 1 on. In a file they are one text.
#[derive(Clone, Debug, PartialEq)]
struct Sequence(Vec<usize>);

impl Serialize for Sequence {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let numbers: Vec<_> = self.0.iter().map(ToString::to_string).collect();
        serializer.serialize_str(&numbers.join(" "))
    }
}

impl<'de> Deserialize<'de> for Sequence {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let numbers = text.split(' ').map(str::parse).collect::<Result<_, _>>();
        numbers.map(Self).map_err(|_| D::Error::custom(format_args!("{text:?} is no sequence")))
    }
}

impl Histories {
    /// Whether there are no histories.
    pub(crate) fn is_empty(&self) -> bool {
        self.sequences.is_empty()
    }

    /// The number of histories.
    pub(crate) fn len(&self) -> usize {
        self.sequences.len()
    }

    /// Each history with its number, from 1 on. Numbers without an event are passed over.
    pub(crate) fn all(&self) -> impl Iterator<Item = (usize, Vec<SequencedEvent>)> {
        let event = |number: &usize| self.events.get(number.checked_sub(1)?);
        let of = move |Sequence(numbers): &Sequence| {
            let events: Vec<_> = numbers.iter().filter_map(event).collect();
            sequenced(&events)
        };
        (1..).zip(self.sequences.iter().map(of))
    }

    /// Adds candidates until there are enough histories or no candidate shows a new step: each time the candidate that
    /// shows most new steps. Present histories stay, whatever the order of later cases. `steps` returns the steps that
    /// a history shows.
    pub(crate) fn add(
        &mut self,
        candidates: impl IntoIterator<Item = Vec<SequencedEvent>>,
        steps: impl Fn(&[SequencedEvent]) -> BTreeSet<String>,
    ) {
        let mut shown: BTreeSet<_> = self.all().flat_map(|(_, events)| steps(&events)).collect();
        let shows = |mut events: Vec<SequencedEvent>| {
            events.truncate(EVENTS_MAX);
            (steps(&events), events)
        };
        let candidates: Vec<_> = candidates.into_iter().map(shows).collect();
        while self.len() < HISTORIES_MAX {
            let more = |steps: &BTreeSet<String>| steps.difference(&shown).count();
            // The first one of several that show equally many.
            let best = candidates.iter().rev().max_by_key(|(steps, _)| more(steps));
            let Some((steps, events)) = best.filter(|(steps, _)| more(steps) > 0) else { break };
            shown.extend(steps.iter().cloned());
            self.push(events);
        }
    }

    fn push(&mut self, events: &[SequencedEvent]) {
        let mut numbers = Vec::new();
        for event in events {
            let locked = LockedEvent {
                context: event.context.clone(),
                partition: event.partition.to_string(),
                event_type: event.event_type.clone(),
                version: event.version,
                data: event.data.clone(),
            };
            let found = self.events.iter().position(|it| *it == locked);
            numbers.push(1 + found.unwrap_or(self.events.len()));
            if found.is_none() {
                self.events.push(locked);
            }
        }
        self.sequences.push(Sequence(numbers));
    }
}

/// The events in their order, a second apart.
fn sequenced(events: &[&LockedEvent]) -> Vec<SequencedEvent> {
    let before = |n: usize| {
        let is_before = |it: &&&LockedEvent| it.partition == events[n].partition;
        events[..n].iter().filter(is_before).count() as u64
    };
    let event = |(n, of): (usize, &&LockedEvent)| {
        let partition = BoundaryId::stored(&*of.partition);
        let kind = match partition.is_of_dcb_log() || of.partition.contains('#') {
            true => LogKind::Dcb,
            false => LogKind::Documents,
        };
        SequencedEvent {
            slot: kind.first_slot() + before(n),
            partition,
            at: BEGIN_MS + 1_000 * n as u64,
            rest: 0,
            event_type: of.event_type.clone(),
            context: of.context.clone(),
            tags: Vec::new(),
            version: of.version,
            data: of.data.clone(),
            metadata: Metadata::default(),
        }
    };
    events.iter().enumerate().map(event).collect()
}
