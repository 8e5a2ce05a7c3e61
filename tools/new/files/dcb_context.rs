//! The context __name__, on the DCB log.

mod events;

use ringfence::prelude::*;

pub use events::*;

ringfence::context! {
    /// The context.
    pub __Context__, "__name__" on Dcb;
}
