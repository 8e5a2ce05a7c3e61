//! The tables of a schedule, and its first moment.

use ringfence_core::Catalog;
use ringfence_local::engine::Engine;
use serde_json::Value;

pub(crate) const TABLE: &str = "events";
/// Every schedule begins at this time: 2024-06-23T00:00:00Z.
pub(crate) const NOW_MS: u64 = 1_719_100_800_000;
pub(crate) fn table(catalog: &Catalog, keys_only: bool) -> Value {
    let mut layout = ringfence_dcb_log::table_layout(catalog);
    if keys_only {
        layout.indexes.iter_mut().for_each(|index| index.attributes.clear());
    }
    let mut properties = layout.properties();
    // Nobody reads the stream here, and the embedded store reads all of its records at each write.
    properties.as_object_mut().expect("a map").remove("StreamSpecification");
    properties
}

/// The tables of a log with this catalog, of its index and of the views.
pub(crate) fn tables(engine: &Engine, catalog: &Catalog) {
    engine.create_table(&table(catalog, false), TABLE).expect("a table");
    let layouts =
        [("index", ringfence_feed::table_layout()), ("views", ringfence_views::table_layout())];
    for (name, layout) in layouts {
        let mut properties = layout.properties();
        // Nobody reads these streams here either.
        properties.as_object_mut().expect("a map").remove("StreamSpecification");
        engine.create_table(&properties, name).expect("a table");
    }
}
