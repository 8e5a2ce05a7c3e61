//! Reactors: effects outside of the stack that follow from events.
//!
//! A [`Reactor`] says which effects an event has, as data, and how one is carried out. `docs/reactors.md` says when to
//! use one. [`Lanes`] feeds reactors and ordered automations from the index, lane by lane. The module `run` argues why
//! each effect happens once, and in the order of its lane.
//!
//! Architecture invariant: only the module `item` names the attributes of a reactor's items.
#![warn(missing_docs)] // public items say what they are, in which unit, and how they fail

mod case;
mod catch_up;
mod error;
mod flow;
mod function;
mod handler;
mod item;
pub mod kit;
mod lanes;
mod parking;
mod reactor;
mod run;
mod table;
mod work;

pub use error::ReactorError;
pub use function::{ANSWER_TIME, ReactorFunction, run};
pub use handler::{Handler, Outside};
pub use item::{ParkedLane, ReactorStanding, Receipt, Unpark};
pub use lanes::{
    BATCH_EVENTS_MAX, EFFECT_TIME_MAX, Ended, Lanes, PAUSES, RanLanes, WAITING_LANES_MAX,
};
pub use reactor::{Delivery, Failed, InDoubt, Reactor, Starts};
pub use table::ReactorTable;
