//! An import into a project of a stack, where others may work meanwhile.
//!
//! What a line becomes follows from the copy. So its events are appended under the condition that its edge, its feature and
//! its project are in the log as the copy has them. If they are not, somebody was faster, or the index is behind. Then the
//! copy is pulled again, and the line is taken once more.

use std::collections::BTreeSet;

use anyhow::Result;
use projects::line::About;
use ringfence::{
    Append, Catalog, Consistency, Envelope, EventLog, LogError, NewEvent, Plan, Query, QueryItem,
    SequencedEvent, Tag,
};

/// A log, and the events of a project that are known.
pub(super) struct Live<'a, L> {
    pub(super) log: &'a L,
    pub(super) catalog: &'a Catalog,
    pub(super) known: BTreeSet<String>,
}

impl<L: EventLog> Live<'_, L> {
    /// Appends events; false if the log has others than those that are known.
    ///
    /// # Errors
    /// The log can't be read or written.
    pub(super) async fn append(
        &mut self,
        events: Vec<NewEvent>,
        envelope: &Envelope,
    ) -> Result<bool> {
        let plan = Plan::new(&self.query(&events), self.catalog)?;
        let (read, seen) = self.log.read_with_seen(&plan, Consistency::Strong, envelope).await?;
        if read.iter().any(|event| !self.known.contains(&event.id())) {
            return Ok(false);
        }
        let append = Append { events, seen: Some(&seen), record: None, envelope };
        match self.log.append(append).await {
            Ok(ringfence::Appended::Committed(events)) => {
                self.known.extend(events.iter().map(SequencedEvent::id));
                Ok(true)
            }
            Ok(ringfence::Appended::Repeated(_)) => {
                unreachable!("an append without a command is never a repeat")
            }
            Err(LogError::Conflict(_)) => Ok(false),
            Err(error) => Err(error.into()),
        }
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
