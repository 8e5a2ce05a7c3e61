//! Slices on the aggregate log: read, decide, push; and start again if another writer was faster.

use ringfence::{CommandRecord, Context, Envelope, Slice, StateOf, StreamSlice};
use ringfence_dynamo::Retry;

use crate::once::Reader;
use crate::write::group;
use crate::{
    AggregateContext, AggregateError, AggregateKey, GetEvents, Others, PushEventGroup, StoredEvent,
    To,
};

/// A slice on the aggregate log. A slice that decides on its own aggregate alone implements
/// [`StreamSlice`], which makes it an `AggregateSlice`. A slice that decides on several aggregates of its
/// context says here how it reads the others; what it writes to all of them is one transaction.
///
/// A repeat is known by the events of the command's own aggregate, so a command that writes anything
/// must write an event there.
pub trait AggregateSlice:
    Slice<
        Context: AggregateContext,
        Writes: Clone + Into<To<<<Self as Slice>::Context as Context>::Event>>,
    >
{
    /// The id of its own aggregate, which follows from the command alone.
    fn aggregate_id(&self) -> String;

    /// What the decision rests on: the state of its own aggregate, and what it reads of others. It may be
    /// called again after a conflict.
    ///
    /// # Errors
    /// A read fails.
    fn load<L: GetEvents>(
        &self,
        own: StateOf<Self>,
        others: &Others<'_, L, Self::Context>,
    ) -> impl Future<Output = Result<Self::State, AggregateError>> + Send;
}

impl<S: StreamSlice<Context: AggregateContext>> AggregateSlice for S {
    fn aggregate_id(&self) -> String {
        self.stream_id()
    }

    async fn load<L: GetEvents>(
        &self,
        own: StateOf<S>,
        _: &Others<'_, L, S::Context>,
    ) -> Result<S::State, AggregateError> {
        Ok(own)
    }
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum CommandError<R> {
    /// Refused by the domain.
    #[error("rejected")]
    Rejected(#[source] R),
    /// The log failed.
    #[error(transparent)]
    Log(#[from] AggregateError),
}

/// The result of a command.
#[derive(Debug)]
pub struct Executed<R> {
    /// Its events, empty if there was nothing to change; or why it failed.
    pub outcome: Result<Vec<StoredEvent>, CommandError<R>>,
    /// How often it was decided; 1 without conflicts.
    pub attempts: u32,
    /// Whether the events were there before, of an earlier command with the same key.
    pub repeated: bool,
    /// The aggregates to which others pushed while it was decided, one for each conflict.
    pub conflicts: Vec<AggregateKey>,
}

/// Carries out `command`, anew after each conflict, as often and as long as `retry` says. After the
/// last attempt the outcome is the conflict, which names aggregate and version.
///
/// Each event gets the envelope's metadata, but keeps its own where both have a key. With an
/// idempotency key the command takes effect once: its events are their own record. They carry the
/// key, and what the command reads is searched for it. The key's scope is the slice and the command's
/// own aggregate: with another own aggregate it is another command, and takes effect. Refusals leave
/// no record: a repeat is decided anew.
pub async fn handle<S: AggregateSlice>(
    log: &(impl GetEvents + PushEventGroup),
    command: &S,
    envelope: &Envelope,
    retry: Retry,
) -> Executed<S::Rejection> {
    let key = envelope.idempotency_key.as_deref();
    let record = key.map(|key| CommandRecord::new(S::NAME, key, command));
    let mut attempts = retry.start();
    let mut conflicts = Vec::new();
    loop {
        // Boxed here and before the log: unboxed, the futures of all layers nest deeper than the compiler
        // allows.
        let attempt = Box::pin(attempt(log, command, envelope, record.as_ref())).await;
        if let Err(CommandError::Log(AggregateError::Conflict(conflict))) = &attempt {
            conflicts.push(conflict.key.clone());
        }
        let (outcome, repeated) = match attempt {
            Err(CommandError::Log(AggregateError::Conflict(_))) if attempts.again().await => {
                continue;
            }
            Ok((events, repeated)) => (Ok(events), repeated),
            Err(error) => (Err(error), false),
        };
        return Executed { outcome, attempts: attempts.made(), repeated, conflicts };
    }
}

/// The command's events, and whether they were there before.
async fn attempt<S: AggregateSlice>(
    log: &(impl GetEvents + PushEventGroup),
    command: &S,
    envelope: &Envelope,
    record: Option<&CommandRecord>,
) -> Result<(Vec<StoredEvent>, bool), CommandError<S::Rejection>> {
    let id = command.aggregate_id();
    let key = S::Context::key(&id)?;
    let reader = Reader::new(log, &key, record);
    // It is read to its end, or the command fails: a part of an earlier run's events is not its answer.
    let own = S::Context::get_aggregate(&reader, &id, None).await?;
    let others = Others::new(&reader, &own);
    let state = Box::pin(command.load(own.state, &others)).await;
    let decided = match state {
        Ok(state) => command.decide(&state, &envelope.context).map_err(CommandError::Rejected),
        Err(error) => Err(error.into()),
    };
    // Whatever the command has decided, an earlier run of it shows in what it has read.
    let found = reader.found().await?;
    if !found.is_empty() {
        return Ok((found, true));
    }
    let group = group(decided?, &key, &others.versions(), &envelope.metadata, record)?;
    if group.is_empty() {
        return Ok((Vec::new(), false));
    }
    Ok((Box::pin(log.push_event_group(group)).await?, false))
}
