//! The two layouts of a table: the current one for any stores, and the older one for a single store.
//!
//! In the older layout, the partition key is the bare id of the aggregate. First events have `isInitialEvent` = 1, and
//! the index `initialEvents` lists them by it. No item names the store, so the caller names it. All other code sees
//! items of the current layout: this module converts items of the older layout when they are read and written.

use aws_sdk_dynamodb::types::{AttributeValue, StreamViewType};
use ringfence_aws::{IndexLayout, Item, TableLayout, number_key, text_key};

use crate::item::{
    AGGREGATE_ID, EVENT_STORE_ID, INITIAL_EVENTS, IS_INITIAL_EVENT, TIMESTAMP, VERSION, number,
    text,
};
use crate::key::check_store;
use crate::{AggregateError, AggregateKey};

/// The table for the aggregates of any stores, with the index that lists the aggregates of a store.
#[must_use]
pub fn table_layout() -> TableLayout {
    let initial_events = IndexLayout {
        name: INITIAL_EVENTS.to_owned(),
        keys: [text_key(EVENT_STORE_ID), text_key(TIMESTAMP)],
        attributes: Vec::new(),
    };
    TableLayout {
        keys: vec![text_key(AGGREGATE_ID), number_key(VERSION)],
        indexes: vec![initial_events],
        stream: Some(StreamViewType::NewImage),
        expires_at: None,
    }
}

/// The table of a store in the older layout. No function reads its stream.
#[must_use]
pub fn legacy_table_layout() -> TableLayout {
    let mut layout = TableLayout { stream: None, ..table_layout() };
    layout.indexes[0].keys[0] = number_key(IS_INITIAL_EVENT);
    layout
}

/// The name and the value of the index's partition key, for a list of first events.
pub(crate) struct Of {
    pub(crate) name: &'static str,
    pub(crate) value: AttributeValue,
}

/// The stores of a table.
#[derive(Clone, Debug)]
pub(crate) enum Stores {
    /// Any; a partition key begins with the store.
    Any,
    /// This one alone, in the older layout.
    One(String),
}

impl Stores {
    /// Fails if the table can't have the aggregates of a store.
    pub(crate) fn check(&self, store: &str) -> Result<(), AggregateError> {
        match self {
            Self::Any => Ok(check_store(store)?),
            Self::One(own) if own == store => Ok(()),
            Self::One(own) => {
                let why = format!("the table has the aggregates of {own}, and none of {store}");
                Err(AggregateError::Invalid(why))
            }
        }
    }

    /// The partition key of an aggregate.
    pub(crate) fn partition(&self, key: &AggregateKey) -> AttributeValue {
        match self {
            Self::Any => text(key.to_string()),
            Self::One(_) => text(key.id()),
        }
    }

    /// The key of an event's item.
    pub(crate) fn key_of(&self, key: &AggregateKey, version: u64) -> Item {
        let key = [(AGGREGATE_ID, self.partition(key)), (VERSION, number(version))];
        key.map(|(name, value)| (name.to_owned(), value)).into()
    }

    /// The index key of a store's first events.
    pub(crate) fn first_events(&self, store: &str) -> Of {
        match self {
            Self::Any => Of { name: EVENT_STORE_ID, value: text(store) },
            Self::One(_) => Of { name: IS_INITIAL_EVENT, value: number(1) },
        }
    }

    /// Converts an item that was read to the current layout.
    pub(crate) fn read(&self, mut item: Item) -> Item {
        let Self::One(store) = self else { return item };
        if let Some(AttributeValue::S(id)) = item.get_mut(AGGREGATE_ID) {
            *id = format!("{store}#{id}");
        }
        if item.remove(IS_INITIAL_EVENT).is_some() {
            item.insert(EVENT_STORE_ID.to_owned(), text(store));
        }
        item
    }

    /// Converts the item of an event of this aggregate to the table's layout.
    pub(crate) fn written(&self, key: &AggregateKey, mut item: Item) -> Item {
        if let Self::One(_) = self {
            item.insert(AGGREGATE_ID.to_owned(), self.partition(key));
            if item.remove(EVENT_STORE_ID).is_some() {
                item.insert(IS_INITIAL_EVENT.to_owned(), number(1));
            }
        }
        item
    }
}
