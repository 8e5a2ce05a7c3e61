//! A slice as a Lambda.
//!
//! `fn main() -> ExitCode { ringfence_lambda::run::<PlaceOrder>() }` is a whole function;
//! [`aggregate::run`] and [`document::run`] start slices on the logs of single streams. It answers an
//! API Gateway HTTP API request, a direct invoke, and an EventBridge event that the slice reacts to;
//! `invocation.rs` tells them apart.

pub mod aggregate;
mod answer;
mod bounded;
mod config;
mod dcb;
pub mod document;
mod function;
mod handler;
mod invocation;
mod json;
mod problem;
#[cfg(feature = "reactions")]
pub mod reactions;
mod start;
mod telemetry;
#[cfg(test)]
mod tests;
mod wording;

use std::process::ExitCode;

use lambda_runtime::{LambdaEvent, service_fn};
use serde_json::value::RawValue;

pub use answer::http;
pub use config::{ConfigError, Variables};
pub use dcb::run;
pub use problem::Problem;
pub use start::{main, time_left};
pub use telemetry::chain;

use crate::function::{BoxError, Function, Invoked};
use crate::handler::Handler;

/// Opens a function and serves it; what keeps it from starting is one line of the log.
fn start<H: Handler>(open: impl Future<Output = Result<Function<H>, BoxError>>) -> ExitCode {
    start::until_the_end(Some(H::NAME), serve(open))
}

async fn serve<H: Handler>(
    open: impl Future<Output = Result<Function<H>, BoxError>>,
) -> Result<(), BoxError> {
    let function = &open.await?;
    lambda_runtime::run(service_fn(move |event: LambdaEvent<Box<RawValue>>| async move {
        let Invoked { answer, line } = function.invoke(event.payload.get(), &event.context).await;
        line.write();
        answer
    }))
    .await
}
