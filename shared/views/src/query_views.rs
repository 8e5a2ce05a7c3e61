//! query-views: serves rows of the views over HTTP and by direct invoke.
//!
//! `GET /<view>/<id>` is one row, `GET /<view>` a page of rows. With the `partition` and `slot` of
//! an event, as a command's answer names them, the answer shows that event or says how far the view has
//! come.

mod answer;
mod ask;

use std::process::ExitCode;
use std::time::Duration;

use lambda_runtime::{Error, LambdaEvent, service_fn};
use ringfence_dynamo::Clock;
use ringfence_feed::Index;
use ringfence_function::{VariableNames, Variables, time_left};
use serde_json::Value;

use crate::{Definition, ViewReader};

pub use answer::{Answered, answer, failed, found, within};
pub use ask::{Ask, Asked, WAIT_DEFAULT_MS, WAIT_MAX_MS, token};

/// The time before the deadline that is left for the read after a wait, and for the answer.
const ANSWER_TIME: Duration = Duration::from_secs(1);

/// Runs query-views until Lambda ends the process.
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
    let index = Index::new(client.clone(), index);
    let reader = &ViewReader::new(client, index, table, &views);
    let clock = &Clock::system();
    lambda_runtime::run(service_fn(move |event: LambdaEvent<Value>| async move {
        let (payload, context) = event.into_parts();
        let started_ms = clock.now_ms();
        let time = time_left(&context, clock, ANSWER_TIME);
        let time = time.unwrap_or(Duration::from_millis(WAIT_MAX_MS));
        let answered = answer(reader, &payload, &context.request_id, time).await;
        let now_ms = clock.now_ms();
        let (function, duration_ms) =
            (&context.env_config.function_name, now_ms.saturating_sub(started_ms));
        println!("{}", answered.line(function, &context.request_id, now_ms, duration_ms));
        Ok::<_, Error>(answered.answer)
    }))
    .await
}
