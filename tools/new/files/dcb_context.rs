//! The context __name__, on the DCB log.

mod events;

use ringfence::prelude::*;
use ringfence_stack::{MemberList, Members, Visitor};

pub use events::*;

/// The context.
pub struct __Context__;

impl Context for __Context__ {
    const NAME: &'static str = "__name__";
    type Log = Dcb;

    fn catalog() -> Result<Catalog, CatalogError> {
        ringfence_stack::catalog::<Self>()
    }
}

impl Members for __Context__ {
    fn list(_list: &mut MemberList<impl Visitor>) {}
}

#[test]
fn the_cases_of___snake___hold() {
    ringfence_stack::check_cases_in_memory::<__Context__>();
}
