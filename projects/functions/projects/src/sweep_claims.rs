//! sweep-claims: ends the claims whose leases are over, every five minutes.
//!
//! It reads the view project-claims and sends ExpireClaim for each row that looks overdue. The decision looks again
//! at the log, so a row that is old ends no claim that goes on. A run stops before the function's time is over; the
//! rows that it has not come to are left to the next run, which finds those before them ended. Nothing is lost if it
//! never runs, because claim-edge looks at the lease itself.

use std::time::Duration;

use lambda_runtime::{Diagnostic, Error};
use ringfence::{
    Catalog, CommandContext, Decisions, Envelope, EventLog, Metadata, Outcome, handle, prelude::*,
    rfc3339,
};
use ringfence_dcb_log::DcbLog;
use ringfence_dynamo::Clock;
use ringfence_feed::Index;
use ringfence_function::{Call, Service, Variables, chain};
use ringfence_stack::Function;
use ringfence_views::{
    Content, Definition, LIST_MAX, ListPage, Listed, Shown, View, ViewError, ViewRead, ViewReader,
};
use serde_json::{Value, json};

use crate::Projects;
use crate::expire_claim::ExpireClaim;
use crate::views::Holding;
use crate::views::project_claims::ProjectClaims;

/// How long one command may take, in milliseconds, so that one that fails leaves time to the others.
const COMMAND_MS: u64 = 5_000;
/// The agent of the commands.
const AGENT: &str = "sweep";

/// The function.
pub struct SweepClaims {
    log: DcbLog,
    catalog: Catalog,
    reader: ViewReader,
    clock: Clock,
}

impl Service for SweepClaims {
    const NAME: &'static str = "sweep-claims";
    // The end of a command is in it.
    const ANSWER_TIME: Duration = Duration::from_secs(8);
    const TIME_DEFAULT: Duration = Duration::from_secs(50);
    type Of = ();
    /// The names of the tables of events, of the index and of the views.
    type Config = (String, String, String);

    fn config(variables: &mut Variables) -> (String, String, String) {
        let mut table = |name| variables.required(name);
        (table("EVENT_TABLE"), table("INDEX_TABLE"), table("VIEW_TABLE"))
    }

    async fn open((): (), (events, index, views): (String, String, String)) -> Result<Self, Error> {
        let catalog = Projects::catalog()?;
        let clock = Clock::system();
        let client = ringfence_dynamo::client_from_env()?;
        ringfence_dynamo::open(&client).await;
        let log = DcbLog::new(client.clone(), events, catalog.clone(), clock.clone());
        let index = Index::new(client.clone(), index);
        let view = Definition::of::<ProjectClaims>();
        Ok(Self { log, catalog, reader: ViewReader::new(client, index, views, &[view]), clock })
    }

    async fn answer(&self, call: Call) -> Result<Value, Diagnostic> {
        let Self { log, catalog, reader, clock } = self;
        let sweep = Sweep { log, catalog, reader, clock, run: &call.request_id };
        let started_ms = clock.now_ms();
        let swept = sweep.all(call.time).await;
        let now_ms = clock.now_ms();
        let mut line = swept.line(&call.function, now_ms);
        line["function_request_id"] = call.request_id.as_str().into();
        line["duration_ms"] = now_ms.saturating_sub(started_ms).into();
        println!("{line}");
        if swept.failures.is_empty() {
            return Ok(Value::Null);
        }
        let (error_type, error_message) = ("not-swept".to_owned(), swept.failures.join("; "));
        Err(Diagnostic { error_type, error_message })
    }
}

impl Function for SweepClaims {}

/// What a run uses.
pub struct Sweep<'a, L> {
    pub log: &'a L,
    pub catalog: &'a Catalog,
    pub reader: &'a ViewReader,
    pub clock: &'a Clock,
    /// Names the run in the events that it causes.
    pub run: &'a str,
}

/// What a run did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// How many rows it read.
    pub rows: usize,
    /// How many claims it ended.
    pub expired: usize,
    /// What it could not do, with the causes.
    pub failures: Vec<String>,
    /// Whether its time was over before the last row.
    pub unfinished: bool,
}

impl Swept {
    /// The line of the log.
    fn line(&self, function: &str, now_ms: u64) -> Value {
        json!({
            "timestamp": rfc3339(now_ms),
            "level": if self.failures.is_empty() { "INFO" } else { "ERROR" },
            "message": "sweep of claims",
            "function": function,
            "rows": self.rows,
            "expired": self.expired,
            "failed": self.failures.len(),
            "unfinished": self.unfinished,
            "cause": self.failures.first(),
        })
    }
}

impl<L: EventLog> Sweep<'_, L> {
    /// Ends the claims that are overdue, until this time is over.
    pub async fn all(&self, time: Duration) -> Swept {
        let time_ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let until_ms = self.clock.now_ms().saturating_add(time_ms);
        let mut swept = Swept::default();
        let mut page = ListPage { limit: LIST_MAX, ..ListPage::default() };
        loop {
            let Listed { rows, next, .. } = match self.page(&page).await {
                Ok(Some(list)) => list,
                // Its rows do not show the holders yet.
                Ok(None) => return Swept { unfinished: true, ..swept },
                Err(error) => {
                    swept.failures.push(chain(&error));
                    return swept;
                }
            };
            for Shown { id, content, .. } in rows {
                if self.clock.now_ms() >= until_ms {
                    return Swept { unfinished: true, ..swept };
                }
                swept.rows += 1;
                match self.row(&id, content).await {
                    Ok(expired) => swept.expired += usize::from(expired),
                    Err(cause) => swept.failures.push(format!("{id}: {cause}")),
                }
            }
            page.after = next;
            if page.after.is_none() {
                return swept;
            }
        }
    }

    /// Rows of the view; `None` if it is being built.
    async fn page(&self, page: &ListPage) -> Result<Option<Listed>, ViewError> {
        Ok(match self.reader.list(ProjectClaims::NAME, page, None).await? {
            ViewRead::Found(list) => Some(list),
            ViewRead::UnknownView
            | ViewRead::Building { .. }
            | ViewRead::Behind { .. }
            | ViewRead::Ahead { .. } => None,
        })
    }

    /// Ends the claim of a row if it is overdue. Returns whether it was.
    async fn row(&self, id: &str, content: Content) -> Result<bool, String> {
        // People know of parked rows from the alarm.
        let Content::Row(row) = content else { return Ok(false) };
        let holding: Holding = serde_json::from_value(row).map_err(|error| chain(&error))?;
        let now_ms = self.clock.now_ms();
        let Some(holder) = holding.overdue(now_ms) else { return Ok(false) };
        let edge = id.parse().map_err(|error| chain(&error))?;
        let agent = AGENT.parse().map_err(|error| chain(&error))?;
        let command = ExpireClaim { edge, agent, epoch: holder.epoch };
        let mut metadata = Metadata::default();
        for mark in ["commandId", "correlationId", "causationId"] {
            metadata.insert(mark, self.run).map_err(|error| chain(&error))?;
        }
        metadata.insert(Metadata::BY, SweepClaims::NAME).map_err(|error| chain(&error))?;
        let context = CommandContext { now_ms, command_id: self.run.to_owned(), principal: None };
        let deadline_ms = Some(now_ms.saturating_add(COMMAND_MS));
        let envelope = Envelope { context, metadata, deadline_ms, ..Envelope::default() };
        let handled = handle(self.log, self.catalog, &Decisions::new(0), &command, &envelope).await;
        match handled.map_err(|error| chain(&error))?.outcome {
            Outcome::Accepted(events) => Ok(!events.is_empty()),
            Outcome::Rejected { rejected, .. } => Err(rejected.message),
        }
    }
}
