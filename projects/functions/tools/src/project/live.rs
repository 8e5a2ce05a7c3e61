//! An import into a project of a stack, where others may work meanwhile.
//!
//! What a line becomes follows from the copy. So its events are appended under the condition that its edge, its feature and
//! its project are in the log as the copy has them. If they are not, somebody was faster, or the index is behind. Then the
//! copy is pulled again, and the line is taken once more. The condition follows from the copy, so nothing is read before an
//! append.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use projects::line::About;
use ringfence::{
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
}

impl<'a, L: EventLog> Live<'a, L> {
    pub(super) fn new(log: &'a L, catalog: &'a Catalog, known: Vec<SequencedEvent>) -> Self {
        let mut live = Self { log, catalog, known: Vec::new(), of: BTreeMap::new() };
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

    /// Appends events; false if the log has others than those that are known.
    ///
    /// # Errors
    /// The log can't be written.
    pub(super) async fn append(
        &mut self,
        events: Vec<NewEvent>,
        envelope: &Envelope,
    ) -> Result<bool> {
        let plan = Plan::new(&self.query(&events), self.catalog)?;
        let seen = self.seen(&plan);
        let append = Append { events, seen: Some(&seen), record: None, envelope };
        match self.log.append(append).await {
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

    /// What a read would have seen of a log that has the known events alone.
    fn seen(&self, plan: &Plan) -> Seen {
        let of = plan.reads.iter().filter_map(|read| self.of.get(&read.boundary));
        let places: BTreeSet<usize> = of.flatten().copied().collect();
        let mut seen = Seen::nothing(plan);
        for place in places {
            seen.observe(plan, &self.known[place]);
        }
        seen
    }

    /// What the events rest on: what has one of their tags, or is of their edge, feature or project.
    fn query(&self, events: &[NewEvent]) -> Query {
        let of = |event: &NewEvent| {
            let About { project, feature, edge } = About::of(&event.data);
            let edge = edge.map(|edge| Tag::new("edge", edge.to_string()));
            let feature = feature.map(|feature| Tag::new("feature", feature.to_string()));
            let project = project.map(|project| Tag::new("project", project.to_string()));
            let tags = event.tags.iter().cloned();
            tags.chain(edge).chain(feature).chain(project).collect::<Vec<_>>()
        };
        let tags: BTreeSet<Tag> = events.iter().flat_map(of).collect();
        let item = |tag: Tag| {
            let has = |tags: &[ringfence::TagSchema]| tags.iter().any(|it| it.key == tag.key);
            let types = self.catalog.schemas().filter(|schema| has(&schema.tags));
            let types = types.map(|schema| schema.name.clone()).collect();
            QueryItem { tags: vec![tag], types }
        };
        Query { items: tags.into_iter().map(item).collect() }
    }
}
