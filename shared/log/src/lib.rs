//! What every log is to the code that is the same on all of them: functions, the lists of a stack, its checks, and the
//! command line.
//!
//! [`Log`] is implemented once for each log, by the name that a context has for it. What a function does not call is not
//! in its binary: of the other logs it has nothing, and of its own log no rehearsal and no check.
#![warn(missing_docs)] // public items say what they are, in which unit, and how they fail

mod documents;
mod events;
mod kept;
mod log;
mod rehearsal;
mod shape;
mod table;

pub use kept::KeptState;
pub use log::{BoxError, Log};
pub use rehearsal::{ReadBoundary, ReadEvent, Rehearsed};
pub use shape::BoundaryShape;
pub use table::InTable;
