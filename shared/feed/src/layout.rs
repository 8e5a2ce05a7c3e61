//! The layout of the index table.

use aws_sdk_dynamodb::types::StreamViewType;
use ringfence_aws::{TableLayout, number_key, text_key};

use crate::item::{I, P};

/// The table of an index. Its stream notifies the readers, which read the pages themselves.
#[must_use]
pub fn table_layout() -> TableLayout {
    TableLayout {
        keys: vec![text_key(P), number_key(I)],
        indexes: Vec::new(),
        stream: Some(StreamViewType::KeysOnly),
        expires_at: None,
    }
}
