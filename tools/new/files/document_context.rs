//! The context __name__, on the document log. Each append stores the state as a snapshot.

mod events;

use ringfence::prelude::*;
use ringfence_document_log::{AccessStrategy, Document, Documents, Snapshot};

pub use events::*;

ringfence::context! {
    /// The context.
    pub __Context__, "__name__" on Documents<__Context__State>;
}

/// What the events of a document amount to.
#[ringfence::value]
#[derive(Clone, Debug, Default, PartialEq)]
#[serde(default)]
pub struct __Context__State {}

/// What it is folded from.
#[derive(Reads)]
pub enum __Events__ {}

impl State for __Context__State {
    type Reads = __Events__;

    fn evolve(self, event: __Events__) -> Self {
        match event {}
    }
}

impl Document for __Context__State {
    const ACCESS: AccessStrategy<Self> = AccessStrategy::Snapshot(Snapshot::named("__Context__Snapshot"));
}
