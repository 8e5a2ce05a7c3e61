//! Reactors: effects outside of the stack that follow from events.
//!
//! A [`Reactor`] says which effects an event has, as data, and how one is carried out. It is fed from the index, lane by
//! lane; `docs/reactors.md` says when to use one.
#![warn(missing_docs)] // public items say what they are, in which unit, and how they fail

pub mod kit;
mod reactor;

pub use reactor::{Delivery, Failed, InDoubt, Reactor, Starts};
