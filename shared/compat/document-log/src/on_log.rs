//! Slices on the document log, for code that is the same on every log.

use ringfence_core::{Envelope, HandleError, Handled, Never, NewEvent, OnLog, Slice};

use crate::{Category, Document, Load, Store, handle};

impl<C: Slice<State = D>, D: Document, S: Store> OnLog<C> for Category<D, S> {
    async fn handle(&self, command: &C, envelope: &Envelope) -> Result<Handled, HandleError> {
        Ok(handle(self, command, envelope).await?)
    }

    async fn add(&self, events: Vec<NewEvent>, envelope: &Envelope) -> Result<(), HandleError> {
        let id = events.first().map_or_else(String::new, |event| self.id(&event.tags));
        let decide = |_: &_| Ok::<_, Never>(events.clone());
        self.transact(&id, Load::Eventual, envelope, decide).await?;
        Ok(())
    }
}
