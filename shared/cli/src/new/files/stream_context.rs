//! The context __name__, on the __log__ log.

mod events;

use ringfence::prelude::*;
use ringfence___log___log::{__Log__Context, __Log__s};
use ringfence_stack::{List, Members, Visitor};

pub use events::*;

/// The context.
pub struct __Context__;

impl Context for __Context__ {
    const NAME: &'static str = "__name__";
    type Log = __Log__s;
    type Event = __Events__;
}

impl __Log__Context for __Context__ {}

impl StreamContext for __Context__ {
    type State = __Context__State;

    fn evolve(state: __Context__State, event: __Events__) -> __Events__State {
        match event {}
    }
}

impl Members for __Context__ {
    fn list(_list: &mut List<impl Visitor>) {}
}
