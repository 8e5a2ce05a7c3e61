//! Slices on the aggregate log.

use std::{marker::PhantomData, process::ExitCode};

use ringfence::{Envelope, EventRef, Handled, Outcome, StoreError, TopicEvent};
use ringfence_aggregate_log::{
    AggregateError, Command, CommandError, Executed, StoredEvent, Table, execute,
};
use ringfence_dynamo::{Clock, Retry};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::config::Variables;
use crate::function::{BoxError, Function};
use crate::handler::{Explain, Handler};
use crate::problem::Problem;

/// A command on the stores of a table.
pub(crate) struct Aggregates<C> {
    table: Table,
    clock: Clock,
    command: PhantomData<fn() -> C>,
}

/// Runs the slice until Lambda ends the process. Fails at the start, with one line in the log, when
/// the configuration is incomplete.
pub fn run<C: Command + DeserializeOwned>() -> ExitCode {
    crate::start(open::<C>())
}

async fn open<C: Command + DeserializeOwned>() -> Result<Function<Aggregates<C>>, BoxError> {
    let mut variables = Variables::from_env();
    let table = variables.required("AGGREGATE_TABLE");
    let table = variables.finish(table)?;
    let clock = Clock::system();
    let client = ringfence_dynamo::client_from_env().await;
    ringfence_dynamo::open(&client).await;
    Ok(function(Table::new(client, table, clock.clone()), clock))
}

pub(crate) fn function<C: Command + DeserializeOwned>(
    table: Table,
    clock: Clock,
) -> Function<Aggregates<C>> {
    let meter = table.meter().clone();
    let handler = Aggregates { table, clock: clock.clone(), command: PhantomData };
    Function::new(handler, clock, meter)
}

impl<C: Command + DeserializeOwned> Handler for Aggregates<C> {
    const NAME: &'static str = C::NAME;
    type Command = C;
    type Place = u64;
    type Error = Unsettled;

    fn react(event: &TopicEvent) -> Result<Option<Vec<C>>, serde_json::Error> {
        C::react(event)
    }

    fn about(command: &C) -> String {
        command.about()
    }

    async fn handle(&self, command: &C, envelope: &Envelope) -> Result<Handled<u64>, Unsettled> {
        let retry = Retry::of(envelope, &self.clock);
        let log = self.table.clone().retrying(retry);
        let Executed { outcome, attempts, repeated } =
            execute(&log, command, envelope, retry).await;
        let outcome = match outcome {
            Ok(events) => Outcome::Accepted(events.into_iter().map(named).collect()),
            Err(CommandError::Rejected(rejection)) => Outcome::Rejected {
                message: rejection.to_string(),
                rejection: serde_json::to_value(&rejection).unwrap_or(Value::Null),
            },
            Err(CommandError::Log(error)) => return Err(Unsettled { error, attempts }),
        };
        Ok(Handled { outcome, attempts, repeated })
    }
}

fn named(event: StoredEvent) -> EventRef<u64> {
    let StoredEvent { key, version, event_type, .. } = event;
    EventRef { event_type, position: version.number(), partition: Some(key.to_string()) }
}

/// Why a command is not settled, and how often it was decided.
#[derive(Debug, thiserror::Error)]
#[error("not settled after {attempts} attempts")]
pub(crate) struct Unsettled {
    #[source]
    pub(crate) error: AggregateError,
    pub(crate) attempts: u32,
}

impl From<StoreError> for Unsettled {
    fn from(error: StoreError) -> Self {
        Self { attempts: error.attempts(), error: error.into() }
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
            // A command that asks for an aggregate that has to be there refuses without it.
            error @ AggregateError::NotFound(_) => {
                let code = json!({ "code": "AggregateNotFound" });
                Problem::rejected(error.to_string(), code, false)
            }
            AggregateError::Unstorable { source, .. } => {
                Problem::malformed(&source.path, &source.problem)
            }
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
}
