//! The catalog of a context follows from its list.

use ringfence_core::{Catalog, CatalogError, Context, Event, EventSchema, LogName, Slice, Writes};
use ringfence_log::Log;

use crate::{MemberList, Members, Visitor};

/// The events of a context: those that its slices write, those that it lists besides, and those of the contexts that it
/// reads.
///
/// # Errors
/// They contradict each other, have other tags than the log of the context allows, or are of contexts that read each
/// other.
pub fn catalog<C: Context + Members>() -> Result<Catalog, CatalogError> {
    // The catalog of a context asks for those of the contexts that it reads, so a circle would never end.
    let mut reading = Reading { path: vec![C::NAME], circle: None };
    MemberList::walk::<C>(&mut reading);
    if let Some(contexts) = reading.circle {
        return Err(CatalogError::Circle { contexts });
    }
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

/// Follows which context reads which.
struct Reading {
    /// The contexts on the way to the list that is walked; each reads the next one.
    path: Vec<&'static str>,
    /// The first circle; it begins and ends with the same context.
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

    fn reads<C: Context + Members>(&mut self) {
        self.others.push(C::catalog());
    }
}
