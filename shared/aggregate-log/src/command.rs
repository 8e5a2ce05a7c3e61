//! Commands: read, decide, push; and again from the start when another writer was faster.

use ringfence::Context;
use ringfence_dynamo::Retry;

use crate::{AggregateError, AggregateLog};

/// One use case over aggregates of one store or of several.
pub trait Command: Sync {
    /// What it answers.
    type Output: Send;
    /// Why it may refuse.
    type Rejection: std::error::Error + Send;

    /// Reads, decides and pushes. It may be called again after a conflict, so it keeps nothing of
    /// what it has read.
    fn handle<L: AggregateLog>(
        &self,
        log: &L,
        context: &Context,
    ) -> impl Future<Output = Result<Self::Output, CommandError<Self::Rejection>>> + Send;
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

/// A command that was carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Executed<T> {
    /// What it answers.
    pub output: T,
    /// How often it was decided; 1 without conflicts.
    pub attempts: u32,
}

/// Carries out `command`, anew after each conflict, as often and as long as `retry` says.
///
/// # Errors
/// The command's own; after the last attempt the conflict, which names aggregate and version.
pub async fn execute<C: Command>(
    log: &impl AggregateLog,
    command: &C,
    context: &Context,
    retry: Retry,
) -> Result<Executed<C::Output>, CommandError<C::Rejection>> {
    let mut attempts = retry.start();
    loop {
        match command.handle(log, context).await {
            Ok(output) => return Ok(Executed { output, attempts: attempts.made() }),
            Err(CommandError::Log(AggregateError::Conflict(_))) if attempts.again().await => {}
            Err(error) => return Err(error),
        }
    }
}
