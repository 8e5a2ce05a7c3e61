//! The layout of the table.

use aws_sdk_dynamodb::types::StreamViewType;
use ringfence_aws::{IndexLayout, TableLayout, number_key, text_key};
use ringfence_core::Catalog;

use crate::item::{AT, DATA, EVENT, ID, POSITION, TAGS};
use crate::record::EXPIRES_AT;

/// The table for the events of a catalog. It has an index for each cross-partition tag key that a slice reads, and
/// one if a type is read as a composite. An index projects everything that a fold needs, so a read is one request.
#[must_use]
pub fn table_layout(catalog: &Catalog) -> TableLayout {
    let index = |name: String| IndexLayout {
        keys: [text_key(&name), number_key(AT)],
        name,
        attributes: vec![EVENT, DATA, TAGS],
    };
    TableLayout {
        keys: vec![text_key(ID), number_key(POSITION)],
        indexes: catalog.indexes().into_iter().map(index).collect(),
        stream: Some(StreamViewType::NewImage),
        expires_at: Some(EXPIRES_AT),
    }
}
