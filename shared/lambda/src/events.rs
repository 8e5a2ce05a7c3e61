//! Slices on the logs of events: the DCB log and the aggregate log.

use std::process::ExitCode;

use aws_sdk_dynamodb::Client;
use ringfence::{
    Aggregates, BoundaryId, Catalog, Conflict, Context, Dcb, Decisions, Envelope, EventLog,
    HandleError, Handled, LogError, PlanError, Slice, StoreError, handle,
};
use ringfence_aggregate_log::{AggregateLog, AggregateTable};
use ringfence_dcb_log::DcbLog;
use ringfence_dynamo::{Clock, Meter};
use ringfence_function::{Problem, VariableNames, Variables};

use crate::function::{BoxError, Function};
use crate::handler::{Explain, Handler};
use crate::serve::{Serve, start};

/// How many decisions a warm handler keeps, unless `DECISION_CACHE_ENTRIES` is set; with 0 it keeps none.
pub(crate) const DECISION_CACHE_ENTRIES_DEFAULT: usize = 100;

/// A slice on a log with dynamic consistency boundaries.
pub(crate) struct OnEvents<S: Slice, L> {
    log: L,
    catalog: Catalog,
    decisions: Decisions<S>,
}

/// A log of events in a table, by its name.
trait OnTable {
    /// The variable with the name of the table.
    const TABLE: &'static str;

    /// The log in the table, and what counts its requests.
    fn open(
        client: Client,
        table: String,
        catalog: Catalog,
        clock: Clock,
    ) -> (impl EventLog, Meter);
}

impl OnTable for Dcb {
    const TABLE: &'static str = "EVENT_TABLE";

    fn open(
        client: Client,
        table: String,
        catalog: Catalog,
        clock: Clock,
    ) -> (impl EventLog, Meter) {
        let log = DcbLog::new(client, table, catalog, clock);
        let meter = log.meter().clone();
        (log, meter)
    }
}

impl OnTable for Aggregates {
    const TABLE: &'static str = "AGGREGATE_TABLE";

    fn open(
        client: Client,
        table: String,
        catalog: Catalog,
        clock: Clock,
    ) -> (impl EventLog, Meter) {
        let table = AggregateTable::new(client, table, clock.clone());
        let meter = table.meter().clone();
        (AggregateLog::new(table, catalog, clock), meter)
    }
}

macro_rules! serve {
    ($($log:ident),*) => {$(
        impl<S: Slice> Serve<S> for $log {
            fn serve() -> ExitCode {
                start(open::<S, $log>())
            }

            fn variables() -> VariableNames {
                Variables::names(config::<$log>)
            }
        }
    )*};
}

serve!(Dcb, Aggregates);

/// The name of the table, and how many decisions are kept.
fn config<L: OnTable>(variables: &mut Variables) -> (String, usize) {
    let table = variables.required(L::TABLE);
    let entries = variables.optional("DECISION_CACHE_ENTRIES", DECISION_CACHE_ENTRIES_DEFAULT);
    (table, entries)
}

async fn open<S: Slice, L: OnTable>() -> Result<Function<OnEvents<S, impl EventLog>>, BoxError> {
    let (table, entries) = Variables::from_env(config::<L>)?;
    let catalog = S::Context::catalog()?;
    ringfence::check::<S>(&catalog)?;
    let clock = Clock::system();
    let client = ringfence_dynamo::client_from_env()?;
    ringfence_dynamo::open(&client).await;
    let (log, meter) = L::open(client, table, catalog.clone(), clock.clone());
    Ok(Function::new(OnEvents::new(log, catalog, entries), clock, meter))
}

impl<S: Slice, L> OnEvents<S, L> {
    pub(crate) fn new(log: L, catalog: Catalog, decision_cache_entries: usize) -> Self {
        Self { log, catalog, decisions: Decisions::new(decision_cache_entries) }
    }

    #[cfg(test)]
    pub(crate) fn log(&self) -> &L {
        &self.log
    }
}

impl<S: Slice, L: EventLog> Handler for OnEvents<S, L> {
    type Slice = S;
    type Error = HandleError;

    async fn handle(&self, command: &S, envelope: &Envelope) -> Result<Handled, HandleError> {
        handle(&self.log, &self.catalog, &self.decisions, command, envelope).await
    }
}

impl Explain for HandleError {
    fn problem(&self, request_id: &str) -> Problem {
        match self {
            Self::Plan(PlanError::EmptyValue(key)) => Problem::malformed(key, "must not be empty"),
            Self::Plan(PlanError::Boundary(error)) => Problem::malformed("tags", error),
            Self::Plan(error @ PlanError::Nothing) => Problem::malformed("tags", error),
            Self::Plan(_) | Self::Event(_) | Self::Unread { .. } | Self::Leaves { .. } => {
                Problem::internal(request_id)
            }
            Self::Log(error) => of_log(error, request_id),
        }
    }

    fn attempts(&self) -> u32 {
        match self {
            Self::Log(LogError::Store(error)) => error.attempts(),
            _ => 1,
        }
    }

    fn conflicts(&self) -> Vec<BoundaryId> {
        let Self::Log(LogError::Store(StoreError::Contention { over: Some(over), .. })) = self
        else {
            return Vec::new();
        };
        let conflict = over.downcast_ref::<Conflict>();
        conflict.into_iter().flat_map(Conflict::boundaries).cloned().collect()
    }
}

fn of_log(error: &LogError, request_id: &str) -> Problem {
    match error {
        LogError::Limit(limit) => Problem::limit(limit),
        LogError::Conflict(_) => Problem::contention(),
        LogError::Store(error) => Problem::of_store(error, request_id),
        LogError::KeyReused(error) => Problem::key_reused(error),
        LogError::Filing(error) => Problem::malformed("tags", error),
        LogError::Unstorable { field, reason } => Problem::malformed(field, reason),
        LogError::UnknownType { .. } => Problem::unknown_type(),
        LogError::Corrupt(_) | LogError::Undecodable { .. } | LogError::Nothing => {
            Problem::internal(request_id)
        }
    }
}

#[cfg(test)]
mod tests {
    use ringfence_document_log::{DocumentError, StreamName};
    use serde_json::json;

    use super::*;
    use ringfence_function::chain;

    #[test]
    fn a_value_that_can_not_be_stored_is_a_malformed_request() {
        let [field, reason] =
            ["data.rows[0]", "a field in it has an empty name"].map(str::to_owned);
        let error = HandleError::Log(LogError::Unstorable { field, reason });
        let problem = error.problem("r");
        assert_eq!((problem.status, problem.kind), (400, "malformed"));
        let errors = problem.document()["errors"].take();
        let expected =
            json!([{ "field": "data.rows[0]", "message": "a field in it has an empty name" }]);
        assert_eq!(errors, expected);
    }

    #[test]
    fn an_event_of_an_unknown_type_is_a_503_that_names_it_in_the_log_alone() {
        let name = || "RoomBooked".to_owned();
        let (event, context) = ("roomId:r1/3".to_owned(), "rooms".to_owned());
        let of_dcb =
            HandleError::from(LogError::UnknownType { event, event_type: name(), context });
        let stream = StreamName::new("rooms", "r1").expect("a name");
        let of_documents = DocumentError::UnknownType { stream, index: 2, event_type: name() };
        let answers = [
            (of_dcb.problem("r"), chain(&of_dcb)),
            (of_documents.problem("r"), chain(&of_documents)),
        ];
        for (problem, logged) in answers {
            assert_eq!((problem.status, problem.kind), (503, "unknown-type"));
            let told = problem.document().to_string();
            assert!(["deploy", "roll-back"].iter().all(|when| told.contains(when)), "{told}");
            assert!(!told.contains("RoomBooked") && !told.contains("r1"), "{told}");
            assert!(logged.contains("RoomBooked") && logged.contains("r1"), "{logged}");
        }
    }
}
