//! The context __name__, on the aggregate log.

mod events;

use ringfence_aggregate_log::Aggregates;

pub use events::*;

ringfence::context! {
    /// The context.
    pub __Context__, "__name__" on Aggregates;
}
