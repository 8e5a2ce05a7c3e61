//! The writes and conditions of an append: the same on every log, and pure (rules 1, 3 and 7).

use std::collections::BTreeMap;

use crate::{
    BoundaryId, Catalog, Counts, Extent, Filing, LogError, Metadata, NewEvent, OwnTime, Seen,
    SequencedEvent, VaultError, is_followed, limits,
    model::tag::distinct,
    personal::{Form, has},
};

/// An append.
#[derive(Debug)]
pub struct Effect {
    /// The events, in order, each with where it is filed. They have slots and times after [`Effect::mint`].
    pub events: Vec<(SequencedEvent, Filing)>,
    /// The partitions of the events.
    pub targets: BTreeMap<BoundaryId, Target>,
    /// The partitions that are read, not written, and without a fence: for each the last slot seen. The next one must
    /// be free.
    pub checks: BTreeMap<BoundaryId, u64>,
    /// The fences that are checked, advanced, or both: one item takes one action.
    pub fences: BTreeMap<BoundaryId, FenceEffect>,
}

/// The writes of an append to one partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// The number of events.
    pub events: u64,
    /// If the decision read the partition: the slot after which they must be put.
    pub seen: Option<u64>,
    /// If the decision read a fence of the partition's name instead: the largest slot that it has seen. The first
    /// attempt is the slot after it.
    pub hint: Option<u64>,
}

/// The condition and the update of an append on one fence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FenceEffect {
    /// The counts that the decision depends on.
    pub requires: Counts,
    /// The number of events of each type that are filed there.
    pub adds: Counts,
    /// How many copies the types declare, if it is the fence of a partition.
    pub copies: u16,
}

impl Effect {
    /// The conditions of an answer that appends nothing.
    ///
    /// # Errors
    /// More actions than a look may have, or more types in a condition.
    pub fn look(catalog: &Catalog, seen: &Seen) -> Result<Self, LogError> {
        Self::of(catalog, Vec::new(), &Metadata::default(), Some(seen), 0)
    }

    /// Files the events, which get this metadata. `marks` counts the other items that the append puts: the record of a
    /// command, the marker of an import.
    ///
    /// # Errors
    /// No event, an event that can't be filed or stored in the version that its type writes, more actions than an
    /// append may have, or more types in a condition.
    pub fn new(
        catalog: &Catalog,
        events: Vec<NewEvent>,
        metadata: &Metadata,
        seen: Option<&Seen>,
        marks: usize,
    ) -> Result<Self, LogError> {
        if events.is_empty() {
            return Err(LogError::Nothing);
        }
        let mut stored = Vec::with_capacity(events.len());
        for event in events {
            let schema = catalog.known(&event.event_type)?;
            if has(&event.data, Form::Marked) {
                return Err(VaultError::Missing(event.event_type.into()).into());
            }
            let (version, data) = schema.stored(event.data)?;
            stored.push((NewEvent { data, ..event }, version));
        }
        Self::of(catalog, stored, metadata, seen, marks)
    }

    /// Files an event of another log, which stays in its version.
    ///
    /// # Errors
    /// As [`Effect::new`].
    pub fn copy(catalog: &Catalog, event: SequencedEvent, marks: usize) -> Result<Self, LogError> {
        let SequencedEvent { event_type, tags, version, data, metadata, .. } = event;
        let event = NewEvent { event_type: event_type.into(), tags, data };
        Self::of(catalog, vec![(event, version)], &metadata, None, marks)
    }

    /// The events have payloads as they are stored, each with its version.
    fn of(
        catalog: &Catalog,
        events: Vec<(NewEvent, u32)>,
        metadata: &Metadata,
        seen: Option<&Seen>,
        marks: usize,
    ) -> Result<Self, LogError> {
        let mut filed = Vec::with_capacity(events.len());
        for (event, version) in events {
            let event = NewEvent { tags: distinct(event.tags), ..event };
            let filing = catalog.filing_of_new(&event)?;
            let NewEvent { event_type, tags, data } = event;
            let event = SequencedEvent {
                partition: filing.partition.clone(),
                slot: 0,
                at: 0,
                rest: 0,
                context: catalog.context(&event_type).unwrap_or_default().to_owned(),
                version,
                event_type: event_type.into_owned(),
                tags,
                data,
                metadata: metadata.clone(),
            };
            filed.push((event, filing));
        }
        let mut effect = Self {
            events: filed,
            targets: BTreeMap::new(),
            checks: BTreeMap::new(),
            fences: BTreeMap::new(),
        };
        for (event, filing) in effect.events.iter_mut().rev() {
            let target = effect.targets.entry(filing.partition.clone()).or_default();
            event.rest = target.events;
            target.events += 1;
            for boundary in &filing.fences {
                let fence = effect.fences.entry(boundary.clone()).or_default();
                *fence.adds.entry(event.event_type.clone().into()).or_default() += 1;
                if *boundary == filing.partition {
                    fence.copies = fence.copies.max(copies(catalog, &event.event_type));
                }
            }
        }
        for (id, extent) in seen.into_iter().flat_map(Seen::iter) {
            effect.require(catalog, id, extent);
        }
        let items: usize = effect.events.iter().map(|(_, filing)| 1 + filing.items.len()).sum();
        limits::actions(items + marks + effect.checks.len() + effect.fences.len())?;
        for (boundary, fence) in &effect.fences {
            limits::types(boundary, fence.requires.len())?;
        }
        Ok(effect)
    }

    /// Gives events their slots, and times from `first_ms` on, in milliseconds since 1970. `end` knows the last slot
    /// of each partition that the decision did not read.
    pub fn mint(&mut self, first_ms: u64, end: impl Fn(&BoundaryId) -> u64) {
        for (at, (event, filing)) in (first_ms..).zip(&mut self.events) {
            let target = &self.targets[&filing.partition];
            let last = target.seen.unwrap_or_else(|| end(&filing.partition));
            event.slot = last + target.events - event.rest;
            event.at = at;
        }
    }

    /// Adds the condition on one boundary that was read.
    fn require(&mut self, catalog: &Catalog, boundary: &BoundaryId, extent: &Extent) {
        let target = self.targets.get_mut(boundary);
        match (extent, target) {
            (Extent::Prefix(prefix), Some(target)) => target.seen = Some(prefix.slot),
            (Extent::Prefix(prefix), None) => match &prefix.fenced {
                Some(counts) => {
                    let fence = self.fences.entry(boundary.clone()).or_default();
                    fence.requires = counts.clone();
                    fence.copies =
                        counts.keys().map(|name| copies(catalog, name)).max().unwrap_or(0);
                }
                None => drop(self.checks.insert(boundary.clone(), prefix.slot)),
            },
            (Extent::Fence { counts, slot, .. }, target) => {
                target.into_iter().for_each(|target| target.hint = Some(*slot));
                self.fences.entry(boundary.clone()).or_default().requires = counts.clone();
            }
        }
    }

    /// The earliest time of the first event, by the writer's clock, by what was seen, by the cause and by the writer's
    /// own last event. It is later than the last event seen of each boundary that the append writes to. It is also
    /// later than those of all other boundaries, the cause and the own one, if these are followed. In milliseconds
    /// since 1970.
    #[must_use]
    pub fn earliest_ms(
        &self,
        now_ms: u64,
        own: &OwnTime,
        cause_ms: Option<u64>,
        seen: Option<&Seen>,
    ) -> u64 {
        let is_written = |boundary: &BoundaryId| {
            self.targets.contains_key(boundary)
                || self.fences.get(boundary).is_some_and(|fence| !fence.adds.is_empty())
        };
        let lasts = seen.into_iter().flat_map(Seen::lasts);
        let lasts = lasts.filter(|(id, at)| is_followed(*at, now_ms) || is_written(id));
        let led = cause_ms.into_iter().chain([own.ms()]);
        let led = led.filter(|at| is_followed(*at, now_ms));
        let after = lasts.map(|(_, at)| at).chain(led).max().map_or(0, |at| at.saturating_add(1));
        now_ms.max(after)
    }
}

/// How many copies a type declares for the fence of its partition.
fn copies(catalog: &Catalog, event_type: &str) -> u16 {
    catalog.schema(event_type).filter(|schema| schema.fenced).map_or(0, |schema| schema.copies)
}
