//! From a query to the physical reads that answer it (ARCHITECTURE.md, "Reads").

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    BoundaryId, Catalog, EventSchema, FilingError, Query, QueryItem, SequencedEvent, Tag,
    catalog::check_length,
};

/// A query with its reads. The route of each (clause, type) follows from the catalog and the
/// clause's keys alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The query, each clause narrowed to the types that a read can return.
    pub clauses: Vec<Clause>,
    /// The reads, one per boundary; all are made in parallel.
    pub reads: Vec<Read>,
}

/// An AND of tags and the types that can match it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clause {
    /// Tags that a matching event carries.
    pub tags: Vec<Tag>,
    /// Types that a matching event has.
    pub types: BTreeSet<&'static str>,
}

/// One physical read: all events of one boundary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// The boundary, whose fence counts exactly the events that the read can return.
    pub boundary: BoundaryId,
    /// How to reach it.
    pub access: Access,
    /// The types that the decision consumes from it. The read may return others.
    pub types: BTreeSet<&'static str>,
}

/// How a boundary is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// Query of the table by its partition.
    Partition,
    /// Query of the index `tag_<key>` by the raw value.
    TagIndex(Tag),
    /// Query of the index `tag_composite`.
    CompositeIndex(Vec<Tag>),
}

/// Why a query has no plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// A consumed type is not in the catalog.
    #[error("event type {0} is read but not in the catalog; declare it in its context's catalog")]
    UnknownType(String),
    /// No read returns the type for any clause.
    #[error(
        "no read returns {event_type} by {keys}: partition it by one of these tags, declare one \
         #[tag(cross_partition)], or declare the type #[event(read_as_composite)]"
    )]
    NoRoute {
        /// The event type.
        event_type: &'static str,
        /// The tags by which the command asks for it.
        keys: String,
    },
    /// A type is read without any tag.
    #[error(
        "{0} is read by its type alone, which a condition can't express; give the command a tag \
         that the event carries"
    )]
    TypeAlone(&'static str),
    /// The command has no tag value, so nothing would be read and nothing conditioned.
    #[error("none of the command's tags has a value; the decision would depend on nothing")]
    Nothing,
    /// A clause has an empty tag value.
    #[error("tag {0} is empty; it names no boundary")]
    EmptyValue(String),
    /// A boundary's name is too long.
    #[error(transparent)]
    Boundary(#[from] FilingError),
}

impl Plan {
    /// The reads that answer `query`.
    pub fn new(query: &Query, catalog: &Catalog) -> Result<Self, PlanError> {
        let mut clauses = Vec::with_capacity(query.items.len());
        let mut reads: BTreeMap<BoundaryId, Read> = BTreeMap::new();
        let mut missing: BTreeMap<&'static str, &QueryItem> = BTreeMap::new();
        for item in &query.items {
            if let Some(tag) = item.tags.iter().find(|tag| tag.value.is_empty()) {
                return Err(PlanError::EmptyValue(tag.key.to_string()));
            }
            let mut types = BTreeSet::new();
            for &event_type in &item.types {
                let schema = catalog
                    .schema(event_type)
                    .ok_or_else(|| PlanError::UnknownType(event_type.to_owned()))?;
                if item.tags.is_empty() {
                    return Err(PlanError::TypeAlone(event_type));
                }
                let Some((boundary, access)) = route(catalog, schema, &item.tags) else {
                    missing.entry(event_type).or_insert(item);
                    continue;
                };
                check_length(&boundary)?;
                types.insert(event_type);
                reads
                    .entry(boundary.clone())
                    .or_insert(Read { boundary, access, types: BTreeSet::new() })
                    .types
                    .insert(event_type);
            }
            clauses.push(Clause { tags: item.tags.clone(), types });
        }
        for (event_type, item) in missing {
            // By a partition-scoped tag a clause asks for the events it partitions, and for no
            // other carrier: nothing to read, as long as another clause returns the type.
            let read = reads.values().any(|read| read.types.contains(event_type));
            if !read || item.tags.len() > 1 {
                let keys: Vec<&str> = item.tags.iter().map(|tag| &*tag.key).collect();
                return Err(PlanError::NoRoute { event_type, keys: keys.join(" and ") });
            }
        }
        Ok(Self { clauses, reads: reads.into_values().collect() })
    }

    /// Whether the query asks for `event`; a read can return more than that.
    pub fn matches(&self, event: &SequencedEvent) -> bool {
        self.clauses.iter().any(|clause| {
            clause.types.contains(event.event_type.as_str())
                && clause.tags.iter().all(|tag| event.tags.contains(tag))
        })
    }
}

impl Read {
    /// Whether `event` is in the boundary, so that its fence counts it.
    pub fn holds(&self, event: &SequencedEvent) -> bool {
        match &self.access {
            Access::Partition => event.partition == self.boundary,
            Access::TagIndex(tag) => event.tags.contains(tag),
            Access::CompositeIndex(tags) => {
                event.tags.len() == tags.len() && tags.iter().all(|tag| event.tags.contains(tag))
            }
        }
    }
}

/// How the events of a type that carry all of `tags` are found, if they can be.
fn route(catalog: &Catalog, schema: &EventSchema, tags: &[Tag]) -> Option<(BoundaryId, Access)> {
    let partition: Vec<_> = schema.tags.iter().filter(|tag| tag.partition).collect();
    let value = |key: &str| tags.iter().find(|tag| tag.key == key).map(|tag| tag.value.as_str());
    let cross_partition = |tag: &&Tag| catalog.is_cross_partition(&tag.key) == Some(true);
    if partition.len() > 1 {
        let parts: Option<Vec<_>> =
            partition.iter().map(|part| Some((part.key, value(part.key)?))).collect();
        if let Some(parts) = parts {
            let id = BoundaryId::composite_partition(parts.into_iter(), schema.separator);
            return Some((id, Access::Partition));
        }
    }
    if tags.len() > 1 && schema.read_as_composite && schema.tags.len() == tags.len() {
        return Some((BoundaryId::composite(tags), Access::CompositeIndex(tags.to_vec())));
    }
    if let [part] = partition[..]
        && !part.cross_partition
        && let Some(value) = value(part.key)
    {
        return Some((BoundaryId::tag(part.key, value), Access::Partition));
    }
    // A cross-partition key is read by its index, also for the types that it partitions.
    let tag = tags.iter().find(cross_partition)?;
    Some((BoundaryId::tag(&tag.key, &tag.value), Access::TagIndex(tag.clone())))
}
