//! The context __name__, on the aggregate log.

mod events;

use ringfence::prelude::*;
use ringfence_aggregate_log::{AggregateContext, Aggregates};
use ringfence_stack::{List, Members, Visitor};

pub use events::*;

/// The context.
pub struct __Context__;

impl Context for __Context__ {
    const NAME: &'static str = "__name__";
    type Log = Aggregates;
    type Event = __Events__;
}

impl AggregateContext for __Context__ {}

impl StreamContext for __Context__ {
    type State = __Context__State;

    fn evolve(state: __Context__State, event: __Events__) -> __Context__State {
        match event {}
    }
}

impl Members for __Context__ {
    fn list(_list: &mut List<impl Visitor>) {}
}
