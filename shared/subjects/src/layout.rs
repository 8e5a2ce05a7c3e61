//! The layout of the table of keys.

use ringfence_aws::{TableLayout, text_key};

use crate::item::P;

/// The table of keys. It has no stream: nothing copies a key.
#[must_use]
pub fn table_layout() -> TableLayout {
    TableLayout { keys: vec![text_key(P)], indexes: Vec::new(), stream: None, expires_at: None }
}
