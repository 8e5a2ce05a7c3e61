//! The context __name__, on the aggregate log.

mod events;

use ringfence::prelude::*;

pub use events::*;

ringfence::context! {
    /// The context.
    pub __Context__, "__name__" on Aggregates;
}
