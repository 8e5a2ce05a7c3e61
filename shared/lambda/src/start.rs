//! The start of a function.

use std::panic::{self, PanicHookInfo};
use std::process::ExitCode;

use futures::future::LocalBoxFuture;
use lambda_runtime::Error;

use crate::bounded::bounded;
use crate::logs::{LOGGED_BYTES_MAX, chain, init_logs};

/// Serves until Lambda ends the process. If the function can't start or panics, one line of the log says why. It names
/// the slice, or the service whose failures have an alarm.
pub fn start(
    slice: Option<&'static str>,
    failed_function: Option<&'static str>,
    serve: LocalBoxFuture<'_, Result<(), Error>>,
) -> ExitCode {
    init_logs();
    let failed_function = slice.or(failed_function);
    log_panics(failed_function);
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

/// A panic ends the process before it can write the line of its command. So it has a line that says where and why.
fn log_panics(failed_function: Option<&'static str>) {
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        log_panic(failed_function, panic);
        report(panic);
    }));
}

fn log_panic(failed_function: Option<&'static str>, panic: &PanicHookInfo<'_>) {
    let why = panic.payload_as_str().unwrap_or("a panic without a text");
    let place = panic.location().map(|place| format!(", at {}:{}", place.file(), place.line()));
    let cause = bounded(&format!("{why}{}", place.unwrap_or_default()), LOGGED_BYTES_MAX);
    tracing::error!(failed_function, cause, "the function panicked");
}

#[cfg(test)]
mod tests {
    use tracing::subscriber::with_default;

    use super::*;
    use crate::logs::tests::Sink;

    #[test]
    fn a_panic_has_a_line_with_the_function_the_cause_and_the_place() {
        log_panics(Some("place-order"));
        let sink = Sink::default();
        let panics = || panic::catch_unwind(|| panic!("no {}", "price"));
        assert!(with_default(sink.logs(), panics).is_err());
        let [line] = &sink.lines()[..] else { panic!("{:?}", sink.lines()) };
        let cause = line["cause"].as_str().unwrap();
        assert_eq!(
            (&line["level"], &line["failed_function"]),
            (&"ERROR".into(), &"place-order".into())
        );
        assert!(cause.starts_with("no price, at shared/lambda/src/start.rs:"), "{cause}");
    }
}
