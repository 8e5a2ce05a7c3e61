//! The catalog of a context follows from its list.

use ringfence::{
    Aggregates, Catalog, CatalogError, Context, Dcb, Event, EventSchema, Slice, Writes,
};
use ringfence_document_log::OfDocument;

use crate::{MemberList, Members, Visitor};

/// The events of a context: those that its slices write, those that it lists besides, and those of the contexts that it
/// reads.
///
/// # Errors
/// They contradict each other.
pub fn catalog<C: Context + Members>() -> Result<Catalog, CatalogError> {
    let mut declared = declared::<C>();
    declared.others.push(Catalog::new(C::NAME, declared.schemas));
    Catalog::compose(declared.others.into_iter().collect::<Result<Vec<_>, _>>()?)
}

/// The same for a context on the aggregate log, whose events are each in one stream.
///
/// # Errors
/// They contradict each other, or a type has other tags than that of its stream.
pub fn catalog_of_streams<C: Context + Members>() -> Result<Catalog, CatalogError> {
    Catalog::of_streams(C::NAME, declared::<C>().schemas)
}

fn declared<C: Members>() -> Declared {
    let mut declared = Declared { schemas: Vec::new(), others: Vec::new() };
    MemberList::walk::<C>(&mut declared);
    declared
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
    fn dcb_slice<S: Slice<Context: Context<Log = Dcb>>>(&mut self) {
        self.add(S::Writes::SCHEMAS);
    }

    fn aggregate_slice<S: Slice<Context: Context<Log = Aggregates>>>(&mut self) {
        self.add(S::Writes::SCHEMAS);
    }

    fn document_slice<S: OfDocument>(&mut self) {
        self.add(S::Writes::SCHEMAS);
    }

    fn event<E: Event>(&mut self) {
        self.add(&[E::SCHEMA]);
    }

    fn reads<C: Context>(&mut self) {
        self.others.push(C::catalog());
    }
}
