//! An import into a project of a stack, where others may work meanwhile.
//!
//! The events of a line follow from the copy. So they are appended under the condition that its edge, its feature and
//! its project are in the log as in the copy. If not, somebody was faster, or the index is behind. Then the copy is
//! pulled again, and the line is tried once more. The condition follows from the copy too, so nothing is read before an
//! append.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use projects::line::About;
use ringfence_core::{
    Append, Appended, BoundaryId, Catalog, Envelope, EventLog, LogError, NewEvent, Plan, Query,
    QueryItem, Seen, SequencedEvent, Tag,
};

/// A log, and the events of a project that are known.
pub(super) struct Live<'a, L> {
    log: &'a L,
    catalog: &'a Catalog,
    /// Of each partition they are in their order.
    known: Vec<SequencedEvent>,
    /// Which of them each boundary has.
    of: BTreeMap<BoundaryId, Vec<usize>>,
    /// What was seen for each set of tags that events depend on. Most lines depend on the same tags as an earlier one.
    rests: BTreeMap<BTreeSet<Tag>, Rest>,
}

/// The facts that events depend on.
struct Rest {
    plan: Plan,
    /// The result of a read of a log that has only the first known events.
    seen: Seen,
    /// How many these are.
    first: usize,
}

impl<'a, L: EventLog> Live<'a, L> {
    pub(super) fn new(log: &'a L, catalog: &'a Catalog, known: Vec<SequencedEvent>) -> Self {
        let (of, rests) = (BTreeMap::new(), BTreeMap::new());
        let mut live = Self { log, catalog, known: Vec::new(), of, rests };
        known.into_iter().for_each(|event| live.know(event));
        live
    }

    fn know(&mut self, event: SequencedEvent) {
        let tags = event.tags.iter().map(|tag| BoundaryId::tag(&tag.key, &tag.value));
        let boundaries: BTreeSet<_> = tags.chain([event.partition.clone()]).collect();
        for boundary in boundaries {
            self.of.entry(boundary).or_default().push(self.known.len());
        }
        self.known.push(event);
    }

    /// Appends events; false if the log has other events than the known ones.
    ///
    /// # Errors
    /// The log can't be written.
    pub(super) async fn append(
        &mut self,
        events: Vec<NewEvent>,
        envelope: &Envelope,
    ) -> Result<bool> {
        let log = self.log;
        let seen = self.seen(&events)?;
        let append = Append { events, seen: Some(seen), record: None, envelope };
        match log.append(append).await {
            Ok(Appended::Committed(events)) => {
                events.into_iter().for_each(|event| self.know(event));
                Ok(true)
            }
            Ok(Appended::Repeated(_)) => {
                unreachable!("an append without a command is never a repeat")
            }
            Err(LogError::Conflict(_)) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// The result of a read of a log that has only the known events. Each event is taken in once, so the time of an
    /// import is in proportion to its lines, even if all are of one edge.
    fn seen(&mut self, events: &[NewEvent]) -> Result<&Seen> {
        let Self { catalog, known, of, rests, .. } = self;
        let rest = match rests.entry(tags(events)) {
            Entry::Occupied(there) => there.into_mut(),
            Entry::Vacant(new) => {
                let plan = Plan::new(&query(catalog, new.key()), catalog)?;
                let seen = Seen::nothing(&plan);
                new.insert(Rest { plan, seen, first: 0 })
            }
        };
        let new = |places: &Vec<usize>| {
            places[places.partition_point(|place| *place < rest.first)..].to_vec()
        };
        let boundaries = rest.plan.reads.iter().filter_map(|read| of.get(&read.boundary));
        let places: BTreeSet<usize> = boundaries.flat_map(new).collect();
        for place in places {
            rest.seen.observe(&rest.plan, &known[place]);
        }
        rest.first = known.len();
        Ok(&rest.seen)
    }
}

/// The tags that events depend on: their own, and of their edge, feature and project.
fn tags(events: &[NewEvent]) -> BTreeSet<Tag> {
    let of = |event: &NewEvent| {
        let About { project, feature, edge } = About::of(&event.data);
        let edge = edge.map(|edge| Tag::new("edge", edge.to_string()));
        let feature = feature.map(|feature| Tag::new("feature", feature.to_string()));
        let project = project.map(|project| Tag::new("project", project.to_string()));
        let tags = event.tags.iter().cloned();
        tags.chain(edge).chain(feature).chain(project).collect::<Vec<_>>()
    };
    events.iter().flat_map(of).collect()
}

/// All events that have one of these tags.
fn query(catalog: &Catalog, tags: &BTreeSet<Tag>) -> Query {
    let item = |tag: &Tag| {
        let has = |tags: &[ringfence_core::TagSchema]| tags.iter().any(|it| it.key == tag.key);
        let types = catalog.schemas().filter(|schema| has(&schema.tags));
        let types = types.map(|schema| schema.name.clone()).collect();
        QueryItem { tags: vec![tag.clone()], types }
    };
    Query { items: tags.iter().map(item).collect() }
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;
    use projects::Projects;
    use projects::facts::{AUTH, created, started};
    use ringfence_core::{Context, MemoryLog, events};

    use super::*;

    #[test]
    fn lines_of_one_edge_follow_each_other_until_somebody_else_writes() {
        let catalog = Projects::catalog().unwrap();
        let (log, envelope) = (MemoryLog::new(catalog.clone()), Envelope::default());
        let mut live = Live::new(&log, &catalog, Vec::new());
        let mut appends = |events| block_on(live.append(events, &envelope)).unwrap();
        assert!(appends(events![created(AUTH)]));
        for epoch in 1..=4 {
            assert!(appends(events![started("ada", "c1", epoch)]), "{epoch}");
        }
        let events = events![started("eve", "c2", 5)];
        let other = Append { events, seen: None, record: None, envelope: &envelope };
        block_on(log.append(other)).unwrap();
        assert!(!appends(events![started("ada", "c1", 5)]));
    }
}
