//! A handler of the events of lanes: a reactor, or an ordered automation.

use std::borrow::Cow;
use std::error::Error;
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::LocalBoxFuture;
use ringfence_core::{BoundaryId, CatalogError, Catalogs, Context, Reads, SequencedEvent, Vault};
use ringfence_feed::Wants;

use crate::{Delivery, Failed, InDoubt, Reactor, Starts};

/// A handler of the events of lanes, without its types.
pub trait Handler {
    /// The name of the reader of the index, with which its items begin.
    fn name(&self) -> &'static str;
    /// Whether it handles an event.
    fn handles(&self, event: &SequencedEvent) -> bool;
    /// Says which events it may handle, before they are read.
    fn wants(&self) -> Wants {
        Arc::new(|_| true)
    }
    /// The lane of an event.
    fn lane(&self, event: &SequencedEvent) -> BoundaryId;
    /// The event with which it begins.
    fn starts(&self) -> Starts;
    /// With [`Starts::Now`] it also handles the events of this time before its start.
    fn overlap(&self) -> Duration {
        Duration::ZERO
    }
    /// How an effect that may have happened is handled.
    fn in_doubt(&self) -> InDoubt;
    /// Whether receipts are kept. A handler that recognizes repeats needs none.
    fn keeps_receipts(&self) -> bool;
    /// How many effects an opened event has.
    ///
    /// # Errors
    /// The event can't be read.
    fn plan(&self, event: &SequencedEvent) -> Result<usize, Failed>;
    /// The event with the personal data open that it reads.
    ///
    /// # Errors
    /// The keys can't be had.
    fn opened<'a>(
        &'a self,
        event: &'a SequencedEvent,
    ) -> LocalBoxFuture<'a, Result<Cow<'a, SequencedEvent>, Failed>> {
        ready(Ok(Cow::Borrowed(event))).boxed_local()
    }
    /// Carries out an effect. Several lanes have one under way.
    fn carry_out<'a>(&'a self, delivery: Delivery<'a>) -> LocalBoxFuture<'a, Result<(), Failed>>;
}

/// A reactor as a handler.
pub struct Outside<R> {
    reactor: R,
    /// The catalogs that upcast its events.
    catalogs: Catalogs,
    /// Opens the personal data that it reads.
    vault: Option<Arc<dyn Vault>>,
}

impl<R: Reactor> Outside<R> {
    /// The reactor.
    ///
    /// # Errors
    /// Its context contradicts itself.
    pub fn new(reactor: R) -> Result<Self, CatalogError> {
        Ok(Self { reactor, catalogs: Catalogs(vec![R::Context::catalog()?]), vault: None })
    }

    /// The reactor with a vault.
    #[must_use]
    pub fn with_vault(self, vault: Option<Arc<dyn Vault>>) -> Self {
        Self { vault, ..self }
    }

    /// The effects of an opened event.
    fn effects(&self, event: &SequencedEvent) -> Result<Vec<R::Effect>, Failed> {
        // A newer program has written it, or this one has a mistake: the next deploy reads it.
        let unreadable = |error: &(dyn Error + 'static)| Failed::for_now(error);
        let event = self.catalogs.current(event).map_err(|error| unreadable(&error))?;
        let event = R::Reads::decode(&event).map_err(|error| unreadable(&error))?;
        Ok(R::plan(&event))
    }
}

impl<R: Reactor> Handler for Outside<R> {
    fn name(&self) -> &'static str {
        R::NAME
    }

    fn handles(&self, event: &SequencedEvent) -> bool {
        R::reads(event)
    }

    fn wants(&self) -> Wants {
        Arc::new(|it| R::Reads::TYPES.contains(&&*it.event_type))
    }

    fn lane(&self, event: &SequencedEvent) -> BoundaryId {
        R::LANE.of(event)
    }

    fn starts(&self) -> Starts {
        R::STARTS
    }

    fn in_doubt(&self) -> InDoubt {
        R::IN_DOUBT
    }

    fn keeps_receipts(&self) -> bool {
        true
    }

    fn plan(&self, event: &SequencedEvent) -> Result<usize, Failed> {
        self.effects(event).map(|effects| effects.len())
    }

    fn opened<'a>(
        &'a self,
        event: &'a SequencedEvent,
    ) -> LocalBoxFuture<'a, Result<Cow<'a, SequencedEvent>, Failed>> {
        async move {
            let mut event = Cow::Borrowed(event);
            if let Some(vault) = &self.vault
                && R::Reads::PERSONAL.contains(&&*event.event_type)
            {
                let opened = vault.open(vec![&mut event.to_mut().data]).await;
                opened.map_err(|error| Failed::for_now(&error))?;
            }
            Ok(event)
        }
        .boxed_local()
    }

    fn carry_out<'a>(&'a self, delivery: Delivery<'a>) -> LocalBoxFuture<'a, Result<(), Failed>> {
        async move {
            let event = self.opened(delivery.event()).await?;
            match self.effects(&event)?.get(delivery.number()) {
                Some(effect) => self.reactor.run(effect, &delivery).await,
                None => Ok(()),
            }
        }
        .boxed_local()
    }
}
