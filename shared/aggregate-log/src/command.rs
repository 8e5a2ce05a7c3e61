//! Commands: read, decide, push; and again from the start when another writer was faster.

use ringfence::{Context, Envelope, Rejection, TopicEvent};
use ringfence_dynamo::Retry;
use serde::Serialize;

use crate::recorder::Recorder;
use crate::{AggregateError, AggregateLog, EventStore, StoredEvent};

/// One use case over aggregates of one store or of several; of one aggregate, [`Decide`] says it
/// shorter. A repeat under an idempotency key is known by the command's JSON, so equal commands have
/// equal JSON.
pub trait Command: Serialize + Sync + Sized {
    /// Name in kebab case, as of a slice.
    const NAME: &'static str;
    /// Why it may refuse.
    type Rejection: Rejection;

    /// Reads, decides and pushes. It may be called again after a conflict, so it keeps nothing of
    /// what it has read.
    fn handle<L: AggregateLog>(
        &self,
        log: &L,
        context: &Context,
    ) -> impl Future<Output = Result<(), CommandError<Self::Rejection>>> + Send;

    /// The commands that an event of the EventTopic leads to; `None` when the use case does not
    /// react to its type. An error says that the payload is not what the type promises.
    fn react(_event: &TopicEvent) -> Result<Option<Vec<Self>>, serde_json::Error> {
        Ok(None)
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
    ) -> Result<Vec<<Self::Store as EventStore>::Event>, Self::Rejection>;

    /// As [`Command::react`].
    fn react(_event: &TopicEvent) -> Result<Option<Vec<Self>>, serde_json::Error> {
        Ok(None)
    }
}

impl<D: Decide> Command for D {
    const NAME: &'static str = D::NAME;
    type Rejection = D::Rejection;

    async fn handle<L: AggregateLog>(
        &self,
        log: &L,
        context: &Context,
    ) -> Result<(), CommandError<D::Rejection>> {
        let decide = |aggregate: Option<&_>| self.decide(aggregate, context);
        D::Store::decide(log, &self.aggregate_id(), decide).await?;
        Ok(())
    }

    fn react(event: &TopicEvent) -> Result<Option<Vec<Self>>, serde_json::Error> {
        D::react(event)
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
/// idempotency key the command takes effect once in an aggregate: its events are their own record.
/// They carry the key, and what the command has read is searched for it. What it has not read of an
/// aggregate is read before the push; after a conflict, so are the events that are new. Such a command
/// pushes under [`crate::Place::After`]; anything else is refused. Refusals leave no record: a repeat is
/// decided anew.
///
/// A command pushes once; a second push is refused. What goes wrong behind a push undoes nothing, so the
/// push's events are the outcome.
pub async fn execute<C: Command>(
    log: &impl AggregateLog,
    command: &C,
    envelope: &Envelope,
    retry: Retry,
) -> Executed<C::Rejection> {
    carry_out(&Recorder::new(log, command, envelope), command, &envelope.context, retry).await
}

pub(crate) async fn carry_out<C: Command>(
    recorder: &Recorder<'_, impl AggregateLog>,
    command: &C,
    context: &Context,
    retry: Retry,
) -> Executed<C::Rejection> {
    let mut attempts = retry.start();
    loop {
        // Boxed here and before the log: the futures of all layers in one are nested deeper than the
        // compiler goes.
        let handled = Box::pin(command.handle(recorder, context)).await;
        // Whatever it has decided on: an earlier run of it is in what it has read.
        let (outcome, repeated) = match (recorder.found(), handled) {
            (Err(reused), _) => (Err(AggregateError::from(reused).into()), false),
            (Ok(Some(events)), _) => (Ok(events), true),
            (Ok(None), Ok(())) => (Ok(recorder.pushed()), false),
            // What is pushed has happened, whatever the command met afterwards.
            (Ok(None), Err(error)) if !recorder.pushed().is_empty() && !is_invalid(&error) => {
                (Ok(recorder.pushed()), false)
            }
            (Ok(None), Err(CommandError::Log(AggregateError::Conflict(_))))
                if attempts.again().await =>
            {
                continue;
            }
            (Ok(None), Err(error)) => (Err(error), false),
        };
        return Executed { outcome, attempts: attempts.made(), repeated };
    }
}

/// Whether the command asks for what no log does, which its author has to hear of.
fn is_invalid<R>(error: &CommandError<R>) -> bool {
    matches!(error, CommandError::Log(AggregateError::Invalid(_)))
}
