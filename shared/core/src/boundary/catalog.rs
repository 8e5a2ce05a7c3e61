//! The schemas of the events. The place of each event follows from them.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
};

use crate::{
    BoundaryId, Current, CurrentError, EventSchema, Filing, FilingError, Name, NewEvent,
    SequencedEvent, Tag, TagSchema, Upcasts, boundary::filing::check_length,
    model::current::current, model::personal::is_blinded, model::tag::is_key,
};

mod error;

pub use error::CatalogError;

/// Every event type of one or more contexts. In a catalog a type name is unique, and a tag key has one scope. So
/// writers file events where the readers of all contexts look.
#[derive(Clone, Debug)]
pub struct Catalog {
    types: BTreeMap<Name, (Name, EventSchema)>,
    /// The scope of each tag key, and the first type that has the key.
    scopes: BTreeMap<Name, (Scope, Name)>,
    /// Whether a partition is a stream, named `<context>#<value>`, on a log of single streams.
    streams: bool,
}

/// The events that a tag key finds, and how. The scope belongs to the key, in the whole stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The events that it partitions.
    Partition,
    /// All events with the tag, by the index `tag_<key>`: one value for each event, eventually consistent.
    Index,
    /// All events with the tag, by an index item for each value: any number of values, strong if wanted.
    IndexItems,
}

impl Catalog {
    /// The catalog of one context. Its schemas come from derived types, or were made at run time.
    ///
    /// # Errors
    /// The schemas contradict each other.
    pub fn new(
        context: impl Into<Name>,
        schemas: impl IntoIterator<Item = EventSchema>,
    ) -> Result<Self, CatalogError> {
        Self::of(context.into(), schemas, false)
    }

    /// The catalog of a context on a log of single streams. The stream of an event is named `<context>#<value>`, by the
    /// value of the event's one tag.
    ///
    /// # Errors
    /// The schemas contradict each other, or a type has another tag than its stream's.
    pub fn of_streams(
        context: impl Into<Name>,
        schemas: impl IntoIterator<Item = EventSchema>,
    ) -> Result<Self, CatalogError> {
        Self::of(context.into(), schemas, true)
    }

    fn of(
        context: Name,
        schemas: impl IntoIterator<Item = EventSchema>,
        streams: bool,
    ) -> Result<Self, CatalogError> {
        let mut catalog = Self { types: BTreeMap::new(), scopes: BTreeMap::new(), streams };
        for schema in schemas {
            if streams && !is_of_one_stream(&schema) {
                return Err(CatalogError::NotOfOneStream { event_type: schema.name });
            }
            catalog.add(context.clone(), schema)?;
        }
        Ok(catalog)
    }

    /// The catalog of a stack, with the types of all its contexts.
    pub fn compose(catalogs: impl IntoIterator<Item = Self>) -> Result<Self, CatalogError> {
        let mut composed = Self { types: BTreeMap::new(), scopes: BTreeMap::new(), streams: false };
        for (context, schema) in
            catalogs.into_iter().flat_map(|catalog| catalog.types.into_values())
        {
            // A context that reads another context's events also has that context's catalog.
            let declared = composed.types.get(&schema.name);
            if declared.is_none_or(|(by, of)| (by, of) != (&context, &schema)) {
                composed.add(context, schema)?;
            }
        }
        Ok(composed)
    }

    fn add(&mut self, context: Name, schema: EventSchema) -> Result<(), CatalogError> {
        check(&schema)?;
        for tag in &*schema.tags {
            let (key, scope) = (tag.key.clone(), scope(&schema, tag));
            let first = || (scope, schema.name.clone());
            let (known, other) = self.scopes.entry(key.clone()).or_insert_with(first);
            if *known != scope {
                let (event_type, other) = (schema.name.clone(), other.clone());
                return Err(CatalogError::ScopeDiffers { key, event_type, other });
            }
            let differs = |of: &&EventSchema| is_blind(of, &key).any(|blind| blind != tag.blind);
            if let Some(other) = self.schemas().chain([&schema]).find(differs) {
                let (event_type, other) = (schema.name.clone(), other.name.clone());
                return Err(CatalogError::BlindDiffers { key, event_type, other });
            }
        }
        for other in self.schemas() {
            if let Some(copies) = differing_copies(&schema, other) {
                let (event_type, other) = (schema.name.clone(), other.name.clone());
                return Err(CatalogError::CopiesDiffer { event_type, other, copies });
            }
        }
        match self.types.entry(schema.name.clone()) {
            Entry::Vacant(new) => {
                new.insert((context, schema));
                Ok(())
            }
            Entry::Occupied(declared) => Err(CatalogError::DuplicateType {
                name: schema.name,
                first: declared.get().0.clone(),
                second: context,
            }),
        }
    }

    /// The schema of a type.
    pub fn schema(&self, event_type: &str) -> Option<&EventSchema> {
        self.types.get(event_type).map(|(_, schema)| schema)
    }

    /// The context that declares a type.
    pub fn context(&self, event_type: &str) -> Option<&str> {
        self.types.get(event_type).map(|(context, _)| &**context)
    }

    /// The event in the newest version of its type. If the catalog does not have the type, only version 1 is known.
    ///
    /// # Errors
    /// The event has a newer version, or an upcast fails.
    pub fn current<'e>(
        &self,
        event: impl Into<Cow<'e, SequencedEvent>>,
    ) -> Result<Current<'e>, CurrentError> {
        let event = event.into();
        let upcasts = self.upcasts(&event.event_type);
        current(event, upcasts)
    }

    /// The newest version of a type.
    pub fn version(&self, event_type: &str) -> u32 {
        self.upcasts(event_type).version()
    }

    fn upcasts(&self, event_type: &str) -> Upcasts {
        self.schema(event_type).map_or(Upcasts::NONE, |schema| schema.upcasts)
    }

    /// The schemas of all types.
    pub fn schemas(&self) -> impl Iterator<Item = &EventSchema> {
        self.types.values().map(|(_, schema)| schema)
    }

    /// The scope of a tag key; `None` if no event has it.
    pub fn scope(&self, key: &str) -> Option<Scope> {
        self.scopes.get(key).map(|(scope, _)| *scope)
    }

    /// Whether decisions read all events with the key; `None` if no event has it.
    pub fn is_cross_partition(&self, key: &str) -> Option<bool> {
        self.scope(key).map(|scope| scope != Scope::Partition)
    }

    /// Whether the tags of a key are blind.
    pub(crate) fn is_blind(&self, key: &str) -> bool {
        self.schemas().any(|schema| is_blind(schema, key).any(|blind| blind))
    }

    /// Every index that the catalog's reads need: `tag_<key>` and `tag_composite`.
    pub fn indexes(&self) -> BTreeSet<String> {
        let composite = self.schemas().any(has_composite);
        self.scopes
            .iter()
            .filter(|(_, (scope, _))| *scope == Scope::Index)
            .map(|(key, _)| format!("tag_{key}"))
            .chain(composite.then(|| "tag_composite".to_owned()))
            .collect()
    }

    /// The place of a new event. An event that was made by hand may have other tags than its type declares. If a tag
    /// that must have one value had several, the event's fences would count all of them, but its partition or index
    /// would show only one. With a tag too many or too few, the event would not be in the composite by which its type
    /// is read.
    ///
    /// # Errors
    /// Those of [`Catalog::filing`], several values, and a tag that the type does not declare or that is missing.
    pub fn filing_of_new(&self, event: &NewEvent) -> Result<Filing, FilingError> {
        let filing = self.filing(event)?;
        let tags = &*self.known(&event.event_type)?.tags;
        let named = |key: &Name| (event.event_type.clone(), key.clone());
        let mut values: BTreeMap<&str, &str> = BTreeMap::new();
        for Tag { key, value } in &event.tags {
            let Some(declared) = tags.iter().find(|tag| tag.key == *key) else {
                let (event_type, key) = named(key);
                return Err(FilingError::Undeclared { event_type, key });
            };
            // An empty value makes no boundary, so it stays.
            if declared.blind && !value.is_empty() && !is_blinded(value) {
                let (event_type, key) = named(key);
                return Err(FilingError::NotBlind { event_type, key });
            }
            if *values.entry(key).or_insert(value) != value && !has_many(tags, declared) {
                let (event_type, key) = named(key);
                return Err(FilingError::SeveralValues { event_type, key });
            }
        }
        // A forgotten value makes no blind tag.
        let needed = |tag: &&TagSchema| tag.required && !tag.blind;
        match tags.iter().filter(needed).find(|tag| !values.contains_key(&*tag.key)) {
            None => Ok(filing),
            Some(tag) => {
                let (event_type, key) = named(&tag.key);
                Err(FilingError::Lacks { event_type, key })
            }
        }
    }

    pub(crate) fn known(&self, event_type: &str) -> Result<&EventSchema, FilingError> {
        self.schema(event_type).ok_or_else(|| FilingError::UnknownType(event_type.to_owned()))
    }

    /// The partition of an event of this type with these tags.
    pub(crate) fn partition(
        &self,
        event_type: &str,
        tags: &[Tag],
    ) -> Result<BoundaryId, FilingError> {
        let schema = self.known(event_type)?;
        let mut parts = Vec::new();
        for tag in schema.tags.iter().filter(|tag| tag.partition) {
            let value = tags.iter().find(|t| t.key == tag.key && !t.value.is_empty());
            let value = value.ok_or_else(|| FilingError::NoPartitionValue {
                event_type: schema.name.clone(),
                key: tag.key.clone(),
            })?;
            parts.push((&*tag.key, value.value.as_str()));
        }
        Ok(self.partition_of(schema, &parts))
    }

    /// The partition of events of a type, by the keys and values of its partition tags.
    pub(crate) fn partition_of(&self, schema: &EventSchema, parts: &[(&str, &str)]) -> BoundaryId {
        match parts {
            [(_, value)] if self.streams => {
                let context = self.context(&schema.name).unwrap_or_default();
                BoundaryId::stored(format!("{context}#{value}"))
            }
            [] => BoundaryId::tagless(),
            [(key, value)] => BoundaryId::tag(key, value),
            _ => BoundaryId::composite_partition(parts.iter().copied(), schema.separator),
        }
    }

    /// Whether its partitions are streams of a log of single streams.
    #[must_use]
    pub fn is_of_streams(&self) -> bool {
        self.streams
    }

    /// The place of `event`, which is the same for decisions and imports.
    pub fn filing(&self, event: &NewEvent) -> Result<Filing, FilingError> {
        let schema = self.known(&event.event_type)?;
        let partition = self.partition(&event.event_type, &event.tags)?;
        let in_scope = |scope| {
            let is_in =
                move |tag: &&Tag| !tag.value.is_empty() && self.scope(&tag.key) == Some(scope);
            event.tags.iter().filter(is_in)
        };
        let boundary = |tag: &Tag| BoundaryId::tag(&tag.key, &tag.value);
        let indexed: Vec<Tag> = in_scope(Scope::Index).cloned().collect();
        let items: BTreeSet<BoundaryId> = in_scope(Scope::IndexItems)
            .map(boundary)
            .chain(schema.read_by_type.then(|| BoundaryId::event_type(&schema.name)))
            .collect();
        // An empty value makes no boundary, also not with others.
        let named = event.tags.iter().all(|tag| !tag.value.is_empty());
        let composite =
            (has_composite(schema) && named).then(|| BoundaryId::composite(&event.tags));
        let fences: BTreeSet<BoundaryId> = schema
            .fenced
            .then(|| partition.clone())
            .into_iter()
            .chain(indexed.iter().map(boundary))
            .chain(items.iter().cloned())
            .chain(composite.clone())
            .collect();
        for boundary in [&partition].into_iter().chain(&fences) {
            check_length(boundary, &event.tags)?;
        }
        Ok(Filing { partition, fences, indexed, items, composite })
    }
}

/// Whether the type's tags of this key are blind.
fn is_blind(schema: &EventSchema, key: &str) -> impl Iterator<Item = bool> {
    schema.tags.iter().filter(move |tag| tag.key == *key).map(|tag| tag.blind)
}

fn partition_keys(schema: &EventSchema) -> impl Iterator<Item = &Name> {
    schema.tags.iter().filter(|tag| tag.partition).map(|tag| &tag.key)
}

/// How many copies each of two types wants for a fence that counts both, if the numbers differ. A type that is counted
/// by a cross-partition tag wants none.
fn differing_copies(one: &EventSchema, other: &EventSchema) -> Option<[u16; 2]> {
    [one, other].into_iter().find_map(|of| {
        let fence: Vec<&Name> = partition_keys(of).collect();
        let wanted = |by: &EventSchema| {
            let is_tag = |tag: &TagSchema| tag.cross_partition && *fence == [&tag.key];
            let is_partition = by.fenced && partition_keys(by).eq(fence.iter().copied());
            let copies = if is_partition { by.copies } else { 0 };
            (is_partition || by.tags.iter().any(is_tag)).then_some(copies)
        };
        let both = [wanted(one)?, wanted(other)?];
        (both[0] != both[1]).then_some(both)
    })
}

/// Whether events of the type have one tag, which names their stream, and are read only by it.
fn is_of_one_stream(schema: &EventSchema) -> bool {
    let EventSchema { tags, read_as_composite, read_by_type, fenced, .. } = schema;
    let only = matches!(&**tags, [tag] if tag.partition && !tag.cross_partition && !tag.strong);
    only && !(*read_as_composite || *read_by_type || *fenced)
}

/// Whether the events of the type are filed under their whole set of tags. They are not if that set is the partition,
/// which is read as such.
pub(crate) fn has_composite(schema: &EventSchema) -> bool {
    schema.read_as_composite && !schema.tags.iter().all(|tag| tag.partition)
}

/// Whether an event or a command with these tags can have several values of this one: a list, or several fields.
pub(crate) fn has_many(tags: &[TagSchema], tag: &TagSchema) -> bool {
    tag.many || tags.iter().filter(|other| other.key == tag.key).count() > 1
}

/// An attribute of the event holds one value, so a tag that can have several is read by index items.
fn scope(schema: &EventSchema, tag: &TagSchema) -> Scope {
    match (tag.cross_partition, tag.strong || has_many(&schema.tags, tag)) {
        (false, _) => Scope::Partition,
        (true, false) => Scope::Index,
        (true, true) => Scope::IndexItems,
    }
}

fn check(schema: &EventSchema) -> Result<(), CatalogError> {
    let event_type = || schema.name.clone();
    let single = |tag: &TagSchema| tag.required && !has_many(&schema.tags, tag);
    for tag in &*schema.tags {
        let key = || tag.key.clone();
        if !is_key(&tag.key) {
            return Err(CatalogError::InvalidKey { key: key(), event_type: event_type() });
        }
        if tag.partition && !single(tag) {
            return Err(CatalogError::PartitionNotSingle { key: key(), event_type: event_type() });
        }
        if tag.partition && tag.blind {
            return Err(CatalogError::PartitionBlind { key: key(), event_type: event_type() });
        }
    }
    if !schema.tags.is_empty() && !schema.tags.iter().any(|tag| tag.partition) {
        return Err(CatalogError::NoPartition(event_type()));
    }
    if schema.read_as_composite && !schema.tags.iter().all(single) {
        return Err(CatalogError::CompositeNotSingle(event_type()));
    }
    if !matches!(schema.copies, 0 | 2..=64) {
        return Err(CatalogError::Copies { event_type: event_type(), copies: schema.copies });
    }
    Ok(())
}
