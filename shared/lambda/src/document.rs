//! Slices on the document log.

use std::{num::NonZeroUsize, process::ExitCode};

use ringfence::{Envelope, Handled, TopicEvent};
use ringfence_document_log::{
    Cache, Category, CategoryError, Command, Decider, DocumentError, DocumentLog, DynamoStore,
    Store, execute,
};
use ringfence_dynamo::{Clock, Meter};

use crate::config::Variables;
use crate::dcb::DECISION_CACHE_ENTRIES_DEFAULT;
use crate::function::{BoxError, Function};
use crate::handler::{Explain, Handler};
use crate::problem::Problem;

/// A command on the streams of its category.
pub(crate) struct Documents<C: Command, S> {
    category: Category<C::Decider, S>,
}

/// Runs the slice until Lambda ends the process. Fails at the start, with one line in the log, when
/// the configuration is incomplete.
pub fn run<C: Command>() -> ExitCode {
    crate::start(open::<C>())
}

async fn open<C: Command>() -> Result<Function<Documents<C, DynamoStore>>, BoxError> {
    let mut variables = Variables::from_env();
    let table = variables.required("DOCUMENT_TABLE");
    let entries = variables.optional("DECISION_CACHE_ENTRIES", DECISION_CACHE_ENTRIES_DEFAULT);
    let (table, entries) = variables.finish((table, entries))?;
    let client = ringfence_dynamo::client_from_env().await;
    ringfence_dynamo::open(&client).await;
    let store = DynamoStore::new(client, table);
    let meter = store.meter().clone();
    Ok(function(store, Clock::system(), meter, entries)?)
}

fn function<C: Command, S: Store>(
    store: S,
    clock: Clock,
    meter: Meter,
    cache_entries: usize,
) -> Result<Function<Documents<C, S>>, CategoryError> {
    let log = DocumentLog::new(store, clock.clone());
    let cache = NonZeroUsize::new(cache_entries).map_or_else(Cache::none, Cache::of);
    let category = Category::new(log, C::Decider::access(), cache)?;
    Ok(Function::new(Documents { category }, clock, meter))
}

impl<C: Command, S: Store> Handler for Documents<C, S> {
    const NAME: &'static str = C::NAME;
    type Command = C;
    type Place = u64;
    type Error = DocumentError;

    fn react(event: &TopicEvent) -> Result<Option<Vec<C>>, serde_json::Error> {
        C::react(event)
    }

    fn about(command: &C) -> String {
        command.about()
    }

    async fn handle(
        &self,
        command: &C,
        envelope: &Envelope,
    ) -> Result<Handled<u64>, DocumentError> {
        execute(&self.category, command, envelope).await
    }
}

impl Explain for DocumentError {
    fn problem(&self, request_id: &str) -> Problem {
        match self {
            Self::Limit(limit) => Problem::limit(limit),
            Self::Name(error) => Problem::malformed("streamId", error),
            Self::KeyReused(error) => Problem::key_reused(error),
            Self::KeyWithoutEvents { .. } => {
                Problem::malformed("Idempotency-Key (commandId)", self)
            }
            Self::Store(error) => Problem::of_store(error, request_id),
            Self::Nothing { .. }
            | Self::Unencodable { .. }
            | Self::Body { .. }
            | Self::Undecodable { .. }
            | Self::Pruned { .. }
            | Self::Hole { .. }
            | Self::NoTip { .. } => Problem::internal(request_id),
        }
    }

    fn attempts(&self) -> u32 {
        match self {
            Self::Store(error) => error.attempts(),
            _ => 1,
        }
    }
}

#[cfg(test)]
mod tests;
