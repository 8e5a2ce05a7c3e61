//! A slice as a Lambda.
//!
//! `fn main() -> ExitCode { ringfence_lambda::run::<PlaceOrder>() }` is a whole function. It
//! answers an API Gateway HTTP API request, a direct invoke, and an EventBridge event that the
//! slice reacts to; `invocation.rs` tells them apart.

mod answer;
mod config;
mod function;
mod invocation;
mod problem;
#[cfg(feature = "reactions")]
pub mod reactions;
mod start;
mod telemetry;
#[cfg(test)]
mod tests;

use std::{error::Error, process::ExitCode};

use lambda_runtime::{LambdaEvent, service_fn};
use ringfence::Slice;
use ringfence_dcb_log::DcbLog;
use ringfence_dynamo::Clock;
use serde_json::Value;

pub use answer::http;
pub use config::{Config, ConfigError, Variables};
pub use problem::Problem;
pub use start::{main, time_left};
pub use telemetry::{chain, init_logs};

use crate::function::{Function, Invoked};

/// Runs the slice until Lambda ends the process. Fails at the start, with one line in the log that
/// names everything to mend, when the configuration is incomplete or slice and catalog disagree.
pub fn run<S: Slice + 'static>() -> ExitCode {
    init_logs();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let served = match runtime {
        Ok(runtime) => runtime.block_on(serve::<S>()),
        Err(error) => Err(error.into()),
    };
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(slice = S::NAME, cause = %chain(&*error), "the function can't start");
            ExitCode::FAILURE
        }
    }
}

async fn serve<S: Slice + 'static>() -> Result<(), Box<dyn Error + Send + Sync>> {
    let config = Config::from_env()?;
    let catalog = S::catalog()?;
    S::check(&catalog)?;
    let clock = Clock::system();
    let client = ringfence_dynamo::client_from_env().await;
    ringfence_dynamo::open(&client).await;
    let log = DcbLog::new(client, config.event_table, catalog.clone(), clock.clone());
    let meter = log.meter().clone();
    let entries = config.decision_cache_entries;
    let function = &Function::<S, _>::new(log, catalog, clock, meter, entries);
    lambda_runtime::run(service_fn(move |event: LambdaEvent<Value>| async move {
        let Invoked { answer, line } = function.invoke(event.payload, &event.context).await;
        line.write();
        answer
    }))
    .await
}
