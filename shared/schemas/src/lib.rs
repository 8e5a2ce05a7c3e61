//! What a stack has promised, and to whom: the shapes of events and commands, the locks that keep every version of them,
//! and what a change would break.
//!
//! A [`Shape`] is what JSON a type takes. A [`Lock`] is what was released of a context, as a committed file. [`present`]
//! makes the lock of the code as it is. A [`Contract`] says the same to others: as documents of OpenAPI and AsyncAPI.
#![warn(missing_docs)] // public items say what they are, in which unit, and how they fail

mod asyncapi;
mod contract;
mod lock;
mod openapi;
mod present;
mod probe;
mod problems;
mod samples;
mod shape;
#[cfg(test)]
mod tests;
mod words;

pub use contract::Contract;
pub use lock::{Lock, LockError, LockedCommand, LockedTag, LockedType, LockedVersion};
pub use present::present;
pub use shape::{Member, Shape, ShapeError};
