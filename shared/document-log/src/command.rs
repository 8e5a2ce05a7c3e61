//! Commands: one use case on one stream.

use ringfence::{CommandRecord, Context, Envelope, EventRef, Handled, Rejection, TopicEvent};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::codec::encode;
use crate::{Category, Decider, DocumentError, Load, Outcome, Store, StreamName};

/// A use case of the streams of one category. A repeat under an idempotency key is known by its JSON,
/// so equal commands have equal JSON.
pub trait Command: Serialize + DeserializeOwned + Send + Sync {
    /// Name in kebab case: of the Lambda, and the last part of its HTTP path.
    const NAME: &'static str;
    /// Events and state of the stream.
    type Decider: Decider;
    /// Why it is refused.
    type Rejection: Rejection;

    /// The id of the stream that it is decided on.
    fn stream_id(&self) -> String;

    /// The events that follow, none if what it asks for is already so.
    ///
    /// # Errors
    /// The domain refuses it.
    fn decide(
        &self,
        state: &<Self::Decider as Decider>::State,
        context: &Context,
    ) -> Result<Vec<<Self::Decider as Decider>::Event>, Self::Rejection>;

    /// The commands that an event of the EventTopic leads to; `None` when the use case does not
    /// react to its type.
    ///
    /// # Errors
    /// The payload is not what the type promises.
    fn react(_event: &TopicEvent) -> Result<Option<Vec<Self>>, serde_json::Error> {
        Ok(None)
    }

    /// The thing that a command of an event is about: the stream, unless this says more. An event leads
    /// to one command about a thing, and that takes effect once, also when a later version of
    /// [`Command::react`] makes another command about it.
    fn about(&self) -> String {
        self.stream_id()
    }
}

/// Settles `command` on the state that the category's cache has, else on the one in the store.
///
/// With an idempotency key its events are the record: if the stream has them, they are the answer and
/// nothing is decided. Of a refusal, and of a wish that is already so, there is no record: a repeat is
/// decided anew.
///
/// # Errors
/// As [`Category::transact_once`].
pub async fn execute<C: Command, S: Store>(
    category: &Category<C::Decider, S>,
    command: &C,
    envelope: &Envelope,
) -> Result<Handled<u64>, DocumentError> {
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
    let repeated = matches!(transacted.outcome, Outcome::Repeated(_));
    let events = match transacted.outcome {
        Outcome::Rejected(rejection) => {
            let message = rejection.to_string();
            let rejection = serde_json::to_value(&rejection).unwrap_or_default();
            let outcome = ringfence::Outcome::Rejected { message, rejection };
            return Ok(Handled { outcome, attempts, repeated });
        }
        Outcome::Repeated(found) => {
            found.into_iter().map(|found| (found.index, found.event.event_type)).collect()
        }
        Outcome::Accepted(events) if category.access.keeps_events() => {
            let first = transacted.version - events.len() as u64;
            types(&stream, &events).map(|types| (first..).zip(types).collect::<Vec<_>>())?
        }
        // The state is all there is.
        Outcome::Accepted(_) => Vec::new(),
    };
    let events = events.into_iter().map(|(position, event_type)| {
        let partition = Some(stream.partition().to_string());
        EventRef { event_type, position, partition }
    });
    let outcome = ringfence::Outcome::Accepted(events.collect());
    Ok(Handled { outcome, attempts, repeated })
}

fn types(stream: &StreamName, events: &[impl Serialize]) -> Result<Vec<String>, DocumentError> {
    let types = events.iter().map(|event| Ok(encode(event)?.0)).collect::<Result<_, _>>();
    types.map_err(|source| DocumentError::Unencodable { stream: stream.clone(), source })
}
