//! Slices on the aggregate log.

use std::{marker::PhantomData, process::ExitCode};

use ringfence::{BoundaryId, Envelope, EventRef, Handled, Outcome, Refusal, StoreError};
use ringfence_aggregate_log::{
    AggregateError, AggregateKey, AggregateSlice, Aggregates, CommandError, Executed, Table, handle,
};
use ringfence_dynamo::{Clock, Retry};
use ringfence_function::{Problem, VariableNames, Variables};
use serde_json::json;

use crate::function::{BoxError, Function};
use crate::handler::{Explain, Handler};
use crate::serve::{Serve, start};

/// A slice on the aggregates of a table.
pub(crate) struct OnAggregates<S> {
    table: Table,
    clock: Clock,
    slice: PhantomData<fn() -> S>,
}

impl<S: AggregateSlice> Serve<S> for Aggregates {
    fn serve() -> ExitCode {
        start(open::<S>())
    }

    fn variables() -> VariableNames {
        Variables::names(config)
    }
}

/// The name of the table.
fn config(variables: &mut Variables) -> String {
    variables.required("AGGREGATE_TABLE")
}

async fn open<S: AggregateSlice>() -> Result<Function<OnAggregates<S>>, BoxError> {
    let table = Variables::from_env(config)?;
    let clock = Clock::system();
    let client = ringfence_dynamo::client_from_env()?;
    ringfence_dynamo::open(&client).await;
    Ok(function(Table::new(client, table, clock.clone()), clock))
}

pub(crate) fn function<S: AggregateSlice>(table: Table, clock: Clock) -> Function<OnAggregates<S>> {
    let meter = table.meter().clone();
    let handler = OnAggregates { table, clock: clock.clone(), slice: PhantomData };
    Function::new(handler, clock, meter)
}

impl<S: AggregateSlice> Handler for OnAggregates<S> {
    type Slice = S;
    type Error = Unsettled;

    async fn handle(&self, command: &S, envelope: &Envelope) -> Result<Handled, Unsettled> {
        let retry = Retry::of(envelope, &self.clock);
        let log = self.table.clone().retrying(retry);
        let Executed { outcome, attempts, repeated, conflicts } =
            handle(&log, command, envelope, retry).await;
        let conflicts = conflicts.iter().map(partition).collect();
        let outcome = match outcome {
            Ok(events) => Outcome::Accepted(events.iter().map(EventRef::from).collect()),
            Err(CommandError::Rejected(rejection)) => {
                Outcome::of(Some(Refusal::of(&rejection)), Vec::new())
            }
            Err(CommandError::Log(error)) => return Err(Unsettled { error, attempts, conflicts }),
        };
        Ok(Handled { outcome, attempts, repeated, conflicts })
    }
}

fn partition(key: &AggregateKey) -> BoundaryId {
    BoundaryId::stored(key.to_string())
}

/// Why a command was not carried out, and how often it was decided.
#[derive(Debug, thiserror::Error)]
#[error("not carried out after {attempts} attempts")]
pub(crate) struct Unsettled {
    #[source]
    pub(crate) error: AggregateError,
    pub(crate) attempts: u32,
    pub(crate) conflicts: Vec<BoundaryId>,
}

impl From<StoreError> for Unsettled {
    fn from(error: StoreError) -> Self {
        Self { attempts: error.attempts(), error: error.into(), conflicts: Vec::new() }
    }
}

impl Explain for Unsettled {
    fn problem(&self, request_id: &str) -> Problem {
        match &self.error {
            AggregateError::Conflict(_) => Problem::contention(),
            AggregateError::Limit(limit) => Problem::limit(limit),
            AggregateError::Key(error) => Problem::malformed("aggregateId", error),
            AggregateError::KeyReused(error) => Problem::key_reused(error),
            AggregateError::Store(error) => Problem::of_store(error, request_id),
            // A command that needs an existing aggregate is refused without it.
            error @ AggregateError::NotFound(_) => {
                let rejection = json!({ "code": "AggregateNotFound" });
                Problem::rejected(Refusal { message: error.to_string(), rejection })
            }
            AggregateError::Unstorable { source, .. } => {
                Problem::malformed(&source.path, &source.problem)
            }
            AggregateError::UnknownType { .. } => Problem::unknown_type(),
            AggregateError::Gap { .. }
            | AggregateError::Invalid(_)
            | AggregateError::Undecodable { .. } => Problem::internal(request_id),
        }
    }

    fn attempts(&self) -> u32 {
        match &self.error {
            AggregateError::Store(error) => error.attempts(),
            _ => self.attempts,
        }
    }

    fn conflicts(&self) -> Vec<BoundaryId> {
        self.conflicts.clone()
    }
}
