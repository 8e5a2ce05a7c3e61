//! Cases on the aggregate log: [`ringfence::kit`].

use ringfence::kit::{Came, Case, CaseLog, CaseResult, Fact, InMemory};
use ringfence::{CommandContext, Envelope, EventOf, rfc3339};
use ringfence_dynamo::{Clock, Retry};
use serde_json::{Value, json};

use crate::write::by_aggregate;
use crate::{
    AggregateContext, AggregateKey, AggregateLog, AggregateSlice, Aggregates, CommandError, Draft,
    Memory, NewEvent, Place, StoredEvent, handle,
};

/// An aggregate log for cases.
pub struct OnAggregates<'l, L> {
    /// The log.
    pub log: &'l L,
    /// Its clock.
    pub clock: Clock,
}

impl<S: AggregateSlice, L: AggregateLog> CaseLog<S> for OnAggregates<'_, L> {
    fn set_clock(&self, now_ms: u64) {
        self.clock.set(now_ms);
    }

    async fn add(&self, fact: &Fact<EventOf<S>>, command: &S) -> CaseResult<()> {
        let id = fact.stream.clone().unwrap_or_else(|| command.aggregate_id());
        let key = S::Context::key(&id)?;
        let event = Draft::from(fact.event.clone()).encode()?;
        self.log.push_event(&key, Place::End, event).await?;
        Ok(())
    }

    async fn run(&self, command: &S, context: &CommandContext) -> CaseResult<Came> {
        let envelope = Envelope { context: context.clone(), ..Envelope::default() };
        match handle(self.log, command, &envelope, Retry::default()).await.outcome {
            Ok(events) => Ok(Came::accepted(events.into_iter().map(stored).collect())),
            Err(CommandError::Rejected(rejection)) => Ok(Came::refused(&rejection, Vec::new())),
            Err(CommandError::Log(error)) => Err(error.into()),
        }
    }

    fn written(&self, events: &[S::Writes], command: &S) -> CaseResult<Vec<Value>> {
        let own = S::Context::key(&command.aggregate_id())?;
        let groups = by_aggregate(events.iter().cloned(), &own)?;
        let json = |key: &AggregateKey, draft: Draft<EventOf<S>>| {
            let NewEvent { event_type, payload, metadata, timestamp_ms } = draft.encode()?;
            let timestamp = rfc3339(timestamp_ms.unwrap_or_else(|| self.clock.now_ms()));
            Ok(event_json(key, &event_type, &timestamp, payload, metadata))
        };
        let of = |(key, drafts): (AggregateKey, Vec<_>)| {
            drafts.into_iter().map(|draft| json(&key, draft)).collect::<Vec<_>>()
        };
        groups.into_iter().flat_map(of).collect()
    }
}

fn stored(event: StoredEvent) -> Value {
    let StoredEvent { key, event_type, timestamp, payload, metadata, .. } = event;
    event_json(&key, &event_type, &timestamp, payload, metadata)
}

fn event_json(
    key: &AggregateKey,
    event_type: &str,
    timestamp: &str,
    payload: Option<Value>,
    metadata: Option<Value>,
) -> Value {
    json!({
        "aggregate": key.to_string(),
        "type": event_type,
        "timestamp": timestamp,
        "payload": payload,
        "metadata": metadata,
    })
}

impl<S: AggregateSlice> InMemory<S> for Aggregates {
    async fn check(case: &Case<S>) {
        let clock = Clock::fixed(0);
        case.check(&OnAggregates { log: &Memory::new(clock.clone()), clock }).await;
    }
}
