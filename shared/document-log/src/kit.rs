//! Cases on the document log: [`ringfence::kit`].

use ringfence::kit::{Came, Case, CaseLog, CaseResult, Fact, InMemory, fail};
use ringfence::{CommandContext, Envelope, EventOf};
use ringfence_dynamo::Clock;
use serde_json::{Value, json};

use crate::codec::encode;
use crate::{
    Cache, Category, DocumentContext, DocumentLog, DocumentSlice, Documents, Load, MemoryStore,
    Outcome, Store, TipLimits,
};

/// A category of streams for cases. A case names the stream of its command, and needs an empty one.
pub struct OnDocuments<'l, D: DocumentContext, S> {
    /// The category.
    pub category: &'l Category<D, S>,
    /// Stands before the ids of the case's streams, so that cases can share a store.
    pub prefix: String,
    /// The log's clock.
    pub clock: Clock,
}

impl<C: DocumentSlice, S: Store> CaseLog<C> for OnDocuments<'_, C::Context, S> {
    fn set_clock(&self, now_ms: u64) {
        self.clock.set(now_ms);
    }

    async fn add(&self, fact: &Fact<EventOf<C>>, command: &C) -> CaseResult<()> {
        let id = self.id(&fact.stream.clone().unwrap_or_else(|| command.stream_id()));
        let decide = |_: &_| Ok::<_, C::Rejection>(vec![fact.event.clone()]);
        self.category.transact(&id, Load::Eventual, &Envelope::default(), decide).await?;
        Ok(())
    }

    async fn run(&self, command: &C, context: &CommandContext) -> CaseResult<Came> {
        let id = self.id(&command.stream_id());
        let envelope = Envelope { context: context.clone(), ..Envelope::default() };
        let decide = |state: &_| command.decide(state, context);
        let decided = self.category.transact(&id, Load::Eventual, &envelope, decide).await?;
        match decided.outcome {
            Outcome::Accepted(events) => {
                Ok(Came::accepted(events.iter().map(json).collect::<Result<_, _>>()?))
            }
            Outcome::Rejected(rejection) => Ok(Came::refused(&rejection, Vec::new())),
            Outcome::Repeated(_) => unreachable!("a case has no idempotency key"),
        }
    }

    fn written(&self, events: &[C::Writes], _: &C) -> CaseResult<Vec<Value>> {
        events.iter().map(json).collect()
    }
}

impl<D: DocumentContext, S> OnDocuments<'_, D, S> {
    fn id(&self, id: &str) -> String {
        format!("{}{id}", self.prefix)
    }
}

fn json(event: &impl serde::Serialize) -> CaseResult<Value> {
    let (event_type, data) = encode(event)?;
    Ok(json!({ "type": event_type, "data": data }))
}

impl<C: DocumentSlice> InMemory<C> for Documents {
    async fn check(case: &Case<C>) {
        // A Tip of one event, so that every case reads calves too.
        let limits = TipLimits { events_max: Some(1), ..TipLimits::default() };
        let clock = Clock::fixed(0);
        let log = DocumentLog::new(MemoryStore::default(), clock.clone()).with_limits(limits);
        let category = Category::new(log, C::Context::access(), Cache::none());
        let category = category.unwrap_or_else(|error| fail(C::NAME, error));
        case.check(&OnDocuments { category: &category, prefix: String::new(), clock }).await;
    }
}
