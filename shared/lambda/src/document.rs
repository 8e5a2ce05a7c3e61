//! Slices on the document log.

use std::{num::NonZeroUsize, process::ExitCode};

use ringfence::{BoundaryId, Envelope, Handled, StoreError};
use ringfence_document_log::{
    Cache, Category, CategoryError, DocumentError, DocumentLog, Documents, DynamoStore, OfDocument,
    Store, StreamConflict, handle,
};
use ringfence_dynamo::{Clock, Meter};
use ringfence_function::{Problem, VariableNames, Variables};

use crate::events::DECISION_CACHE_ENTRIES_DEFAULT;
use crate::function::{BoxError, Function};
use crate::handler::{Explain, Handler};
use crate::serve::{Serve, start};

/// A slice on the streams of its category.
pub(crate) struct OnDocuments<S: OfDocument, T> {
    category: Category<S::State, T>,
}

impl<S: OfDocument> Serve<S> for Documents<S::State> {
    fn serve() -> ExitCode {
        start(open::<S>())
    }

    fn variables() -> VariableNames {
        Variables::names(config)
    }
}

/// The name of the table, and how many documents are kept.
fn config(variables: &mut Variables) -> (String, usize) {
    let table = variables.required("DOCUMENT_TABLE");
    let entries = variables.optional("DECISION_CACHE_ENTRIES", DECISION_CACHE_ENTRIES_DEFAULT);
    (table, entries)
}

async fn open<S: OfDocument>() -> Result<Function<OnDocuments<S, DynamoStore>>, BoxError> {
    let (table, entries) = Variables::from_env(config)?;
    let client = ringfence_dynamo::client_from_env()?;
    ringfence_dynamo::open(&client).await;
    let store = DynamoStore::new(client, table);
    let meter = store.meter().clone();
    Ok(function(store, Clock::system(), meter, entries)?)
}

fn function<S: OfDocument, T: Store>(
    store: T,
    clock: Clock,
    meter: Meter,
    cache_entries: usize,
) -> Result<Function<OnDocuments<S, T>>, CategoryError> {
    let log = DocumentLog::new(store, clock.clone());
    let cache = NonZeroUsize::new(cache_entries).map_or_else(Cache::none, Cache::of);
    let category = Category::of::<S>(log, cache)?;
    Ok(Function::new(OnDocuments { category }, clock, meter))
}

impl<S: OfDocument, T: Store> Handler for OnDocuments<S, T> {
    type Slice = S;
    type Error = DocumentError;

    async fn handle(&self, command: &S, envelope: &Envelope) -> Result<Handled, DocumentError> {
        handle(&self.category, command, envelope).await
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
            Self::UnknownType { .. } => Problem::unknown_type(),
            Self::Nothing { .. }
            | Self::Unencodable { .. }
            | Self::Undeclared { .. }
            | Self::OtherStream { .. }
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

    fn conflicts(&self) -> Vec<BoundaryId> {
        let Self::Store(StoreError::Contention { over: Some(over), .. }) = self else {
            return Vec::new();
        };
        let conflict = over.downcast_ref::<StreamConflict>();
        conflict.map(|conflict| conflict.stream.partition()).into_iter().collect()
    }
}

#[cfg(test)]
mod tests;
