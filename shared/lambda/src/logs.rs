//! The log of a function: one JSON object a line.

use std::error::Error;
use std::fmt;

use ringfence_aws::Clock;
use ringfence_core::rfc3339;
use tracing::{Level, Subscriber};
use tracing_subscriber::{
    Layer, filter::LevelFilter, filter::filter_fn, fmt::MakeWriter, fmt::format::Writer,
    fmt::time::FormatTime, layer::SubscriberExt, registry, util::SubscriberInitExt,
};

use crate::bounded::bounded;
use crate::config::Variables;

/// The longest foreign text in a line of the log, in bytes of JSON.
pub const LOGGED_BYTES_MAX: usize = 2_048;

/// Sends `tracing` to standard output as JSON with `timestamp` and `level`, which Lambda needs. `AWS_LAMBDA_LOG_LEVEL`
/// filters the lines of the application and of Ringfence. Lines of dependencies stay at WARN: at DEBUG they are some
/// hundred for each command.
pub(crate) fn init_logs() {
    let level =
        |variables: &mut Variables| variables.optional("AWS_LAMBDA_LOG_LEVEL", LevelFilter::INFO);
    let level = Variables::from_env(level).unwrap_or(LevelFilter::INFO);
    // A second call, in a test, keeps the first subscriber.
    let _ = logs(level, std::io::stdout).try_init();
}

fn logs<W>(level: LevelFilter, writer: W) -> impl Subscriber + Send + Sync + 'static
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let format = tracing_subscriber::fmt::layer().json().flatten_event(true).with_target(false);
    let format = format.with_current_span(false).with_timer(StackTime).with_writer(writer);
    let shown = filter_fn(move |line| {
        *line.level() <= level
            && (*line.level() <= Level::WARN || !is_dependency(line.file(), line.target()))
    });
    registry().with(format.with_filter(shown.with_max_level_hint(level)))
}

/// The time of the stack's clock, as in the lines of commands.
struct StackTime;

impl FormatTime for StackTime {
    fn format_time(&self, line: &mut Writer<'_>) -> fmt::Result {
        line.write_str(&rfc3339(Clock::system().now_ms()))
    }
}

/// Whether a line of this file and target comes from a crate that Cargo has fetched. A list of names would not be
/// enough: a list of noisy crates would lack a new dependency, and a list of all others would lack a new slice.
fn is_dependency(file: Option<&str>, target: &str) -> bool {
    let fetched = ["/registry/src/", "/git/checkouts/"];
    let file = file.unwrap_or_default().replace('\\', "/");
    fetched.iter().any(|place| file.contains(place)) && !target.starts_with("ringfence")
}

/// An error with its causes, as one text that is short enough for the log.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    bounded(&ringfence_core::chain(error), LOGGED_BYTES_MAX)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use ringfence_aws::wire::Wire;
    use ringfence_core::StoreError;
    use serde_json::Value;

    use super::*;

    #[derive(Clone, Default)]
    pub(crate) struct Sink(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Sink {
        pub(crate) fn logs(&self) -> impl Subscriber + Send + Sync + 'static {
            let writer = self.clone();
            logs(LevelFilter::INFO, move || writer.clone())
        }

        pub(crate) fn lines(&self) -> Vec<Value> {
            let written = self.0.lock().unwrap();
            let lines = written.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
            lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
        }
    }

    #[tokio::test]
    async fn lines_of_applications_are_shown_and_lines_of_dependencies_are_not() {
        let sink = Sink::default();
        let writer = sink.clone();
        let logs = logs(LevelFilter::TRACE, move || writer.clone());
        let shown = tracing::subscriber::set_default(logs);
        tracing::info!(target: "order_product", order = "o-1", "an order is checked");
        // The SDK traces each of its steps.
        let answers = |_: &str, _: &[u8]| (200, b"{}".to_vec());
        let client = Wire::default().client_of(Arc::new(answers));
        client.describe_endpoints().send().await.unwrap();
        tracing::trace!("it is done");
        drop(shown);
        let lines = sink.lines();
        let messages: Vec<_> = lines.iter().map(|line| line["message"].as_str().unwrap()).collect();
        assert_eq!(messages, ["an order is checked", "it is done"]);
        assert_eq!((&lines[0]["level"], &lines[0]["order"]), (&"INFO".into(), &"o-1".into()));
        assert!(lines[0]["timestamp"].is_string());
    }

    #[test]
    fn the_level_holds_for_the_application() {
        let sink = Sink::default();
        let writer = sink.clone();
        let logs = logs(LevelFilter::WARN, move || writer.clone());
        tracing::subscriber::with_default(logs, || {
            tracing::info!("not shown");
            tracing::warn!("shown");
        });
        assert_eq!(sink.lines().len(), 1);
    }

    #[test]
    fn lines_of_ringfence_are_shown_also_if_cargo_has_fetched_it() {
        let fetched = Some("C:\\cargo\\git\\checkouts\\ringfence\\lib.rs");
        assert!(!is_dependency(fetched, "ringfence_services::topic"));
        assert!(is_dependency(fetched, "hyper"));
    }

    #[test]
    fn the_cause_of_an_error_has_its_own_causes() {
        let source = io::Error::other("broken").into();
        let source = StoreError::Unavailable { operation: "reading", attempts: 2, source };
        let error = StoreError::OutcomeUnknown { attempts: 1, source: source.into() };
        let all = "outcome unknown after 1 attempts: reading: no answer after 2 attempts: broken";
        assert_eq!(chain(&error), all);
    }

    #[test]
    fn a_cause_is_cut() {
        let error = io::Error::other("\u{1}".repeat(350_000));
        let text = serde_json::to_string(&chain(&error)).unwrap();
        assert!((LOGGED_BYTES_MAX - 10..=LOGGED_BYTES_MAX + 2).contains(&text.len()));
    }
}
