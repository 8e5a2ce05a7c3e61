//! Queries of the DCB specification, and the query of a command.

use crate::{Catalog, Name, Tag, TagSchema, boundary::catalog::has_many, model::tag::distinct};

/// An OR of items.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Query {
    /// Its clauses.
    pub items: Vec<QueryItem>,
}

/// An AND of tags, with an OR of event types.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QueryItem {
    /// The event has all of these tags, and perhaps others. If several of them are cross-partition, the first one is
    /// read and guards the decision. Begin with the most selective one, since every event with that tag can be a
    /// conflict.
    pub tags: Vec<Tag>,
    /// The event has one of these types.
    pub types: Vec<Name>,
}

impl Query {
    /// The query of a command. Scalar tags make one AND clause, and a cross-partition tag makes a separate clause. If
    /// the command can have several values of a key, in a list or in several fields, every tag makes a separate clause,
    /// because no event need have all of the values. Each clause keeps the consumed types that can have its tags; a
    /// clause without types is dropped. If no clause keeps a consumed type, the type is read alone, if it is declared
    /// so. If a type has one of the command's tags, it is read by that tag, so only its events with that value are
    /// read.
    pub fn of_command(
        shape: &[TagSchema],
        tags: Vec<Tag>,
        consumed: impl IntoIterator<Item = impl Into<Name>>,
        catalog: &Catalog,
    ) -> Self {
        Self::consuming(shape, tags, consumed.into_iter().map(Into::into).collect(), catalog)
    }

    /// This is compiled once, and not for each slice.
    fn consuming(
        shape: &[TagSchema],
        mut tags: Vec<Tag>,
        mut consumed: Vec<Name>,
        catalog: &Catalog,
    ) -> Self {
        tags.sort_unstable();
        tags.dedup();
        let several = shape.iter().any(|tag| has_many(shape, tag));
        let apart = |tag: &Tag| several || catalog.is_cross_partition(&tag.key) == Some(true);
        let (alone, together): (Vec<Tag>, Vec<Tag>) = tags.into_iter().partition(apart);
        let mut clauses: Vec<Vec<Tag>> = alone.into_iter().map(|tag| vec![tag]).collect();
        if !together.is_empty() || clauses.is_empty() {
            clauses.push(together);
        }
        let items = clauses.into_iter().filter_map(|tags| {
            let can_carry = |event_type: &&Name| can_carry(catalog, event_type, &tags);
            let types: Vec<Name> = consumed.iter().filter(can_carry).cloned().collect();
            (!types.is_empty()).then_some(QueryItem { tags, types })
        });
        let mut items: Vec<QueryItem> = items.collect();
        let kept = |event_type: &Name| items.iter().any(|item| item.types.contains(event_type));
        consumed.retain(|event_type| {
            !kept(event_type) && catalog.schema(event_type).is_some_and(|s| s.read_by_type)
        });
        if !consumed.is_empty() {
            items.push(QueryItem { tags: Vec::new(), types: consumed });
        }
        Self { items }
    }
}

impl QueryItem {
    /// The same item without repeated tags.
    pub(crate) fn distinct(&self) -> Self {
        Self { tags: distinct(self.tags.clone()), types: self.types.clone() }
    }
}

pub(crate) fn can_carry(catalog: &Catalog, event_type: &str, tags: &[Tag]) -> bool {
    catalog
        .schema(event_type)
        .is_some_and(|schema| tags.iter().all(|tag| schema.tags.iter().any(|t| t.key == tag.key)))
}
