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
    /// The days to which it can be restored; `None` for 35, DynamoDB's most.
    pub recovery_days: Option<u32>,
}

/// The days to which the table of keys can be restored. After them, no such copy has the key of a forgotten person.
pub const KEY_RECOVERY_DAYS: u32 = 7;

/// The tables of a stack with these logs and these events. One with personal data has a table of keys.
#[must_use]
pub fn tables_of(logs: &Sources, catalog: &Catalog, is_personal: bool) -> Vec<StackTable> {
    let table = |id, holds, layout| StackTable { id, holds, layout, recovery_days: None };
    let logs =
        logs.iter().map(|log| table(log.facts().table, log.facts().name, log.layout(catalog)));
    let others = [
        table("IndexTable", "the index", ringfence_feed::table_layout()),
        table("ViewTable", "the views", ringfence_views::table_layout()),
    ];
    let keys = is_personal.then(|| StackTable {
        recovery_days: Some(KEY_RECOVERY_DAYS),
        ..table("KeyTable", "the keys of personal data", ringfence_subjects::table_layout())
    });
    logs.chain(others).chain(keys).collect()
}

/// The table of one event store in Castore's older layout, for programs outside of stacks: no stack uses it.
#[must_use]
pub fn legacy_table() -> StackTable {
    StackTable {
        id: "LegacyAggregateTable",
        holds: "one event store, in Castore's older layout",
        layout: ringfence_aggregate_log::legacy_table_layout(),
        recovery_days: None,
    }
}
