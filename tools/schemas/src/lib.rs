//! What a stack has promised, and to whom: the shapes of events and commands, the locks that keep every version of them,
//! and what a change would break.
//!
//! A [`Shape`] is what JSON a type takes. A [`Lock`] is what was released of a context, as a committed file. [`present`]
//! makes the lock of the code as it is, and [`check`] says what may change, and runs every reader on what was released.
//! A [`Contract`] says to others what they can rely on: as documents of OpenAPI and AsyncAPI.
#![warn(missing_docs)] // public items say what they are, in which unit, and how they fail

#[cfg(test)]
extern crate ringfence_core as ringfence; // the derive macros name it so

mod admits;
mod asyncapi;
mod boundaries;
mod cases;
mod comparison;
mod contract;
mod declared;
mod differences;
mod document;
mod finding;
mod fold;
mod fold_words;
mod folds;
mod gate;
mod histories;
mod lock;
mod names;
mod object;
mod openapi;
mod present;
mod problems;
mod queued;
mod readers;
mod running;
mod samples;
mod shape;
mod tags;
#[cfg(test)]
mod tests;
mod variations;
mod words;

pub use admits::Mismatch;
pub use cases::unlike_their_shapes;
pub use contract::Contract;
pub use differences::{DifferenceKind, ShapeDifference};
pub use finding::{Audience, Finding};
pub use folds::changed_folds;
pub use gate::{Comparison, check, compare, forward};
pub use histories::Histories;
pub use lock::{Lock, LockError, LockedCommand, LockedFold, LockedTag, LockedType, LockedVersion};
pub use present::present;
pub use readers::{Readers, Unreadable};
pub use shape::{Member, Shape, ShapeError};
pub use tags::PayloadTags;
