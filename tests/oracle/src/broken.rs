//! A log with a mistake.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use futures::stream::{BoxStream, StreamExt, TryStreamExt};
use projects::{ClaimId, EdgeStarted};
use ringfence_aws::Clock;
use ringfence_core::prelude::*;
use ringfence_core::{
    Append, Appended, BoundaryId, Change, CommandRecord, Conflict, Consistency, Envelope, EventLog,
    EventRef, LogError, Metadata, Plan, Seen, SequencedEvent, StoreError,
};

use crate::Mutant;
use crate::weather::{LATENCY_MAX_MS, Weather};

/// A log with or without a mistake.
pub(crate) struct Broken<L> {
    pub(crate) log: L,
    pub(crate) mutant: Option<Mutant>,
    pub(crate) clock: Clock,
    /// The weather of snapshots. Without it no snapshot is stored.
    pub(crate) snapshots: Option<Arc<Weather>>,
    /// The claims in commands of work, by the ids of the commands.
    pub(crate) claims: BTreeMap<String, ClaimId>,
}

impl<L> Broken<L> {
    fn is(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }
}

impl<L: EventLog> EventLog for Broken<L> {
    fn read<'a>(
        &'a self,
        plan: &'a Plan,
        consistency: Consistency,
        envelope: &'a Envelope,
    ) -> BoxStream<'a, Result<SequencedEvent, LogError>> {
        let read = self.log.read(plan, consistency, envelope);
        let command = envelope.metadata.text("commandId");
        let claim = command.and_then(|command| self.claims.get(command));
        match (self.mutant, claim) {
            (Some(Mutant::MarksUnread), _) => read
                .map_ok(|event| SequencedEvent { metadata: Metadata::default(), ..event })
                .boxed(),
            (Some(Mutant::ClaimUnchecked), Some(claim)) => read
                .map_ok(|mut event| {
                    if event.event_type == EdgeStarted::NAME {
                        event.data["claim"] = claim.to_string().into();
                    }
                    event
                })
                .boxed(),
            _ => read,
        }
    }

    fn append<'a>(&'a self, mut append: Append<'a>) -> BoxFuture<'a, Result<Appended, LogError>> {
        async move {
            for event in append.events.iter_mut().filter(|_| self.is(Mutant::EpochRestarts)) {
                if event.event_type == EdgeStarted::NAME {
                    event.data["epoch"] = 1.into();
                }
            }
            let seen = append.seen.filter(|_| !self.is(Mutant::NoCondition));
            let record = append.record.filter(|_| !self.is(Mutant::NoItem));
            // Enough for one attempt, seldom for two.
            let soon = self.clock.machine_ms() + 2 * LATENCY_MAX_MS;
            let hurried = Envelope { deadline_ms: Some(soon), ..append.envelope.clone() };
            let hurries = self.is(Mutant::DecidesAgain);
            let envelope = if hurries { &hurried } else { append.envelope };
            match self.log.append(Append { seen, record, envelope, ..append }).await {
                Err(LogError::Store(StoreError::OutcomeUnknown { .. })) if hurries => {
                    // Simulates a change that makes it read everything again.
                    let (boundary, event_type) = (BoundaryId::tagless(), "Unknown".into());
                    let change = Change::Count { boundary, event_type, seen: 0, found: 0 };
                    Err(LogError::Conflict(Conflict(vec![change])))
                }
                end => end,
            }
        }
        .boxed()
    }

    fn verify<'a>(
        &'a self,
        seen: &'a Seen,
        envelope: &'a Envelope,
    ) -> BoxFuture<'a, Result<Option<Conflict>, LogError>> {
        async move {
            let verified = self.log.verify(seen, envelope).await;
            if self.is(Mutant::NoVerify) { verified.map(|_| None) } else { verified }
        }
        .boxed()
    }

    fn recorded<'a>(
        &'a self,
        record: &'a CommandRecord,
        envelope: &'a Envelope,
    ) -> BoxFuture<'a, Result<Option<Vec<EventRef>>, LogError>> {
        async move {
            let recorded = self.log.recorded(record, envelope).await;
            if self.is(Mutant::ItemUnread) { recorded.map(|_| None) } else { recorded }
        }
        .boxed()
    }

    fn snapshot<'a>(
        &'a self,
        id: &'a str,
        envelope: &'a Envelope,
    ) -> BoxFuture<'a, Result<Option<String>, LogError>> {
        async move {
            let Some(weather) = &self.snapshots else { return Ok(None) };
            let found = self.log.snapshot(id, envelope).await?;
            found.iter().for_each(|_| weather.recalled());
            Ok(found)
        }
        .boxed()
    }

    fn keep_snapshot(&self, id: String, snapshot: String) {
        if self.snapshots.is_some() {
            self.log.keep_snapshot(id, snapshot);
        }
    }

    fn pause<'a>(&'a self, attempt: u32, envelope: &'a Envelope) -> BoxFuture<'a, bool> {
        self.log.pause(attempt, envelope)
    }
}
