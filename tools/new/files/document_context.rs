//! The context __name__, on the document log. Each append stores the state as a snapshot.

mod events;

use ringfence::prelude::*;
use ringfence_document_log::{AccessStrategy, Document, Documents, Snapshot};
use ringfence_stack::{MemberList, Members, Visitor};
use serde::{Deserialize, Serialize};

pub use events::*;

/// The context.
pub struct __Context__;

impl Context for __Context__ {
    const NAME: &'static str = "__name__";
    type Log = Documents<__Context__State>;

    fn catalog() -> Result<Catalog, CatalogError> {
        ringfence_stack::catalog::<Self>()
    }
}

/// What the events of a document amount to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
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

impl Members for __Context__ {
    fn list(_list: &mut MemberList<impl Visitor>) {}
}

#[test]
fn the_cases_of___snake___hold() {
    ringfence_stack::check_cases_in_memory::<__Context__>();
}
