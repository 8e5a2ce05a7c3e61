//! Commands: read, decide, push; and again from the start when another writer was faster.

use ringfence::{CommandRecord, Context, Envelope, Rejection, TopicEvent};
use ringfence_dynamo::Retry;
use serde::Serialize;

use crate::once::Reader;
use crate::{
    Aggregate, AggregateError, Decision, EventStore, GetEvents, PushEventGroup, StoredEvent,
};

/// The events of a store.
type EventOf<S> = <S as EventStore>::Event;

/// One use case. Its own aggregate is where a repeat is known; what it pushes to others, it pushes
/// in the same transaction. A use case that needs its own aggregate alone is shorter as [`Decide`].
///
/// A repeat under an idempotency key is known by the command's JSON, so equal commands have equal
/// JSON.
pub trait Command: Serialize + Sync + Sized {
    /// Name in kebab case, as of a slice.
    const NAME: &'static str;
    /// Where its own aggregate is.
    type Store: EventStore;
    /// Why it may refuse.
    type Rejection: Rejection;

    /// The id of its own aggregate, which follows from the command alone.
    fn aggregate_id(&self) -> String;

    /// Reads what it needs besides its own aggregate, and decides. It may be called again after a
    /// conflict, so it keeps nothing of what it has read.
    fn handle<L: GetEvents>(
        &self,
        own: Aggregate<Self::Store>,
        log: &L,
        context: &Context,
    ) -> impl Future<Output = Result<Decision<EventOf<Self::Store>>, CommandError<Self::Rejection>>> + Send;

    /// The commands that an event of the EventTopic leads to; `None` when the use case does not
    /// react to its type. An error says that the payload is not what the type promises.
    fn react(_event: &TopicEvent) -> Result<Option<Vec<Self>>, serde_json::Error> {
        Ok(None)
    }

    /// The thing that a command of an event is about. An event leads to one command about a thing, and
    /// that takes effect once, also when a later version of [`Command::react`] makes another command
    /// about it. Unless this says more, an event leads to one command.
    fn about(&self) -> String {
        String::new()
    }
}

/// A [`Command`] that is a decision on one aggregate.
pub trait Decide: Serialize + Sync + Sized {
    /// Name in kebab case, as of a slice.
    const NAME: &'static str;
    /// Where the aggregate is.
    type Store: EventStore;
    /// Why it may refuse.
    type Rejection: Rejection;

    /// The id of the aggregate.
    fn aggregate_id(&self) -> String;

    /// The events that follow, none when what is asked for is already so; `None` is an aggregate
    /// before its first event.
    ///
    /// # Errors
    /// The command is refused.
    fn decide(
        &self,
        aggregate: Option<&<Self::Store as EventStore>::Aggregate>,
        context: &Context,
    ) -> Result<Vec<EventOf<Self::Store>>, Self::Rejection>;

    /// As [`Command::react`].
    fn react(_event: &TopicEvent) -> Result<Option<Vec<Self>>, serde_json::Error> {
        Ok(None)
    }

    /// As [`Command::about`]: the aggregate, unless this says more.
    fn about(&self) -> String {
        self.aggregate_id()
    }
}

impl<D: Decide> Command for D {
    const NAME: &'static str = D::NAME;
    type Store = D::Store;
    type Rejection = D::Rejection;

    fn aggregate_id(&self) -> String {
        D::aggregate_id(self)
    }

    async fn handle<L: GetEvents>(
        &self,
        own: Aggregate<D::Store>,
        _: &L,
        context: &Context,
    ) -> Result<Decision<EventOf<D::Store>>, CommandError<D::Rejection>> {
        let events = self.decide(own.state.as_ref(), context);
        Ok(Decision::of(events.map_err(CommandError::Rejected)?))
    }

    fn react(event: &TopicEvent) -> Result<Option<Vec<Self>>, serde_json::Error> {
        D::react(event)
    }

    fn about(&self) -> String {
        D::about(self)
    }
}

/// Why a command did not do what it was to do.
#[derive(Debug, thiserror::Error)]
pub enum CommandError<R> {
    /// Refused by the domain.
    #[error("rejected")]
    Rejected(#[source] R),
    /// The log failed.
    #[error(transparent)]
    Log(#[from] AggregateError),
}

/// What became of a command.
#[derive(Debug)]
pub struct Executed<R> {
    /// Its events, none when what it asks for was already so, or why there are none.
    pub outcome: Result<Vec<StoredEvent>, CommandError<R>>,
    /// How often it was decided; 1 without conflicts.
    pub attempts: u32,
    /// Whether the events were there before, of an earlier command with the same key.
    pub repeated: bool,
}

/// Carries out `command`, anew after each conflict, as often and as long as `retry` says; after the
/// last attempt the conflict, which names aggregate and version, is the outcome.
///
/// Each event gets the envelope's metadata, where it has none of its own under that key. With an
/// idempotency key the command takes effect once: its events are their own record. They carry the
/// key, and what the command reads is searched for it. The key's scope is the slice and the command's
/// own aggregate: with another own aggregate it is another command, and takes effect. Refusals leave
/// no record: a repeat is decided anew.
pub async fn execute<C: Command>(
    log: &(impl GetEvents + PushEventGroup),
    command: &C,
    envelope: &Envelope,
    retry: Retry,
) -> Executed<C::Rejection> {
    let key = envelope.idempotency_key.as_deref();
    let record = key.map(|key| CommandRecord::new(C::NAME, key, command));
    let mut attempts = retry.start();
    loop {
        // Boxed here and before the log: the futures of all layers in one are nested deeper than the
        // compiler goes.
        let attempt = Box::pin(attempt(log, command, envelope, record.as_ref())).await;
        let (outcome, repeated) = match attempt {
            Err(CommandError::Log(AggregateError::Conflict(_))) if attempts.again().await => {
                continue;
            }
            Ok((events, repeated)) => (Ok(events), repeated),
            Err(error) => (Err(error), false),
        };
        return Executed { outcome, attempts: attempts.made(), repeated };
    }
}

/// The command's events, and whether they were there before.
async fn attempt<C: Command>(
    log: &(impl GetEvents + PushEventGroup),
    command: &C,
    envelope: &Envelope,
    record: Option<&CommandRecord>,
) -> Result<(Vec<StoredEvent>, bool), CommandError<C::Rejection>> {
    let id = command.aggregate_id();
    let key = C::Store::key(&id)?;
    let reader = Reader::new(log, &key, record);
    // To its end, or the command fails: a part of an earlier run's events is not its answer.
    let own = C::Store::get_aggregate(&reader, &id, None).await?;
    let read = own.version;
    let decided = Box::pin(command.handle(own, &reader, &envelope.context)).await;
    // Whatever it has decided: an earlier run of it is in what it has read.
    let found = reader.found().await?;
    if !found.is_empty() {
        return Ok((found, true));
    }
    let group = decided?.group(&key, read, &envelope.metadata, record)?;
    if group.is_empty() {
        return Ok((Vec::new(), false));
    }
    Ok((Box::pin(log.push_event_group(group)).await?, false))
}
