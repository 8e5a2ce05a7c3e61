//! The DCB specification narrowed by scope, written again without plan or boundary: the events that a query asks for.

use std::sync::LazyLock;

use ringfence_core::{Catalog, EventSchema, NewEvent, Query, QueryItem, TagSchema, Upcasts};

fn tag(key: &'static str) -> TagSchema {
    let partition = false;
    TagSchema {
        key: key.into(),
        partition,
        cross_partition: false,
        strong: false,
        many: false,
        required: true,
        computed: false,
        blind: false,
    }
}

fn partition(tag: TagSchema) -> TagSchema {
    TagSchema { partition: true, ..tag }
}

fn across(tag: TagSchema) -> TagSchema {
    TagSchema { cross_partition: true, ..tag }
}

fn strong(tag: TagSchema) -> TagSchema {
    TagSchema { strong: true, ..across(tag) }
}

fn optional(tag: TagSchema) -> TagSchema {
    TagSchema { required: false, ..tag }
}

fn many(tag: TagSchema) -> TagSchema {
    TagSchema { many: true, ..optional(tag) }
}

fn schema<const N: usize>(name: &'static str, tags: [TagSchema; N]) -> EventSchema {
    let (name, tags) = (name.into(), tags.to_vec().into());
    EventSchema {
        name,
        tags,
        separator: '|',
        read_as_composite: false,
        read_by_type: false,
        fenced: false,
        copies: 0,
        upcasts: Upcasts::NONE,
        write: None,
        retired: false,
        subjects: ringfence_core::Subjects::NONE,
    }
}

/// Every scope: `b` is cross-partition by an index, `e` by index items, the others are not.
fn narrow() -> Vec<EventSchema> {
    vec![
        schema("A", [partition(tag("a")), optional(across(tag("b"))), optional(tag("c"))]),
        schema("B", [partition(across(tag("b"))), many(tag("c"))]),
        schema("C", [partition(tag("a")), partition(tag("d")), many(strong(tag("e")))]),
        EventSchema {
            read_as_composite: true,
            fenced: true,
            ..schema("D", [partition(tag("a")), tag("f")])
        },
        EventSchema { read_by_type: true, ..schema("E", []) },
        EventSchema {
            read_by_type: true,
            ..schema("F", [partition(strong(tag("e"))), many(tag("c")), optional(tag("f"))])
        },
        schema("G", []),
    ]
}

/// Every key is cross-partition, so this is the specification without changes.
fn plain() -> Vec<EventSchema> {
    vec![
        schema(
            "A",
            [partition(across(tag("a"))), many(strong(tag("b"))), optional(across(tag("c")))],
        ),
        EventSchema {
            read_by_type: true,
            ..schema("B", [partition(strong(tag("b"))), optional(across(tag("c")))])
        },
        schema(
            "C",
            [partition(across(tag("c"))), many(strong(tag("b"))), optional(across(tag("a")))],
        ),
        schema("D", []),
    ]
}

/// The model's view of a world.
pub(crate) struct World {
    pub(crate) schemas: Vec<EventSchema>,
    /// Keys by which every carrier is found.
    pub(crate) across: &'static [&'static str],
}

pub(crate) static WORLDS: LazyLock<[World; 2]> = LazyLock::new(|| {
    [
        World { schemas: narrow(), across: &["b", "e"] },
        World { schemas: plain(), across: &["a", "b", "c"] },
    ]
});

impl World {
    pub(crate) fn catalog(&self) -> Catalog {
        let one = self.schemas.iter().map(|schema| Catalog::new("world", [schema.clone()]));
        let one = one.map(|catalog| catalog.expect("free of contradictions"));
        Catalog::compose(one.collect::<Vec<_>>()).expect("free of contradictions")
    }

    fn schema(&self, name: &str) -> &EventSchema {
        self.schemas.iter().find(|schema| schema.name == name).expect("a type of this world")
    }

    /// Whether the specification, narrowed by scope, says that the query asks for the event.
    pub(crate) fn asks(&self, query: &Query, event: &NewEvent) -> bool {
        query.items.is_empty() || query.items.iter().any(|item| self.clause_asks(item, event))
    }

    pub(crate) fn clause_asks(&self, item: &QueryItem, event: &NewEvent) -> bool {
        let of_type = item.types.is_empty() || item.types.contains(&event.event_type);
        let tagged = item.tags.iter().all(|tag| event.tags.contains(tag));
        of_type && tagged && self.reaches(item, event)
    }

    /// Whether the event's scopes let it be found by the clause's tags, all of which it has.
    fn reaches(&self, item: &QueryItem, event: &NewEvent) -> bool {
        let schema = self.schema(&event.event_type);
        let mut parts = schema.tags.iter().filter(|tag| tag.partition).map(|tag| &*tag.key);
        let asked = |key: &str| item.tags.iter().any(|tag| tag.key == key);
        item.tags.is_empty()
            || item.tags.iter().any(|tag| self.across.contains(&&*tag.key))
            || parts.all(asked)
            || schema.read_as_composite && item.tags.len() == event.tags.len()
    }
}
