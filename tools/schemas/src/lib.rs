//! The promises of a stack: the shapes of events and commands, the locks that keep every version of them, and whom a
//! change would break.
//!
//! A [`Shape`] is the JSON that a type takes. A [`Lock`] is a committed file with the released parts of a context.
//! [`present`] makes the lock of the code as it is. [`check`] decides which changes are allowed, and runs every reader
//! on released events. A [`Contract`] shows the promises to others, as documents of OpenAPI and AsyncAPI.
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
mod named;
mod names;
mod object;
mod openapi;
mod page;
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
mod written_words;

pub use admits::Mismatch;
pub use cases::unlike_their_shapes;
pub use contract::Contract;
pub use differences::{DifferenceKind, ShapeDifference};
pub use finding::{Audience, Finding};
pub use folds::changed_folds;
pub use gate::{Comparison, check, compare, forward};
pub use histories::Histories;
pub use lock::{Lock, LockError, LockedCommand, LockedFold, LockedTag, LockedType, LockedVersion};
pub use page::ApiPage;
pub use present::present;
pub use readers::{Readers, Unreadable};
pub use shape::{Member, Shape, ShapeError};
pub use tags::PayloadTags;
