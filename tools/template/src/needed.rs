//! The tables that a stack needs.

use ringfence_aws::TableLayout;
use ringfence_core::Catalog;
use ringfence_log::Sources;

/// A table that a stack needs, or another one that a log can write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackTable {
    /// The logical id that it has in templates. Its parameter and its output begin with it, as `EventTableName`.
    pub id: &'static str,
    /// Its content, for people.
    pub holds: &'static str,
    /// Its keys, its indexes and its stream.
    pub layout: TableLayout,
}

/// The tables of a stack with these logs and these events.
#[must_use]
pub fn tables_of(logs: &Sources, catalog: &Catalog) -> Vec<StackTable> {
    let table = |id, holds, layout| StackTable { id, holds, layout };
    let logs =
        logs.iter().map(|log| table(log.facts().table, log.facts().name, log.layout(catalog)));
    let others = [
        table("IndexTable", "the index", ringfence_feed::table_layout()),
        table("ViewTable", "the views", ringfence_views::table_layout()),
    ];
    logs.chain(others).collect()
}

/// The table of one event store in Castore's older layout, for programs outside of stacks: no stack uses it.
#[must_use]
pub fn legacy_table() -> StackTable {
    StackTable {
        id: "LegacyAggregateTable",
        holds: "one event store, in Castore's older layout",
        layout: ringfence_aggregate_log::legacy_table_layout(),
    }
}
