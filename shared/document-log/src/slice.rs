//! Slices on the document log, and how their commands are carried out.

use ringfence::{CommandRecord, Envelope, EventRef, Handled, Refusal, StreamSlice};
use serde::Serialize;

use crate::codec::encode;
use crate::{Category, DocumentContext, DocumentError, Load, Outcome, Store, StreamName};

/// A slice on the document log.
pub trait DocumentSlice: StreamSlice<Context: DocumentContext> {}

impl<S: StreamSlice<Context: DocumentContext>> DocumentSlice for S {}

/// Carries out `command` on the state in the category's cache, or else on the one in the store.
///
/// With an idempotency key its events are the record: if the stream has them, they are the answer and
/// nothing is decided. A command that is refused, or has nothing to change, leaves no record: a repeat is
/// decided anew.
///
/// # Errors
/// As [`Category::transact_once`].
pub async fn handle<C: DocumentSlice, S: Store>(
    category: &Category<C::Context, S>,
    command: &C,
    envelope: &Envelope,
) -> Result<Handled, DocumentError> {
    let id = command.stream_id();
    let decide = |state: &_| command.decide(state, &envelope.context);
    let transacted = match &envelope.idempotency_key {
        None => category.transact(&id, Load::Cached, envelope, decide).await,
        Some(key) => {
            let record = CommandRecord::new(C::NAME, key, command);
            category.transact_once(&id, Load::Cached, envelope, &record, decide).await
        }
    }?;
    let (stream, attempts) = (category.stream(&id)?, transacted.attempts);
    let conflicts = vec![stream.partition(); attempts.saturating_sub(1) as usize];
    let repeated = matches!(transacted.outcome, Outcome::Repeated(_));
    let events = match transacted.outcome {
        Outcome::Rejected(rejection) => {
            let outcome = ringfence::Outcome::of(Some(Refusal::of(&rejection)), Vec::new());
            return Ok(Handled { outcome, attempts, repeated, conflicts });
        }
        Outcome::Repeated(found) => {
            found.into_iter().map(|found| (found.index, found.event.event_type)).collect()
        }
        Outcome::Accepted(events) if category.access.keeps_events() => {
            let first = transacted.version - events.len() as u64;
            types(&stream, &events).map(|types| (first..).zip(types).collect::<Vec<_>>())?
        }
        // Only the state is kept.
        Outcome::Accepted(_) => Vec::new(),
    };
    let partition = stream.partition().to_string();
    let events = events.into_iter().map(|(slot, event_type)| EventRef {
        event_type,
        partition: partition.clone(),
        slot,
    });
    let outcome = ringfence::Outcome::Accepted(events.collect());
    Ok(Handled { outcome, attempts, repeated, conflicts })
}

fn types(stream: &StreamName, events: &[impl Serialize]) -> Result<Vec<String>, DocumentError> {
    let types = events.iter().map(|event| Ok(encode(event)?.0)).collect::<Result<_, _>>();
    types.map_err(|source| DocumentError::Unencodable { stream: stream.clone(), source })
}
