//! Reads for people and tools: any query, in pages, also one that can't be a condition.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    Catalog, Clause, Name, Place, Plan, PlanError, Query, QueryItem, Read, SequencedEvent,
    boundary::filing::check_length,
    boundary::plan::{add, route},
    boundary::query::can_carry,
};

/// A query that is only read, with its reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The query and its reads.
    pub plan: Plan,
    /// Whether a clause asks only for types that are not filed by type. Then the whole table is read, and the reads are
    /// not needed.
    pub scan: bool,
}

/// The part of a query's answer to read, in the order of places.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Only events after this place: later ones, or backwards, earlier ones.
    pub after: Option<Place>,
    /// At most this many events.
    pub limit: Option<usize>,
    /// Whether the latest events come first.
    pub backwards: bool,
}

impl Reading {
    /// Finds the reads. A query without clauses asks for every event. A clause without types asks for every type that
    /// can have its tags. A partition-scoped tag matches only the events that it partitions.
    ///
    /// # Errors
    /// No type can be read by a clause's tags, a value is empty, or a type is unknown.
    pub fn new(query: &Query, catalog: &Catalog) -> Result<Self, PlanError> {
        let mut reads: Vec<Read> = Vec::new();
        let mut clauses = Vec::with_capacity(query.items.len());
        let mut scan = query.items.is_empty();
        if scan {
            let types = catalog.schemas().map(|schema| schema.name.clone()).collect();
            clauses.push(Clause { tags: Vec::new(), types });
        }
        for item in query.items.iter().map(QueryItem::distinct) {
            if let Some(tag) = item.tags.iter().find(|tag| tag.value.is_empty()) {
                return Err(PlanError::EmptyValue(tag.key.to_string()));
            }
            let any: Vec<&Name> = match item.types[..] {
                [] => catalog.schemas().map(|schema| &schema.name).collect(),
                _ => item.types.iter().collect(),
            };
            let mut types = BTreeSet::new();
            for event_type in any {
                let schema = catalog
                    .schema(event_type)
                    .ok_or_else(|| PlanError::UnknownType(event_type.to_string()))?;
                if !can_carry(catalog, event_type, &item.tags) {
                    continue;
                }
                if let Some((boundary, access)) = route(catalog, schema, &item.tags) {
                    check_length(&boundary, &item.tags)?;
                    add(&mut reads, boundary, access, schema.name.clone());
                } else if item.tags.is_empty() {
                    scan = true;
                } else {
                    continue;
                }
                types.insert(schema.name.clone());
            }
            if types.is_empty() {
                let keys: Vec<&str> = item.tags.iter().map(|tag| &*tag.key).collect();
                let event_type = item.types.first().cloned().unwrap_or(Name::Borrowed("an event"));
                return Err(PlanError::NoRoute { event_type, keys: keys.join(" and ") });
            }
            clauses.push(Clause { tags: item.tags, types });
        }
        Ok(Self { plan: Plan { clauses, reads }, scan })
    }
}

impl Page {
    /// Whether an event at `place` may be on the page.
    pub fn holds(&self, place: &Place) -> bool {
        self.after.as_ref().is_none_or(|after| match self.backwards {
            false => place > after,
            true => place < after,
        })
    }

    /// The page of `events`, which come in any order. It never has more events than its limit.
    pub fn of(&self, events: impl IntoIterator<Item = SequencedEvent>) -> Vec<SequencedEvent> {
        let mut kept = BTreeMap::new();
        events.into_iter().for_each(|event| self.keep(&mut kept, event));
        self.ordered(kept)
    }

    /// Keeps `event` if it belongs on the page. If the page is full, it replaces the last event.
    pub fn keep(&self, kept: &mut BTreeMap<Place, SequencedEvent>, event: SequencedEvent) {
        if !self.holds(&event.place()) {
            return;
        }
        kept.insert(event.place(), event);
        if self.limit.is_some_and(|limit| kept.len() > limit) {
            let _ = if self.backwards { kept.pop_first() } else { kept.pop_last() };
        }
    }

    /// The kept events, in the order of the page.
    pub fn ordered(&self, kept: BTreeMap<Place, SequencedEvent>) -> Vec<SequencedEvent> {
        let events = kept.into_values();
        if self.backwards { events.rev().collect() } else { events.collect() }
    }
}
