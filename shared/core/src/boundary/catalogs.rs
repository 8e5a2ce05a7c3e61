//! The catalogs of a stack, for readers of the events of all contexts: views, the command line, the console.

use std::borrow::Cow;

use crate::{Catalog, Current, CurrentError, SequencedEvent, Upcasts, model::current::current};

/// The catalogs of a stack. Contexts on logs of streams may have types of the same name, so an event is identified by
/// its context and its type.
#[derive(Clone, Debug, Default)]
pub struct Catalogs(pub Vec<Catalog>);

impl Catalogs {
    /// Does the same as [`Catalog::current`], for an event of any context.
    ///
    /// # Errors
    /// The event has a newer version, or an upcast fails.
    pub fn current<'e>(
        &self,
        event: impl Into<Cow<'e, SequencedEvent>>,
    ) -> Result<Current<'e>, CurrentError> {
        let event = event.into();
        let declares =
            |catalog: &&Catalog| catalog.context(&event.event_type) == Some(&*event.context);
        match self.0.iter().find(declares) {
            Some(catalog) => catalog.current(event),
            None => current(event, Upcasts::NONE),
        }
    }
}
