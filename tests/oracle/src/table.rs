//! The table of the events, and when every schedule begins.

use ringfence::Catalog;
use serde_json::Value;

pub(crate) const TABLE: &str = "events";
/// When every schedule begins: 2024-06-23T00:00:00Z.
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
