//! project-views: folds new events into the rows of all views.
//!
//! The index's stream is a doorbell: whatever it brings, each view reads the index from its own
//! checkpoint. A view that fails does not stop the others. But the invocation then fails as a whole, so
//! that the doorbell rings again.

mod round;

use std::process::ExitCode;
use std::time::Duration;

use lambda_runtime::{Diagnostic, Error, LambdaEvent, service_fn};
use ringfence_dynamo::Clock;
use ringfence_feed::Index;
use ringfence_function::{VariableNames, Variables, time_left};
use serde_json::Value;

use crate::{Definition, Projector};

pub use round::{Round, ring};

/// The time before the deadline that is left for the lag, which takes a read of the index for each view, and
/// for the answer.
const ANSWER_TIME: Duration = Duration::from_secs(5);
/// The time for a ring if the runtime sets no deadline or one in the past.
const TIME_DEFAULT: Duration = Duration::from_secs(20);

/// Runs project-views until Lambda ends the process.
pub fn run(views: Vec<Definition>) -> ExitCode {
    ringfence_function::main(serve(views))
}

/// The variables that it reads.
pub fn variables() -> VariableNames {
    Variables::names(config)
}

/// The names of the index's table and of the views' table.
fn config(variables: &mut Variables) -> (String, String) {
    (variables.required("INDEX_TABLE"), variables.required("VIEW_TABLE"))
}

async fn serve(views: Vec<Definition>) -> Result<(), Error> {
    let (index, table) = Variables::from_env(config)?;
    let client = ringfence_dynamo::client_from_env()?;
    ringfence_dynamo::open(&client).await;
    let clock = &Clock::system();
    let index = Index::new(client.clone(), index);
    let projector = &Projector::new(client, index, table, clock.clone());
    let views = &views;
    lambda_runtime::run(service_fn(move |event: LambdaEvent<Value>| async move {
        let time = time_left(&event.context, clock, ANSWER_TIME).unwrap_or(TIME_DEFAULT);
        let round = ring(projector, views, time, clock).await;
        for line in round.lines {
            println!("{line}");
        }
        if round.unfinished.is_empty() {
            return Ok(());
        }
        let (error_type, error_message) = ("view-behind".to_owned(), round.unfinished.join("; "));
        Err(Diagnostic { error_type, error_message })
    }))
    .await
}
