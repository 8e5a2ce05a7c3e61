//! The layout of the aggregates' table.

use aws_sdk_dynamodb::types::StreamViewType;
use ringfence_dynamo::{IndexLayout, TableLayout, number_key, text_key};

use crate::item::{AGGREGATE_ID, EVENT_STORE_ID, INITIAL_EVENTS, TIMESTAMP, VERSION};

/// The table for the aggregates of any stores, with the index that lists the aggregates of a store.
#[must_use]
pub fn table_layout() -> TableLayout {
    let initial_events = IndexLayout {
        name: INITIAL_EVENTS.to_owned(),
        keys: [text_key(EVENT_STORE_ID), text_key(TIMESTAMP)],
        attributes: Vec::new(),
    };
    TableLayout {
        keys: [text_key(AGGREGATE_ID), number_key(VERSION)],
        indexes: vec![initial_events],
        stream: Some(StreamViewType::NewImage),
        expires_at: None,
    }
}
