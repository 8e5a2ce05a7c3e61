//! The start of a function.

use std::process::ExitCode;

use futures::future::LocalBoxFuture;
use lambda_runtime::Error;

use crate::logs::{chain, init_logs};

/// Serves until Lambda ends the process. If the function can't start, one line of the log says why. It names the slice,
/// or the service whose failures have an alarm.
pub fn start(
    slice: Option<&'static str>,
    failed_function: Option<&'static str>,
    serve: LocalBoxFuture<'_, Result<(), Error>>,
) -> ExitCode {
    init_logs();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let served = match runtime {
        Ok(runtime) => runtime.block_on(serve),
        Err(error) => Err(error.into()),
    };
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(slice, failed_function, cause = %chain(&*error), "the function can't start");
            ExitCode::FAILURE
        }
    }
}
