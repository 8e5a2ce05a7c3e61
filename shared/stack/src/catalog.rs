//! The catalog of a context follows from its list.

use ringfence::{Catalog, CatalogError, Context, Event, EventSchema, LogName, Slice, Writes};
use ringfence_logs::Log;

use crate::{MemberList, Members, Visitor};

/// The events of a context: those that its slices write, those that it lists besides, and those of the contexts that it
/// reads.
///
/// # Errors
/// They contradict each other, or have other tags than the log of the context allows.
pub fn catalog<C: Context + Members>() -> Result<Catalog, CatalogError> {
    let mut declared = Declared { schemas: Vec::new(), others: Vec::new() };
    MemberList::walk::<C>(&mut declared);
    let own = C::Log::KIND.catalog(C::NAME, declared.schemas)?;
    // A decision on a stream reads nothing else.
    if own.is_of_streams() || declared.others.is_empty() {
        return Ok(own);
    }
    declared.others.push(Ok(own));
    Catalog::compose(declared.others.into_iter().collect::<Result<Vec<_>, _>>()?)
}

struct Declared {
    schemas: Vec<EventSchema>,
    others: Vec<Result<Catalog, CatalogError>>,
}

impl Declared {
    /// Several slices may write a type.
    fn add(&mut self, schemas: &[EventSchema]) {
        for schema in schemas {
            if !self.schemas.contains(schema) {
                self.schemas.push(schema.clone());
            }
        }
    }
}

impl Visitor for Declared {
    fn slice<S: Slice<Context: Context<Log: Log<S>>>>(&mut self) {
        self.add(S::Writes::SCHEMAS);
    }

    fn event<E: Event>(&mut self) {
        self.add(&[E::SCHEMA]);
    }

    fn reads<C: Context>(&mut self) {
        self.others.push(C::catalog());
    }
}
