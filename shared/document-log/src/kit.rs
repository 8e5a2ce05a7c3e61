//! Cases on the document log: [`ringfence::kit`].

use ringfence::kit::{Came, Case, CaseLog, CaseResult, Fact, InMemory, event_json, fail};
use ringfence::{CommandContext, Envelope};
use ringfence_dynamo::Clock;

use crate::category::Events;
use crate::check::check;
use crate::slice::settle;
use crate::{
    Cache, Category, Document, DocumentLog, Documents, Load, MemoryStore, OfDocument, Store,
    TipLimits,
};

/// A category of streams for cases, each of which needs an empty store.
pub struct OnDocuments<'l, D: Document, S> {
    /// The category.
    pub category: &'l Category<D, S>,
    /// The log's clock.
    pub clock: Clock,
}

impl<C: OfDocument, S: Store> CaseLog<C> for OnDocuments<'_, C::State, S> {
    fn set_clock(&self, now_ms: u64) {
        self.clock.set(now_ms);
    }

    async fn add(&self, fact: &Fact) -> CaseResult<()> {
        let id = self.category.id(&fact.event.tags);
        let decide = |_: &_| Ok::<_, C::Rejection>(vec![fact.event.clone()]);
        self.category.transact(&id, Load::Eventual, &Envelope::default(), decide).await?;
        Ok(())
    }

    async fn run(&self, command: &C, context: &CommandContext) -> CaseResult<Came> {
        let envelope = Envelope { context: context.clone(), ..Envelope::default() };
        let settled = settle(self.category, command, Load::Eventual, &envelope).await?;
        let events = match &settled.events {
            Events::Written(events) => events.iter().map(event_json).collect(),
            Events::Found(_) => unreachable!("a case has no idempotency key"),
        };
        let rejection = settled.rejection.map(|rejected| rejected.rejection);
        Ok(Came { rejection, events })
    }
}

impl<C: OfDocument> InMemory<C> for Documents<C::State> {
    async fn check(case: &Case<C>) {
        // A Tip of one event, so that every case reads calves too.
        let limits = TipLimits { events_max: Some(1), ..TipLimits::default() };
        let clock = Clock::fixed(0);
        let log = DocumentLog::new(MemoryStore::default(), clock.clone()).with_limits(limits);
        let category = Category::of::<C>(log, Cache::none());
        let category = category.unwrap_or_else(|error| fail(C::NAME, error));
        case.check(&OnDocuments { category: &category, clock }).await;
    }

    fn check_slice() {
        check::<C>().unwrap_or_else(|error| fail(C::NAME, error));
    }
}
