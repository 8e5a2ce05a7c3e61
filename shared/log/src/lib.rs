//! What every log is to the code that is the same on all of them: functions, the lists of a stack, its checks, and the
//! command line.
//!
//! Each log implements [`Log`] and [`Sourced`] in its own crate, by the name that a context has for it. What a function
//! does not call is not in its binary: of the other logs it has nothing, and of its own log no dry run and no check.
#![warn(missing_docs)] // public items say what they are, in which unit, and how they fail

mod dry_run;
mod events;
mod kept;
mod log;
pub mod news;
mod shape;
mod source;
mod stack;
mod table;

pub use dry_run::{DryRun, DryRunOn, ReadBoundary, ReadEvent};
pub use events::{LogOfEvents, by};
pub use kept::KeptState;
pub use log::Log;
pub use shape::BoundaryShape;
pub use source::{
    EntryError, NewEvents, OpenSource, Source, SourceFacts, SourceTable, Sourced, Sources,
    StoredEvents,
};
pub use stack::StackLogs;
pub use table::{BoxError, InTable, TipLimits};
