//! project-views: folds new events into the rows of all views.
//!
//! The index's stream only notifies. Views that are current read the index once, from the checkpoint that they have in
//! common; each other view reads it from its own checkpoint. A view that fails does not stop the others. But then the
//! invocation fails as a whole, so that Lambda delivers the notification again.

mod report;
mod round;

use std::collections::BTreeMap;
use std::time::Duration;

use lambda_runtime::{Diagnostic, Error};
use ringfence_aws::Clock;
use ringfence_core::{Catalogs, LogKind};
use ringfence_feed::{Index, Sources};
use ringfence_lambda::{Call, Service, Variables};
use ringfence_log::StackLogs;
use serde_json::Value;

use crate::project::Projector;
use crate::view::Definition;

pub use round::{Round, run_views};

/// The views of a stack, with the catalogs of the events that they read.
pub struct Folded {
    /// The views.
    pub views: Vec<Definition>,
    /// The catalogs of all contexts.
    pub catalogs: Catalogs,
    /// Their logs, from which their events are read.
    pub sources: Sources,
}

/// The names of the tables of the logs, of the index and of the views.
pub struct FoldedTables {
    logs: BTreeMap<LogKind, String>,
    index: String,
    views: String,
}

/// The function. It serves the views of the stack.
pub struct ProjectViews {
    projector: Projector,
    views: Vec<Definition>,
    clock: Clock,
}

impl Service for ProjectViews {
    const NAME: &'static str = round::NAME;
    // The lag takes a read of the index for each view that is behind.
    const ANSWER_TIME: Duration = Duration::from_secs(5);
    const TIME_DEFAULT: Duration = Duration::from_secs(20);
    type Of = Folded;
    type Config = FoldedTables;

    fn config(folded: &Folded, variables: &mut Variables) -> FoldedTables {
        FoldedTables {
            logs: variables.tables(&folded.sources),
            index: variables.required("INDEX_TABLE"),
            views: variables.required("VIEW_TABLE"),
        }
    }

    async fn open(
        folded: Folded,
        FoldedTables { logs, index, views: table }: FoldedTables,
    ) -> Result<Self, Error> {
        let Folded { views, catalogs, sources } = folded;
        let (client, clock) = (ringfence_aws::client_from_env()?, Clock::system());
        ringfence_aws::open(&client, &clock).await;
        let logs = StackLogs { client: client.clone(), clock: clock.clone(), tables: logs };
        let index = Index::new(client.clone(), index, logs.bodies(&sources));
        let projector = Projector::new(client, index, table, catalogs, clock.clone());
        Ok(Self { projector, views, clock })
    }

    async fn answer(&self, call: Call) -> Result<Value, Diagnostic> {
        let (projector, clock) = (&self.projector, &self.clock);
        let round = run_views(projector, &self.views, call.time, clock, &call.request_id).await;
        round.line.write();
        if round.unfinished.is_empty() {
            return Ok(Value::Null);
        }
        let (error_type, error_message) = ("view-behind".to_owned(), round.unfinished.join("; "));
        Err(Diagnostic { error_type, error_message })
    }
}
