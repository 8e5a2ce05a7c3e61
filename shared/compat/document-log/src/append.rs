//! Appending: send until the outcome is known.

use futures::TryStreamExt;
use ringfence_aws::{Failure, GaveUp, Reason};
use ringfence_core::{Consistency, Envelope, LimitExceeded, Metadata, StoreError, rfc3339};
use serde_json::{Map, Value};

use crate::limits;
use crate::write::Draft;
use crate::{
    Batch, Body, Direction, DocumentError, DocumentLog, Payload, Store, StoredEvent, StreamName,
    Unfold, Write,
};

/// Metadata that names the command of an event.
const COMMAND: &str = "commandId";
/// Metadata that is stored beside the rest, under `x` and `y`.
const CORRELATION: &str = "correlationId";
const CAUSATION: &str = "causationId";

/// Events and unfolds to write onto a Tip.
#[derive(Clone, Debug)]
pub struct StreamAppend<'a> {
    /// The stream.
    pub stream: &'a StreamName,
    /// The Tip as it was read; `None` if the stream has no Tip or is assumed to have none.
    pub known: Option<&'a Batch>,
    /// Whether unfolds of other writers are conflicts too, not only events.
    pub by_etag: bool,
    /// The events, oldest first.
    pub events: Vec<Payload>,
    /// The unfolds; they replace the Tip's.
    pub unfolds: Vec<Payload>,
    /// Metadata and deadline.
    pub envelope: &'a Envelope,
}

/// The result of an append.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamAppended {
    /// It is in the stream, and this is the Tip after it.
    Written(Batch),
    /// Another writer was first. This is its Tip, if the refused write returned it.
    Conflict(Option<Batch>),
}

/// The cause of a refused write after an earlier send without an answer.
enum Whose {
    Ours,
    Theirs,
    Unclear,
}

impl<S: Store> DocumentLog<S> {
    /// Writes everything or nothing, if the stream has not changed since the read.
    ///
    /// A lost answer is not a conflict: the same write is sent again. If the second send is refused,
    /// the stream shows whether the first one is the cause.
    ///
    /// # Errors
    /// There is nothing to write, it is too large, the requests failed, or the outcome can't be
    /// known.
    pub async fn append(&self, append: StreamAppend<'_>) -> Result<StreamAppended, DocumentError> {
        self.append_at(append, self.clock.now_ms()).await
    }

    /// As [`DocumentLog::append`], with this time for events and unfolds, in milliseconds since 1970.
    pub(crate) async fn append_at(
        &self,
        append: StreamAppend<'_>,
        at_ms: u64,
    ) -> Result<StreamAppended, DocumentError> {
        let envelope = append.envelope;
        let write = self.plan(append, at_ms)?;
        self.send(write, envelope).await
    }

    /// Checks everything that [`DocumentLog::append`] checks before its first request. Sends no request.
    ///
    /// # Errors
    /// There is nothing to write, or it is too large.
    pub fn appendable(&self, append: StreamAppend<'_>) -> Result<(), DocumentError> {
        self.plan(append, 0).map(drop)
    }

    fn plan(&self, append: StreamAppend<'_>, at_ms: u64) -> Result<Write, DocumentError> {
        let StreamAppend { stream, known, by_etag, events, unfolds, envelope } = append;
        if events.is_empty() && unfolds.is_empty() {
            return Err(DocumentError::Nothing { stream: stream.clone() });
        }
        check_nesting(&events, &unfolds, envelope)?;
        let draft = Draft {
            stream,
            known,
            by_etag,
            unfolds: self.unfolds(unfolds, known, events.len(), at_ms),
            events: self.events(events, envelope, at_ms),
            etag: self.clock.uuid().to_string(),
        };
        Ok(draft.plan(&self.limits)?)
    }

    async fn send(
        &self,
        write: Write,
        envelope: &Envelope,
    ) -> Result<StreamAppended, DocumentError> {
        let send = async || self.store.write(&write).await.map_err(of_tip);
        let Err(gave_up) = self.retry(envelope).run(send).await else {
            return Ok(StreamAppended::Written(write.tip));
        };
        let GaveUp { failure: Failure::Condition(found), attempts, unknown } = gave_up else {
            return Err(gave_up.writing("appending").into());
        };
        // A Tip that can't be decoded is read again, and then is an error.
        let found = found.and_then(|found| Batch::of_item(found).ok());
        let Some(source) = unknown else { return Ok(StreamAppended::Conflict(found)) };
        match self.whose(&write, found.as_ref(), envelope).await {
            Whose::Ours => Ok(StreamAppended::Written(write.tip)),
            Whose::Theirs => Ok(StreamAppended::Conflict(found)),
            Whose::Unclear => {
                let source = Failure::Unknown { source }.into();
                Err(StoreError::OutcomeUnknown { attempts, source }.into())
            }
        }
    }

    /// Finds out whether an earlier unanswered send wrote the refused write. The Tip has the write's etag until another
    /// writer comes. After that, the events at the write's indexes show it: no other events can have these indexes.
    async fn whose(&self, write: &Write, found: Option<&Batch>, envelope: &Envelope) -> Whose {
        let new = usize::try_from(write.tip.appended).unwrap_or(usize::MAX);
        let Some(found) = found else { return Whose::Unclear };
        if found.etag == write.tip.etag {
            return Whose::Ours;
        }
        if found.version < write.tip.version {
            return Whose::Theirs;
        }
        if new == 0 {
            // The Tip does not show which unfolds it had before.
            return Whose::Unclear;
        }
        let stream = &write.tip.stream;
        let range = write.tip.version - write.tip.appended..write.tip.version;
        let read = self.read(stream, range, Direction::Forward, Consistency::Strong, envelope);
        let there = read.map_ok(|recorded| recorded.event).try_collect::<Vec<_>>().await;
        // An error of this read says nothing about the write.
        let Ok(there) = there else { return Whose::Unclear };
        match there == write.tip.events[write.tip.events.len() - new..] {
            false => Whose::Theirs,
            // Without a command's id, another command may have written equal events in the same millisecond.
            true if envelope.metadata.text(COMMAND).is_none() => Whose::Unclear,
            true => Whose::Ours,
        }
    }

    fn events(&self, events: Vec<Payload>, envelope: &Envelope, at_ms: u64) -> Vec<StoredEvent> {
        let time = rfc3339(at_ms);
        // An empty id is not stored.
        let text = |key: &str| envelope.metadata.text(key).filter(|id| !id.is_empty());
        let id = |key: &str| text(key).map(str::to_owned);
        let meta = envelope
            .metadata
            .iter()
            .filter(|(key, value)| !([CORRELATION, CAUSATION].contains(key) && value.is_string()));
        let meta: Map<_, _> = meta.map(|(key, value)| (key.to_owned(), value.clone())).collect();
        let stored = |Payload { event_type, version, data }| StoredEvent {
            time: time.clone(),
            data: self.body(data.as_ref()),
            meta: self.meta(meta.clone(), &event_type, version),
            event_type,
            correlation_id: id(CORRELATION),
            causation_id: id(CAUSATION),
        };
        events.into_iter().map(stored).collect()
    }

    fn unfolds(
        &self,
        unfolds: Vec<Payload>,
        known: Option<&Batch>,
        added: usize,
        at_ms: u64,
    ) -> Vec<Unfold> {
        let time = rfc3339(at_ms);
        let version = known.map_or(0, |known| known.version) + added as u64;
        // An unfold can be a copy of an event. Then its metadata has the version of the event's type.
        let unfold = |unfold: Payload| Unfold {
            version,
            time: time.clone(),
            data: self.body(unfold.data.as_ref()),
            meta: self.meta(Map::new(), &unfold.event_type, unfold.version),
            event_type: unfold.event_type,
        };
        unfolds.into_iter().map(unfold).collect()
    }

    /// The metadata with the version of the payload.
    fn meta(&self, mut meta: Map<String, Value>, event_type: &str, version: u32) -> Body {
        let schema = Metadata::schema(event_type, version);
        meta.extend(schema.map(|schema| (Metadata::SCHEMA.to_owned(), schema)));
        match meta.is_empty() {
            true => Body::NONE,
            false => Body::of_json(&Value::Object(meta), self.encoding),
        }
    }

    fn body(&self, data: Option<&Value>) -> Body {
        data.map_or(Body::NONE, |data| Body::of_json(data, self.encoding))
    }
}

/// Checks, before the write, that every reader can read the events and unfolds.
fn check_nesting(
    events: &[Payload],
    unfolds: &[Payload],
    envelope: &Envelope,
) -> Result<(), LimitExceeded> {
    for Payload { event_type, data, .. } in events.iter().chain(unfolds) {
        data.iter().try_for_each(|data| limits::nesting(event_type, data))?;
    }
    let mut metadata = envelope.metadata.iter();
    metadata.try_for_each(|(key, value)| limits::nesting(&format!("metadata {key}"), value))
}

/// The failure of the Tip, the last action of a transaction. If the calf is there already, the Tip's failure is the
/// cause.
fn of_tip(failure: Failure) -> Failure {
    match failure {
        Failure::Cancelled(mut reasons) => match reasons.pop() {
            Some(Reason::Condition(found)) => Failure::Condition(found),
            Some(last @ (Reason::Conflict | Reason::Throttled)) => Failure::Cancelled(vec![last]),
            last => {
                reasons.extend(last);
                Failure::Cancelled(reasons)
            }
        },
        failure => failure,
    }
}
