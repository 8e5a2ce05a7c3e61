//! Once: a command's events are the record that it was carried out.
//!
//! What a command reads is searched for the events of an earlier run. Each push has events of the
//! command's own aggregate, which follows from the command alone. So an earlier run is found there,
//! wherever else it has pushed events. The push requires the version that was searched, so check and
//! effect are one.

use std::sync::{Mutex, MutexGuard};

use futures::stream::{BoxStream, StreamExt, TryStreamExt};
use ringfence::{CommandRecord, KeyReused};
use serde_json::Value;

use crate::{AggregateError, AggregateKey, GetEvents, Range, StoredEvent};

/// On events of other aggregates, names the command's own aggregate, where the key is used up. A command
/// of the other aggregate may have the same key.
const COMMAND_AGGREGATE: &str = "commandAggregate";

/// The marks of an event of `key`, by which a repeat of the command knows it. A mark without a value is
/// removed from the event's metadata, which may be a copy of another event's.
pub(crate) fn marks(
    record: &CommandRecord,
    own: &AggregateKey,
    key: &AggregateKey,
) -> impl Iterator<Item = (&'static str, Option<String>)> {
    let elsewhere = (key != own).then(|| own.to_string());
    let of_record = record.marks().into_iter().map(|(mark, value)| (mark, Some(value)));
    of_record.chain([(COMMAND_AGGREGATE, elsewhere)])
}

/// Whether the event is of a command whose own aggregate is `own`.
fn is_of(event: &StoredEvent, metadata: &Value, own: &AggregateKey) -> bool {
    match metadata.get(COMMAND_AGGREGATE) {
        Some(named) => *named == own.to_string(),
        None => event.key == *own,
    }
}

/// A log as one attempt of a command reads it.
pub(crate) struct Reader<'a, L> {
    log: &'a L,
    /// The command's own aggregate.
    own: &'a AggregateKey,
    /// `None` for a command without an idempotency key.
    record: Option<&'a CommandRecord>,
    found: Mutex<Found>,
}

#[derive(Default)]
struct Found {
    /// Events of an earlier run, in the order in which they were read.
    events: Vec<StoredEvent>,
    reused: Option<KeyReused>,
}

impl<'a, L> Reader<'a, L> {
    pub(crate) fn new(
        log: &'a L,
        own: &'a AggregateKey,
        record: Option<&'a CommandRecord>,
    ) -> Self {
        Self { log, own, record, found: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Found> {
        self.found.lock().expect("no code panics while it holds the lock")
    }

    fn note(&self, event: &StoredEvent) {
        let Some((record, metadata)) = self.record.zip(event.metadata.as_ref()) else { return };
        if !is_of(event, metadata, self.own) {
            return;
        }
        let mut found = self.lock();
        match record.wrote(|mark| metadata.get(mark)?.as_str()) {
            // A command may read one event twice.
            Ok(true) if !found.events.contains(event) => found.events.push(event.clone()),
            Ok(_) => {}
            Err(reused) => found.reused = Some(reused),
        }
    }
}

impl<L: GetEvents> Reader<'_, L> {
    /// The events of an earlier run as far as the command has read them, those of its own aggregate
    /// first; empty if there was no such run.
    ///
    /// # Errors
    /// The key is another command's, or a read fails.
    pub(crate) async fn found(&self) -> Result<Vec<StoredEvent>, AggregateError> {
        let is_own = |event: &StoredEvent| event.key == *self.own;
        let events = self.lock().events.clone();
        if !events.is_empty() && !events.iter().any(is_own) {
            // The earlier run was pushed after the command had read its own aggregate.
            self.get_events(self.own, Range::default()).try_for_each(async |_| Ok(())).await?;
        }
        let Found { mut events, reused } = std::mem::take(&mut *self.lock());
        events.sort_by_key(|event| !is_own(event));
        reused.map_or(Ok(events), |reused| Err(reused.into()))
    }
}

impl<L: GetEvents> GetEvents for Reader<'_, L> {
    fn get_events<'a>(
        &'a self,
        key: &'a AggregateKey,
        range: Range,
    ) -> BoxStream<'a, Result<StoredEvent, AggregateError>> {
        self.log.get_events(key, range).inspect_ok(|event| self.note(event)).boxed()
    }
}
