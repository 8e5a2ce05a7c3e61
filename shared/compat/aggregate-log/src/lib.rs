//! One stream of events for each aggregate, in the table layout of Castore.
//!
//! An event is one item under (`<store>#<aggregate>`, version). A push is one conditional put: it takes effect if no
//! event has its version yet. So a writer that has read up to version n and pushes n + 1 has decided on every event. A
//! push to one aggregate needs no transaction and no fence, and a push to several is one transaction.
//! [`AggregateTable`] has the operations of Castore's adapter, and [`AggregateLog`] is the event log of slices.
//!
//! docs/aggregate-log.md has the layout, the costs and the differences from the original.
//!
//! Architecture invariant: only the modules `item` and `list` name the attributes of the table, and only `layout` knows
//! both layouts.
#![warn(missing_docs)] // public items say what they are, in which unit, and how they fail

mod adapter;
mod error;
mod event;
mod event_log;
mod gaps;
mod image;
mod import;
mod item;
mod key;
mod layout;
mod limits;
mod list;
mod merge;
mod push;
mod read;
mod scan;
mod send;
mod source;
mod table;
mod verify;

/// The names of the table's attributes, and of its index.
pub mod attributes {
    pub use crate::item::{
        AGGREGATE_ID, EVENT_STORE_ID, INITIAL_EVENTS, IS_INITIAL_EVENT, METADATA, PAYLOAD, PUSH_ID,
        REST, TIMESTAMP, TYPE, VERSION,
    };
}

pub use adapter::{Aggregate, push_to_tables};
pub use error::{AggregateError, VersionConflict};
pub use event::{
    AggregateEvent, AggregatePage, ListOptions, ListedAggregate, NewAggregateEvent, Push,
    PushPlace, Range, Version, whole,
};
pub use event_log::AggregateLog;
pub use image::event_of_image;
pub use item::{DecodeError, name_of};
pub use key::{AggregateKey, KeyError};
pub use layout::{legacy_table_layout, table_layout};
pub use limits::{GROUP_BYTES_MAX, GROUP_EVENTS_MAX, VERSION_MAX};
pub use source::Aggregates;
pub use source::SOURCE;
pub use table::AggregateTable;
pub use verify::{AggregateDefect, AggregateReport};
