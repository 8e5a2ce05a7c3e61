//! How the function of a slice is served.

use std::process::ExitCode;

use futures::future::LocalBoxFuture;
use lambda_runtime::{LambdaEvent, service_fn};
use ringfence::Slice;
use ringfence_function::VariableNames;
use serde_json::value::RawValue;

use crate::function::{AnyFunction, BoxError, Function, Invoked};
use crate::handler::Handler;

/// A log, by its name, whose slices run as Lambdas.
pub trait Serve<S: Slice> {
    /// Runs the slice until Lambda ends the process.
    fn serve() -> ExitCode;

    /// The variables that the slice's function reads.
    fn variables() -> VariableNames;
}

/// Opens a function and serves it. If it can't start, one line of the log says why.
pub(crate) fn start<H: Handler + 'static>(
    open: impl Future<Output = Result<Function<H>, BoxError>> + 'static,
) -> ExitCode {
    let open = async { Ok(Box::new(open.await?) as Box<dyn AnyFunction>) };
    ringfence_function::start(Some(H::Slice::NAME), serve(Box::pin(open)))
}

/// Serves a function of any slice. Neither it nor its future has a type parameter, so that Lambda's runtime is compiled
/// once, and not for each slice.
fn serve(
    open: LocalBoxFuture<'static, Result<Box<dyn AnyFunction>, BoxError>>,
) -> LocalBoxFuture<'static, Result<(), BoxError>> {
    Box::pin(async {
        let function = &*open.await?;
        lambda_runtime::run(service_fn(move |event: LambdaEvent<Box<RawValue>>| async move {
            let Invoked { answer, line } = function.call(event.payload.get(), &event.context).await;
            line.write();
            answer
        }))
        .await
    })
}
