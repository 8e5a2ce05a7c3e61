//! The layout of the view table.

use ringfence_aws::{IndexLayout, TableLayout, number_key, text_key};

use crate::due::DUE;
use crate::keys::{ID, VIEW};
use crate::row::{DUE_AT, EXPIRES_AT};

/// The table of all views, the checkpoints of readers, the receipts of reactors, and the answers of queued commands. It
/// has no stream, so that a system at rest does not wake itself.
#[must_use]
pub fn table_layout() -> TableLayout {
    let due = IndexLayout {
        name: DUE.to_owned(),
        keys: [text_key(VIEW), number_key(DUE_AT)],
        attributes: Vec::new(),
    };
    TableLayout {
        keys: vec![text_key(VIEW), text_key(ID)],
        indexes: vec![due],
        stream: None,
        expires_at: Some(EXPIRES_AT),
    }
}
