//! The catalog of a context, made from its list.

use ringfence_core::{Catalog, CatalogError, Context, Event, EventSchema, LogName, Slice, Writes};
use ringfence_log::Log;

use crate::{MemberList, Members, Visitor};

/// The events of a context: those that its slices write, its other listed events, and the events of the contexts that
/// it reads.
///
/// # Errors
/// They contradict each other, have tags that the context's log does not allow, or belong to contexts that read each
/// other.
pub fn catalog<C: Context + Members>() -> Result<Catalog, CatalogError> {
    // The catalog needs the catalogs of the contexts that it reads, so a circle would never end.
    let mut reading = Reading { path: vec![C::NAME], circle: None };
    MemberList::walk::<C>(&mut reading);
    if let Some(contexts) = reading.circle {
        return Err(CatalogError::Circle { contexts });
    }
    let mut declared = Declared { schemas: Vec::new(), others: Vec::new() };
    MemberList::walk::<C>(&mut declared);
    let own = C::Log::KIND.catalog(C::NAME, declared.schemas)?;
    // A decision on a stream reads only the events of its stream.
    if own.is_of_streams() || declared.others.is_empty() {
        return Ok(own);
    }
    declared.others.push(Ok(own));
    Catalog::compose(declared.others.into_iter().collect::<Result<Vec<_>, _>>()?)
}

/// Finds circles of contexts that read each other.
struct Reading {
    /// The contexts on the way to the present list. Each reads the next one.
    path: Vec<&'static str>,
    /// The first circle. It begins and ends with the same context.
    circle: Option<Vec<&'static str>>,
}

impl Visitor for Reading {
    fn reads<C: Context + Members>(&mut self) {
        let begin = self.path.iter().position(|name| *name == C::NAME);
        self.path.push(C::NAME);
        match begin {
            Some(begin) => {
                self.circle.get_or_insert_with(|| self.path[begin..].to_vec());
            }
            None => MemberList::walk::<C>(self),
        }
        self.path.pop();
    }
}

struct Declared {
    schemas: Vec<EventSchema>,
    others: Vec<Result<Catalog, CatalogError>>,
}

impl Declared {
    /// Adds types. Several slices may write the same one.
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

    fn reads<C: Context + Members>(&mut self) {
        self.others.push(C::catalog());
    }
}
