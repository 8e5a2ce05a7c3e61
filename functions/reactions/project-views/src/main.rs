//! Starts project-views as a Lambda on the index's stream.

use std::process::ExitCode;
use std::time::Duration;

use lambda_runtime::{Diagnostic, Error, LambdaEvent, service_fn};
use ringfence_dynamo::Clock;
use ringfence_feed::Index;
use ringfence_lambda::{Variables, time_left};
use ringfence_views::Projector;
use serde_json::Value;

/// Left of the deadline for the lag, which takes a read of the index for each view, and the answer.
const ANSWER_TIME: Duration = Duration::from_secs(5);
/// The time for a ring where the runtime sets no deadline that lies ahead.
const TIME_DEFAULT: Duration = Duration::from_secs(20);

fn main() -> ExitCode {
    ringfence_lambda::main(serve())
}

async fn serve() -> Result<(), Error> {
    let mut variables = Variables::from_env();
    let index = variables.required("INDEX_TABLE");
    let views = variables.required("VIEW_TABLE");
    let (index, view_table) = variables.finish((index, views))?;
    let client = ringfence_dynamo::client_from_env().await;
    ringfence_dynamo::open(&client).await;
    let clock = &Clock::system();
    let index = Index::new(client.clone(), index);
    let projector = &Projector::new(client, index, view_table, clock.clone());
    let views = &project_views::views();
    lambda_runtime::run(service_fn(move |event: LambdaEvent<Value>| async move {
        let time = time_left(&event.context, clock, ANSWER_TIME).unwrap_or(TIME_DEFAULT);
        let round = project_views::run(projector, views, time, clock).await;
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
