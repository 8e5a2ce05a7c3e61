//! One stream of events for each aggregate, in the table layout of Castore.
//!
//! An event is one item under (`<store>#<aggregate>`, version). A push is one conditional put: it
//! takes effect if no event has its version yet. So a writer that has read up to version n and pushes n + 1
//! has decided on every event. A push needs no transaction and no fence, and concerns one
//! aggregate. [`PushEventGroup`] is for decisions on several aggregates, the DCB log for all others.
//!
//! docs/aggregate-log.md has layout, costs and what differs from the original.
//!
//! Architecture invariant: only the modules `item` and `list` name the attributes of the table.
#![warn(missing_docs)] // public items say what they are, in which unit, and how they fail

mod context;
mod error;
mod event;
mod image;
mod item;
mod key;
pub mod kit;
mod layout;
mod legacy;
mod limits;
mod list;
mod log;
mod memory;
mod once;
mod push;
mod read;
mod rehearsal;
mod scan;
mod slice;
mod table;
mod verify;
mod write;

pub use context::{Aggregate, AggregateContext, Aggregates, Draft, Recorded};
pub use error::{AggregateError, Conflict};
pub use event::{
    List, Listed, ListedAggregate, NewEvent, Place, Push, Range, StoredEvent, Version,
};
pub use image::event_of_image;
pub use item::{DecodeError, name_of};
pub use key::{AggregateKey, KeyError};
pub use layout::table_layout;
pub use legacy::{Imported, LegacyTable};
pub use limits::{GROUP_BYTES_MAX, GROUP_EVENTS_MAX, VERSION_MAX};
pub use log::{AggregateLog, GetEvents, ListAggregateIds, PushEvent, PushEventGroup};
pub use memory::Memory;
pub use rehearsal::{Rehearsal, Rehearsed};
pub use slice::{AggregateSlice, CommandError, Executed, handle};
pub use table::Table;
pub use verify::{Report, Wrong};
pub use write::{Others, To};
