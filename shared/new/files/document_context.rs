//! The context __name__, on the document log. Each append stores the state as a snapshot.

mod events;

use ringfence::prelude::*;
use ringfence_document_log::{Access, DocumentContext, Documents};
use ringfence_stack::{List, Members, Visitor};

pub use events::*;

/// The context.
pub struct __Context__;

impl Context for __Context__ {
    const NAME: &'static str = "__name__";
    type Log = Documents;
    type Event = __Events__;
}

impl DocumentContext for __Context__ {
    /// From its newest snapshot.
    fn access() -> Access<Self> {
        Access::Snapshot {
            is_origin: |event| matches!(event, __Events__::__Context__Snapshot(_)),
            to_snapshot: |state| __Events__::__Context__Snapshot(state.clone()),
        }
    }
}

impl StreamContext for __Context__ {
    type State = __Context__State;

    fn evolve(state: __Context__State, event: __Events__) -> __Context__State {
        match event {
            __Events__::__Context__Snapshot(snapshot) => snapshot,
        }
    }
}

impl Members for __Context__ {
    fn list(_list: &mut List<impl Visitor>) {}
}
