//! project-views: folds new events into the rows of all views.
//!
//! The index's stream only notifies. Views that are current read the index once, from the checkpoint that they have in
//! common; each other view reads it from its own checkpoint. A view that fails does not stop the others. But then the
//! invocation fails as a whole, so that Lambda delivers the notification again.

mod report;
mod round;

use std::time::Duration;

use lambda_runtime::{Diagnostic, Error};
use ringfence_aws::Clock;
use ringfence_core::Catalogs;
use ringfence_feed::{Index, Sources};
use ringfence_lambda::{Call, Service, Variables};
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
    /// Their logs.
    pub sources: Sources,
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
    /// The names of the index's table and of the views' table.
    type Config = (String, String);

    fn config(_: &Folded, variables: &mut Variables) -> (String, String) {
        (variables.required("INDEX_TABLE"), variables.required("VIEW_TABLE"))
    }

    async fn open(folded: Folded, (index, table): (String, String)) -> Result<Self, Error> {
        let Folded { views, catalogs, sources } = folded;
        let (client, clock) = (ringfence_aws::client_from_env()?, Clock::system());
        ringfence_aws::open(&client, &clock).await;
        let index = Index::new(client.clone(), index, sources);
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
