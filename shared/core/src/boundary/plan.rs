//! Turns a query into physical reads (docs/protocol.md, "Reads").

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::{
    BoundaryId, Catalog, EventSchema, FilingError, Name, Query, QueryItem, Scope, SequencedEvent,
    Tag,
    boundary::catalog::{has_composite, has_many},
    boundary::filing::check_length,
};

/// A query with its reads. The route of each (clause, type) follows only from the catalog and the clause's keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// The query, each clause narrowed to the types that a read can return.
    pub clauses: Vec<Clause>,
    /// The reads, one per boundary; all are made in parallel.
    pub reads: Vec<Read>,
}

/// An AND of tags and the types that can match it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Clause {
    /// Tags that a matching event carries.
    pub tags: Vec<Tag>,
    /// Types that a matching event has.
    pub types: BTreeSet<Name>,
}

/// One physical read: all events of one boundary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Read {
    /// The boundary: a partition, or one whose fence counts exactly the events that the read can return.
    pub boundary: BoundaryId,
    /// How to reach it.
    pub access: Access,
    /// The types that the decision takes from it. The read may return others.
    pub types: BTreeSet<Name>,
    /// Whether the boundary is a partition and each of the types is declared `fenced`. Then a decision that writes
    /// elsewhere depends on the counts of the partition's fence.
    pub fenced: bool,
    /// Only later events are read: after this slot in a partition, or after this time in another boundary, in
    /// milliseconds since 1970. 0 reads all.
    pub after: u64,
}

/// The access to a boundary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum Access {
    /// Query of the table by its partition.
    Partition,
    /// Query of the index `tag_<key>` by the raw value.
    TagIndex(Tag),
    /// Query of the index `tag_composite`.
    CompositeIndex(Vec<Tag>),
    /// Query of the table by the tag's index items.
    TagItems(Tag),
    /// Query of the table by the type's index items.
    TypeItems(Name),
}

impl Access {
    /// Whether it is a query of the table itself, which can be strongly consistent. An index has fewer attributes of an
    /// event than the table.
    pub fn is_of_table(&self) -> bool {
        matches!(self, Self::Partition | Self::TagItems(_) | Self::TypeItems(_))
    }
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
        event_type: Name,
        /// The tags by which the command reads it.
        keys: String,
    },
    /// A clause asks for events with two values of a tag, but each event has one value of it.
    #[error(
        "a clause asks for {event_type} with two values of {key} at once, but each event has one, so \
         none can match; if events with either value are meant, write a clause for each"
    )]
    SeveralValues {
        /// The event type.
        event_type: Name,
        /// The tag key.
        key: Name,
    },
    /// A type is read without any tag.
    #[error(
        "{0} is read by its type alone: declare it #[event(read_by_type)], which makes one fence \
         of all its events, or give the command a tag that the event carries"
    )]
    TypeAlone(Name),
    /// The command has no tag value, so nothing would be read and nothing conditioned.
    #[error("none of the command's tags has a value; the decision would depend on nothing")]
    Nothing,
    /// A clause of a decision names no type.
    #[error("a clause of a decision names the event types that it reads")]
    NoType,
    /// A clause has an empty tag value.
    #[error("tag {0} is empty; it names no boundary")]
    EmptyValue(String),
    /// A boundary's name is too long.
    #[error(transparent)]
    Boundary(#[from] FilingError),
}

impl Plan {
    /// The reads for a decision's query. Without clauses, a decision depends on nothing.
    ///
    /// # Errors
    /// A clause that can't be a condition: it is refused, never skipped.
    pub fn new(query: &Query, catalog: &Catalog) -> Result<Self, PlanError> {
        let mut clauses = Vec::with_capacity(query.items.len());
        let mut reads: Vec<Read> = Vec::new();
        let mut missing: BTreeMap<Name, &QueryItem> = BTreeMap::new();
        let items: Vec<_> = query.items.iter().map(QueryItem::distinct).collect();
        for item in &items {
            if let Some(tag) = item.tags.iter().find(|tag| tag.value.is_empty()) {
                return Err(PlanError::EmptyValue(tag.key.to_string()));
            }
            if item.types.is_empty() {
                return Err(PlanError::NoType);
            }
            let mut types = BTreeSet::new();
            for event_type in &item.types {
                let schema = catalog
                    .schema(event_type)
                    .ok_or_else(|| PlanError::UnknownType(event_type.to_string()))?;
                if item.tags.is_empty() && !schema.read_by_type {
                    return Err(PlanError::TypeAlone(event_type.clone()));
                }
                if let Some(key) = contradiction(schema, &item.tags) {
                    let event_type = event_type.clone();
                    return Err(PlanError::SeveralValues { event_type, key });
                }
                let Some((boundary, access)) = route(catalog, schema, &item.tags) else {
                    missing.entry(event_type.clone()).or_insert(item);
                    continue;
                };
                check_length(&boundary, &item.tags)?;
                types.insert(event_type.clone());
                add(&mut reads, boundary, access, event_type.clone());
            }
            clauses.push(Clause { tags: item.tags.clone(), types });
        }
        for (event_type, item) in missing {
            // A clause with a partition-scoped tag asks only for the events that the tag partitions. For other types it
            // reads nothing, if another clause returns the type.
            let read = reads.iter().any(|read| read.types.contains(&event_type));
            if !read || item.tags.len() > 1 {
                let keys: Vec<&str> = item.tags.iter().map(|tag| &*tag.key).collect();
                return Err(PlanError::NoRoute { event_type, keys: keys.join(" and ") });
            }
        }
        for read in &mut reads {
            let is_fenced = |name: &Name| catalog.schema(name).is_some_and(|schema| schema.fenced);
            read.fenced = read.access == Access::Partition && read.types.iter().all(is_fenced);
        }
        Ok(Self { clauses, reads })
    }

    /// Whether one of the reads consumes the type.
    #[must_use]
    pub fn reads_type(&self, event_type: &str) -> bool {
        self.reads.iter().any(|read| read.types.contains(event_type))
    }

    /// Whether one of the reads is of the partition.
    #[must_use]
    pub fn reads_partition(&self, partition: &BoundaryId) -> bool {
        let mut reads = self.reads.iter();
        reads.any(|read| read.access == Access::Partition && read.boundary == *partition)
    }

    /// Whether a decision that has seen everything has seen each event of the type in the partition: it reads the
    /// partition, and such an event would be a conflict.
    pub(crate) fn shows(&self, partition: &BoundaryId, event_type: &str) -> bool {
        self.reads.iter().any(|read| {
            read.access == Access::Partition
                && read.boundary == *partition
                && (!read.fenced || read.types.contains(event_type))
        })
    }

    /// Whether the query asks for `event`. A read can return other events too.
    pub fn matches(&self, event: &SequencedEvent) -> bool {
        self.clauses.iter().any(|clause| {
            clause.types.contains(event.event_type.as_str())
                && clause.tags.iter().all(|tag| event.tags.contains(tag))
        })
    }
}

impl Read {
    /// Whether the read shows a decision an event of the boundary although the plan does not read the event's type.
    /// That depends on the event's partition. A read of the table must show it: the event may take a slot, or have an
    /// unknown type (rule 11). An index may lack the needed attributes. It shows only the events of the partition that
    /// has the boundary's name, where a put begins after the last slot (rule 8).
    #[must_use]
    pub fn shows_unread(&self, partition: &str) -> bool {
        self.access.is_of_table() || partition == self.boundary.as_str()
    }

    /// Whether `event` is in the boundary.
    pub fn holds(&self, event: &SequencedEvent) -> bool {
        match &self.access {
            Access::Partition => event.partition == self.boundary,
            Access::TagIndex(tag) | Access::TagItems(tag) => event.tags.contains(tag),
            Access::TypeItems(event_type) => *event_type == event.event_type,
            Access::CompositeIndex(tags) => {
                let carries = |tag| event.tags.contains(tag);
                tags.iter().all(carries) && event.tags.iter().all(|tag| tags.contains(tag))
            }
        }
    }
}

/// A key that contradicts the type: `tags` have two values of it, but an event has one, so no event has both.
fn contradiction(schema: &EventSchema, tags: &[Tag]) -> Option<Name> {
    let mut single = schema.tags.iter().filter(|tag| !has_many(&schema.tags, tag));
    let contradicts = |key: &str| {
        let mut values = tags.iter().filter(|tag| tag.key == key).map(|tag| &tag.value);
        values.next().is_some_and(|first| values.any(|value| value != first))
    };
    single.find(|tag| contradicts(&tag.key)).map(|tag| tag.key.clone())
}

/// Adds `event_type` to the boundary's read. The reads are sorted by their boundaries. A boundary has one access,
/// because another one would not find its events.
pub(crate) fn add(reads: &mut Vec<Read>, boundary: BoundaryId, access: Access, event_type: Name) {
    match reads.binary_search_by(|read| read.boundary.cmp(&boundary)) {
        Ok(place) => {
            assert_eq!(reads[place].access, access, "two ways to read {boundary}");
            reads[place].types.insert(event_type);
        }
        Err(place) => {
            let types = BTreeSet::from([event_type]);
            reads.insert(place, Read { boundary, access, types, fenced: false, after: 0 });
        }
    }
}

/// The boundary and the access for the events of a type that have all of `tags`, each given once; `None` if they can't
/// be read.
pub(crate) fn route(
    catalog: &Catalog,
    schema: &EventSchema,
    tags: &[Tag],
) -> Option<(BoundaryId, Access)> {
    let partition: Vec<_> = schema.tags.iter().filter(|tag| tag.partition).collect();
    let value = |key: &str| tags.iter().find(|tag| tag.key == key).map(|tag| tag.value.as_str());
    if tags.is_empty() {
        let items =
            || (BoundaryId::event_type(&schema.name), Access::TypeItems(schema.name.clone()));
        return schema.read_by_type.then(items);
    }
    if partition.len() > 1 {
        let parts: Option<Vec<_>> =
            partition.iter().map(|part| Some((&*part.key, value(&part.key)?))).collect();
        if let Some(parts) = parts {
            return Some((catalog.partition_of(schema, &parts), Access::Partition));
        }
    }
    let is_whole = |tags: &[Tag]| {
        tags.len() == schema.tags.len() && schema.tags.iter().all(|tag| value(&tag.key).is_some())
    };
    if has_composite(schema) && is_whole(tags) {
        let mut tags = tags.to_vec();
        tags.sort_unstable();
        return Some((BoundaryId::composite(&tags), Access::CompositeIndex(tags)));
    }
    if let [part] = partition[..]
        && !part.cross_partition
        && let Some(value) = value(&part.key)
    {
        return Some((catalog.partition_of(schema, &[(&part.key, value)]), Access::Partition));
    }
    // A cross-partition key is read by its index, also for the types that it partitions. The first of several is read
    // and guards the decision.
    tags.iter().find_map(|tag| {
        let access = match catalog.scope(&tag.key)? {
            Scope::Partition => return None,
            Scope::Index => Access::TagIndex(tag.clone()),
            Scope::IndexItems => Access::TagItems(tag.clone()),
        };
        Some((BoundaryId::tag(&tag.key, &tag.value), access))
    })
}
