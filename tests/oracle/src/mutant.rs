//! Ways in which a log can be wrong, or what decides on it. Each must be noticed, or the oracle sees nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use futures::stream::{BoxStream, StreamExt, TryStreamExt};
use projects::{ClaimId, EdgeStarted};
use ringfence::prelude::*;
use ringfence::{
    Append, Appended, BoundaryId, Change, CommandRecord, Conflict, Consistency, Envelope, EventLog,
    EventRef, LogError, Metadata, Plan, Seen, SequencedEvent, StoreError,
};
use ringfence_dynamo::Clock;
use ringfence_dynamo::wire::{Edit, Fault};
use serde_json::Value;

use crate::weather::{LATENCY_MAX_MS, Weather};

/// One mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// Appends without any condition on what was read.
    NoCondition,
    /// Conditions on what was seen, and on nothing where nothing was seen.
    EmptyReadUnchecked,
    /// Conditions on the slots and fences that it writes, and not on those that it only read.
    ReadOnlyUnchecked,
    /// Refuses and does nothing without looking at what it has seen.
    NoVerify,
    /// Decides again after a lost answer instead of sending again.
    DecidesAgain,
    /// Appends without an item of the command.
    NoItem,
    /// Refuses a command without looking for its item.
    ItemUnread,
    /// Takes no notice of the keys in events.
    MarksUnread,
    /// Appends wherever the heads of the fences are.
    NoHeadGuard,
    /// Takes the claim that a command of work names for the one that holds the edge.
    ClaimUnchecked,
    /// Gives every claim of an edge the epoch 1.
    EpochRestarts,
}

impl Mutant {
    /// Every one.
    pub const ALL: [Self; 11] = [
        Self::NoCondition,
        Self::EmptyReadUnchecked,
        Self::ReadOnlyUnchecked,
        Self::NoVerify,
        Self::DecidesAgain,
        Self::NoItem,
        Self::ItemUnread,
        Self::MarksUnread,
        Self::NoHeadGuard,
        Self::ClaimUnchecked,
        Self::EpochRestarts,
    ];

    /// What it does to a transaction on its way.
    pub(crate) fn fault(self) -> Option<Fault> {
        let (action, loosened): (_, fn(&str) -> bool) = match self {
            Self::EmptyReadUnchecked => ("Update", |term| term.starts_with("attribute_not_exists")),
            Self::ReadOnlyUnchecked => ("ConditionCheck", |_| true),
            Self::NoHeadGuard => ("Update", |term| term.contains("#head")),
            _ => return None,
        };
        Some(Fault::Request(Edit::new(move |request| {
            for item in request["TransactItems"].as_array_mut().into_iter().flatten() {
                let condition = item.pointer_mut(&format!("/{action}/ConditionExpression"));
                if let Some(Value::String(condition)) = condition {
                    let terms = condition.split(" AND ");
                    let terms =
                        terms.map(|term| if loosened(term) { always(term) } else { term.into() });
                    *condition = terms.collect::<Vec<_>>().join(" AND ");
                }
            }
        })))
    }
}

/// The term, so that it always holds. DynamoDB refuses names and values that no expression has,
/// so all of them stay.
fn always(term: &str) -> String {
    let alias: String = term
        .chars()
        .skip_while(|c| *c != '#')
        .take_while(|c| *c == '#' || c.is_ascii_alphanumeric())
        .collect();
    format!("({term} OR attribute_exists({alias}) OR attribute_not_exists({alias}))")
}

/// A log with a mistake, or without.
pub(crate) struct Broken<L> {
    pub(crate) log: L,
    pub(crate) mutant: Option<Mutant>,
    pub(crate) clock: Clock,
    /// Who hears of snapshots that are read. Without it none are kept.
    pub(crate) snapshots: Option<Arc<Weather>>,
    /// The claims that commands of work name, by the ids of the commands.
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
            let soon = self.clock.now_ms() + 2 * LATENCY_MAX_MS;
            let hurried = Envelope { deadline_ms: Some(soon), ..append.envelope.clone() };
            let hurries = self.is(Mutant::DecidesAgain);
            let envelope = if hurries { &hurried } else { append.envelope };
            match self.log.append(Append { seen, record, envelope, ..append }).await {
                Err(LogError::Store(StoreError::OutcomeUnknown { .. })) if hurries => {
                    // As if something had changed that makes it read everything again.
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
