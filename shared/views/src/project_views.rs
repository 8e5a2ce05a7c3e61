//! One run of project-views: it folds new events into the rows of all views, and notifies the readers of lanes.
//!
//! Views that are current read the index once, from the checkpoint that they have in common; each other view reads it
//! from its own checkpoint. A view that fails does not stop the others.

mod report;
mod round;

use ringfence_core::Catalogs;
use ringfence_feed::Sources;

use crate::lanes::LaneReader;
use crate::view::Definition;

pub use report::NAME;
pub use round::{Round, run_views};

/// The views of a stack, with the catalogs of the events that they read.
pub struct Folded {
    /// The views.
    pub views: Vec<Definition>,
    /// The catalogs of all contexts.
    pub catalogs: Catalogs,
    /// Their logs, from which their events are read.
    pub sources: Sources,
    /// The readers of lanes.
    pub lanes: Vec<LaneReader>,
}
