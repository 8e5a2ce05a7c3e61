//! The interface of every log for the code that all logs share: functions, the lists of a stack, its checks, and the
//! command line.
//!
//! Each log implements [`Log`] and [`Sourced`] in its own crate, for its name in a context. The binary of a function
//! contains only the code that the function calls: nothing of the other logs, and no dry run or check of its own log.
#![warn(missing_docs)] // public items say what they are, in which unit, and how they fail

mod bodies;
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
pub use shape::{BoundaryShape, Dependence};
pub use source::{
    EntryError, NewEvents, OpenSource, Source, SourceFacts, SourceTable, Sourced, Sources,
    StoredEvents,
};
pub use stack::StackLogs;
pub use table::{BoxError, InTable, TipLimits};
