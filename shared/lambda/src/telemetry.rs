//! Logs and metrics: one JSON object a line.

use std::error::Error;

use ringfence::{BoundaryId, rfc3339};
use ringfence_dynamo::Usage;
use serde::Serialize;
use serde_json::json;
use tracing::{Level, Metadata, Subscriber};
use tracing_subscriber::{
    Layer, filter::LevelFilter, filter::filter_fn, fmt::MakeWriter, layer::SubscriberExt, registry,
    util::SubscriberInitExt,
};

use crate::bounded::bounded;
use crate::config::Variables;

/// The longest text from others in a line of the log, in bytes of JSON.
pub(crate) const LOGGED_BYTES_MAX: usize = 2_048;

/// Sends `tracing` to standard output as JSON with `timestamp` and `level`, by which Lambda files it.
/// `AWS_LAMBDA_LOG_LEVEL` filters the application's lines and ours. Those of dependencies stay at WARN: at
/// DEBUG they are some hundred for each command.
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
    let format = format.with_current_span(false).with_writer(writer);
    let shown = filter_fn(move |line| {
        *line.level() <= level && (*line.level() <= Level::WARN || !is_dependency(line))
    });
    registry().with(format.with_filter(shown.with_max_level_hint(level)))
}

/// Whether the line is of a crate that Cargo has fetched. Lists of names would not do: a list of noisy
/// crates would lack a new dependency, and a list of all others would lack a new slice.
fn is_dependency(line: &Metadata<'_>) -> bool {
    let fetched = ["/registry/src/", "/git/checkouts/"];
    let file = line.file().unwrap_or_default().replace('\\', "/");
    fetched.iter().any(|place| file.contains(place)) && !line.target().starts_with("ringfence")
}

/// An error with its causes, as one text that is short enough for the log.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    bounded(&ringfence::chain(error), LOGGED_BYTES_MAX)
}

/// The report of one invocation: a line of the log and, in CloudWatch's embedded metric format, its
/// metrics. <https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html>
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Line {
    #[serde(skip)]
    pub(crate) timestamp_ms: u64,
    pub(crate) slice: &'static str,
    pub(crate) function_request_id: String,
    pub(crate) cold_start: bool,
    pub(crate) command_id: Option<String>,
    pub(crate) correlation_id: Option<String>,
    /// The event that caused a reaction; for other commands, the caller's value.
    pub(crate) causation_id: Option<String>,
    pub(crate) outcome: &'static str,
    pub(crate) attempts: u32,
    /// The boundaries to which others added something, one for each conflict.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) conflicts: Vec<String>,
    pub(crate) duration_ms: u64,
    #[serde(skip)]
    pub(crate) usage: Usage,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cause: Option<String>,
}

impl Line {
    /// Notes conflicts, as far as they fit.
    pub(crate) fn met(&mut self, boundaries: &[BoundaryId]) {
        for boundary in boundaries {
            let noted: usize = self.conflicts.iter().map(String::len).sum();
            if noted + boundary.as_str().len() <= LOGGED_BYTES_MAX {
                self.conflicts.push(boundary.to_string());
            }
        }
    }

    /// Writes the line to standard output, where Lambda collects it.
    pub(crate) fn write(&self) {
        println!("{}", self.json());
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        let level = match self.outcome {
            "internal" | "outcome-unknown" | "unknown-type" => "ERROR",
            "contention" | "throttled" | "unavailable" => "WARN",
            _ => "INFO",
        };
        let mut line = serde_json::to_value(self).expect("a line is a map with text keys");
        line["timestamp"] = rfc3339(self.timestamp_ms).into();
        line["level"] = level.into();
        line["message"] = format!("{} {}", self.slice, self.outcome).into();
        let units = self.usage.total();
        line["requests"] = (self.usage.reads + self.usage.writes).into();
        line["read_units"] = units.read.into();
        line["write_units"] = units.write.into();
        line["contention"] = u8::from(self.outcome == "contention").into();
        let metric = |name: &str, unit: &str| json!({ "Name": name, "Unit": unit });
        line["_aws"] = json!({
            "Timestamp": self.timestamp_ms,
            "CloudWatchMetrics": [{
                "Namespace": "Ringfence",
                "Dimensions": [["slice"]],
                "Metrics": [
                    metric("attempts", "Count"),
                    metric("contention", "Count"),
                    metric("requests", "Count"),
                    metric("read_units", "Count"),
                    metric("write_units", "Count"),
                    metric("duration_ms", "Milliseconds"),
                ],
            }, {
                // The metrics of all slices together are for an alarm that needs no change when a slice is added.
                "Namespace": "Ringfence",
                "Dimensions": [[]],
                "Metrics": [metric("contention", "Count")],
            }],
        });
        line
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use ringfence::StoreError;
    use ringfence_dynamo::{Units, wire::Wire};
    use serde_json::Value;

    use super::*;

    #[derive(Clone, Default)]
    struct Sink(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Sink {
        fn lines(&self) -> Vec<Value> {
            let written = self.0.lock().unwrap();
            let lines = written.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
            lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
        }
    }

    #[tokio::test]
    async fn an_application_s_lines_are_shown_and_those_of_dependencies_are_not() {
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

    fn line(outcome: &'static str) -> Line {
        Line {
            timestamp_ms: 0,
            slice: "order-product",
            function_request_id: "r-1".to_owned(),
            cold_start: false,
            command_id: None,
            correlation_id: None,
            causation_id: None,
            outcome,
            attempts: 1,
            conflicts: Vec::new(),
            duration_ms: 0,
            usage: Usage::default(),
            cause: None,
        }
    }

    #[test]
    fn the_level_of_a_line_and_its_contention_follow_from_the_outcome() {
        for (outcome, level, contention) in [
            ("accepted", "INFO", 0),
            ("rejected", "INFO", 0),
            ("malformed", "INFO", 0),
            ("contention", "WARN", 1),
            ("throttled", "WARN", 0),
            ("unavailable", "WARN", 0),
            ("outcome-unknown", "ERROR", 0),
            ("internal", "ERROR", 0),
        ] {
            let line = line(outcome).json();
            let found = (&line["level"], &line["contention"]);
            assert_eq!(found, (&json!(level), &json!(contention)), "{outcome}");
        }
    }

    #[test]
    fn the_requests_and_units_of_a_line_are_those_of_tables_and_indexes() {
        let index = Units { read: 0.5, write: 4.0 };
        let usage = Usage {
            reads: 3,
            writes: 2,
            tables: Units { read: 1.0, write: 8.0 },
            indexes: [("events/tag_a".to_owned(), index)].into(),
        };
        let line = Line { usage, ..line("accepted") }.json();
        let found = [&line["requests"], &line["read_units"], &line["write_units"]];
        assert_eq!(found, [&json!(5), &json!(1.5), &json!(12.0)]);
    }

    #[test]
    fn the_conflicts_of_a_line_are_noted_as_far_as_they_fit() {
        let boundary = |bytes| BoundaryId::stored("x".repeat(bytes));
        let mut line = line("contention");
        line.met(&[boundary(1_000), boundary(1_000), boundary(1_000), boundary(48), boundary(1)]);
        let noted: Vec<_> = line.conflicts.iter().map(String::len).collect();
        assert_eq!(noted, [1_000, 1_000, 48]);
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
