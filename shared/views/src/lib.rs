//! Read models: rows folded from the index.
//!
//! A [`View`] is pure: it says which rows an event touches, and how each row changes. The [`Projector`] reads the index
//! from the view's checkpoint, folds, and writes the rows one by one and then the checkpoint. Each row says how far it
//! is folded. So every event has its effect once, even if events are repeated and several projectors run. A
//! [`ViewReader`] serves the rows, and can wait until they show an event.
//!
//! [`fold`] folds events into rows in memory, for programs that have events and no tables.
//!
//! Views that are current move together: one reading of the index and one checkpoint for all that an event does not
//! touch.
//!
//! A row that can't be written is parked: the view goes on with the others, and the row is folded again when an
//! operator asks for it. An event that can't be read is parked in the same way.
//!
//! The rows of a view belong to a generation. A rebuild folds a new one from the first event on
//! while the old one is served and kept current, and then changes over in one transaction.
//!
//! A [`Due`](ringfence_core::Due) is folded as a view is. Rows with a time are in an index of the table, from which a
//! [`DueReader`] lists the rows that are due.
//!
//! Architecture invariant: only the modules `keys`, `row`, `registry` and `due` name the attributes of the view table's
//! items; checkpoints are the feed's.
#![warn(missing_docs)] // public items say what they are, in which unit, and how they fail

#[cfg(test)]
extern crate ringfence_core as ringfence; // the derive macros name it so

mod batch;
mod due;
mod error;
mod fill;
mod fold;
mod generation;
mod keys;
pub mod kit;
mod lanes;
mod layout;
mod list;
mod members;
mod parked;
mod project;
pub mod project_views;
pub mod query_views;
mod read;
mod rebuild;
mod registry;
mod row;
mod standing;
mod together;
mod unread;
mod view;
mod warm;
mod write;

/// The names of the view table's attributes, and of its index.
pub mod attributes {
    pub use crate::due::DUE;
    pub use crate::keys::{ID, VIEW};
    pub use crate::row::{AS_OF, DUE_AT, EXPIRES_AT, PARKED, ROW};
}

pub use batch::{ACTIONS_MAX, HELD_BYTES_MAX, ROWS_MAX};
pub use due::{DUE_LATE_MS, DUE_PAGE_MAX, DueNote, DuePage, DuePlace, DueReader, DueStanding};
pub use error::ViewError;
pub use generation::Generation;
pub use lanes::{LaneReader, Notify};
pub use layout::table_layout;
pub use list::{LIST_DEFAULT, LIST_MAX, ListPage, Order, Shown};
pub use parked::Retried;
pub use project::{Projector, Ran};
pub use read::{LOOKS_MAX, Listed, ViewRead, ViewReader, WAIT_SLOTS_MAX, Wait};
pub use rebuild::Step;
pub use registry::Registered;
pub use row::{Content, ID_BYTES_MAX, Parked, ROW_BYTES_MAX};
pub use standing::ViewStanding;
pub use unread::PARKED_EVENTS_MAX;
pub use view::{Definition, RowRule, View, fold};
