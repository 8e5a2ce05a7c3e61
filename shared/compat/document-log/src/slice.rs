//! Carries out the commands of slices on the document log.

use futures::{FutureExt, TryFutureExt};
use ringfence_core::{
    CommandContext, CommandRecord, Context, Envelope, EventRef, Handled, Outcome, Reads, Rejected,
    SequencedEvent, Slice, decide, record_of, refuses,
};
use serde::de::Error as _;

use crate::cache::Loaded;
use crate::category::{Decision, Events, Settled};
use crate::check::declared;
use crate::codec::whole;
use crate::{Category, Document, DocumentError, Documents, Load, Store, StreamName, TimelineEvent};

/// Carries out `command` on the state in the category's cache, or else on the state in the store.
///
/// With an idempotency key, its events are the record: if the stream has them, they are the answer and nothing is
/// decided. A command without events leaves no record: a repeat is decided again.
///
/// # Errors
/// As [`Category::transact_once`].
pub async fn handle<C: Slice<State: Document>, S: Store>(
    category: &Category<C::State, S>,
    command: &C,
    envelope: &Envelope,
) -> Result<Handled, DocumentError> {
    let settled = settle(category, command, Load::Cached, envelope).await?;
    let (stream, attempts) = (category.stream(&category.id(&command.tags()))?, settled.attempts);
    let conflicts = vec![stream.partition(); attempts.saturating_sub(1) as usize];
    let (mut rejected, mut repeated) = (settled.rejection, false);
    let (events, written): (Vec<(u64, String)>, _) = match settled.events {
        Events::Found(found) => {
            (rejected, repeated) = (rejection_of(&stream, &found)?, true);
            let found = found.into_iter().map(|found| (found.index, found.event.event_type));
            (found.collect(), Vec::new())
        }
        // Only the state is kept.
        Events::Written(events) if !category.access.keeps_events() => (Vec::new(), events),
        Events::Written(events) => {
            let first = settled.version - events.len() as u64;
            let types = events.iter().map(|event| event.event_type.clone().into_owned());
            ((first..).zip(types).collect(), events)
        }
    };
    let partition = stream.partition().to_string();
    let events = events.into_iter().map(|(slot, event_type)| EventRef {
        event_type,
        partition: partition.clone(),
        slot,
    });
    let outcome = Outcome::of(rejected, events.collect());
    Ok(Handled { outcome, attempts, repeated, conflicts, written })
}

/// Decides and appends; once, if there is an idempotency key.
pub(crate) async fn settle<C: Slice<State: Document>, S: Store>(
    category: &Category<C::State, S>,
    command: &C,
    load: Load,
    envelope: &Envelope,
) -> Result<Settled<Rejected>, DocumentError> {
    let id = category.id(&command.tags());
    let refuses = |subject: &str| refuses(command, &envelope.context, subject);
    let record = match envelope.idempotency_key.as_deref() {
        Some(key) => Some(
            record_of(C::NAME, key, command, |subject, text| {
                let (personal, refuses) = (category.personal(), refuses(&subject));
                let made = async move { personal.fingerprint(&subject, &text, refuses).await };
                made.map_err(DocumentError::from).boxed()
            })
            .await?,
        ),
        None => None,
    };
    let decide = |loaded: &Loaded<C::State>| decision(category, command, loaded, envelope);
    let envelope = envelope.written_by(C::NAME);
    category.settle(&id, load, &envelope, record.as_ref(), decide, refuses).await
}

fn decision<C: Slice<State: Document>, S: Store>(
    category: &Category<C::State, S>,
    command: &C,
    loaded: &Loaded<C::State>,
    envelope: &Envelope,
) -> Result<Decision<Rejected>, DocumentError> {
    let now_ms = loaded.newest_ms(envelope.context.now_ms);
    let context = CommandContext { now_ms, ..envelope.context.clone() };
    let decided = decide(command, &loaded.state, &context);
    let (rejection, events) =
        decided.map_err(|error| match category.stream(&category.id(&command.tags())) {
            Ok(stream) => DocumentError::Unencodable { stream, source: error.source },
            Err(error) => error,
        })?;
    Ok(Decision { left_by: rejection.clone(), rejection, events })
}

/// The rejection that left the events, if one did.
fn rejection_of(
    stream: &StreamName,
    found: &[TimelineEvent],
) -> Result<Option<Rejected>, DocumentError> {
    let Some(TimelineEvent { index, event }) = found.first() else { return Ok(None) };
    let (stream, event_type) = (stream.clone(), event.event_type.clone());
    let meta = event.meta.json().map_err(|source| {
        let (stream, event_type) = (stream.clone(), event_type.clone());
        DocumentError::Body { stream, index: *index, event_type, source }
    })?;
    let rejected = meta.as_ref().and_then(|meta| meta.get(CommandRecord::REJECTION)?.as_str());
    let rejected = rejected.map(serde_json::from_str).transpose();
    rejected.map_err(|source| DocumentError::Undecodable {
        stream,
        index: *index,
        event_type,
        source,
    })
}

/// Decodes an event of the index or the EventTopic as the context's documents read it. `None` if their state does not
/// read the type.
///
/// # Errors
/// The context does not have the type, or the event does not have the shape of its type.
pub fn decode<C, D>(event: &SequencedEvent) -> Result<Option<D::Reads>, serde_json::Error>
where
    C: Context<Log = Documents<D>>,
    D: Document,
{
    let (catalog, key) = declared::<C, D>().map_err(serde_json::Error::custom)?;
    let event_type = event.event_type.as_str();
    if catalog.schema(event_type).is_none() {
        return Err(serde_json::Error::unknown_variant(event_type, D::Reads::TYPES));
    }
    if !D::Reads::TYPES.contains(&event_type) {
        return Ok(None);
    }
    let id = event.stream_id().unwrap_or_default();
    let event = whole(event.clone(), &key.unwrap_or_default(), &id);
    let current = catalog.current(event).map_err(serde_json::Error::custom)?;
    D::Reads::decode(&current).map(Some)
}
