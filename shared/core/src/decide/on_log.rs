//! A slice on any log.

use crate::{
    Append, Catalog, Decisions, Envelope, EventLog, HandleError, Handled, NewEvent, Slice, handle,
    log::vault::blind_events,
};

/// A slice on a log: of events ([`OnEvents`]), or of documents.
pub trait OnLog<S: Slice> {
    /// Carries out one command. A rejection is an outcome too.
    ///
    /// # Errors
    /// The command is not settled.
    fn handle(
        &self,
        command: &S,
        envelope: &Envelope,
    ) -> impl Future<Output = Result<Handled, HandleError>>;

    /// Adds events in one append, without a decision: facts of a case. On a log of documents they belong to one
    /// document.
    ///
    /// # Errors
    /// They are not in the log.
    fn add(
        &self,
        events: Vec<NewEvent>,
        envelope: &Envelope,
    ) -> impl Future<Output = Result<(), HandleError>>;
}

/// A slice on a log of events.
pub struct OnEvents<S: Slice, L> {
    log: L,
    catalog: Catalog,
    decisions: Decisions<S>,
}

impl<S: Slice, L> OnEvents<S, L> {
    /// The slice on a log with the events of `catalog`. It keeps this many decisions; with 0 it keeps none.
    #[must_use]
    pub fn new(log: L, catalog: Catalog, kept: usize) -> Self {
        Self { log, catalog, decisions: Decisions::new(kept) }
    }

    /// The log.
    #[must_use]
    pub fn log(&self) -> &L {
        &self.log
    }
}

impl<S: Slice, L: EventLog> OnLog<S> for OnEvents<S, L> {
    async fn handle(&self, command: &S, envelope: &Envelope) -> Result<Handled, HandleError> {
        handle(&self.log, &self.catalog, &self.decisions, command, envelope).await
    }

    async fn add(&self, mut events: Vec<NewEvent>, envelope: &Envelope) -> Result<(), HandleError> {
        blind_events(&self.log, &self.catalog, &mut events).await?;
        let append = Append { events, seen: None, record: None, envelope };
        self.log.append(append).await?;
        Ok(())
    }
}
