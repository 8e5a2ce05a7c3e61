//! Logs and metrics: one JSON object a line.

use std::{error::Error, fmt::Write as _};

use ringfence_dynamo::{Usage, rfc3339};
use serde::Serialize;
use serde_json::json;
use tracing_subscriber::{EnvFilter, filter::LevelFilter};

use crate::config::Variables;

/// Sends `tracing` to standard output as JSON with `timestamp` and `level`, by which Lambda files
/// it. `AWS_LAMBDA_LOG_LEVEL` filters the lines of these crates; the SDK's, some hundred a command
/// at DEBUG, stay at WARN.
pub(crate) fn init_logs() {
    let mut variables = Variables::from_env();
    let level = variables.optional("AWS_LAMBDA_LOG_LEVEL", LevelFilter::INFO);
    let ours = ["ringfence", "publish_events", "index_events", "project_views", "query_views"]
        .map(|name| format!("{name}={level}"))
        .join(",");
    let filter = EnvFilter::new(format!("warn,{ours}"));
    let format = tracing_subscriber::fmt().json().flatten_event(true).with_target(false);
    // A second call, in a test, keeps the first subscriber.
    let _ = format.with_env_filter(filter).with_current_span(false).try_init();
}

/// An error with its causes, as one text for the log.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        write!(text, ": {cause}").expect("writing to a String does not fail");
        source = cause.source();
    }
    text
}

/// What one invocation was: a line of the log and, in CloudWatch's embedded metric format, its
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
    pub(crate) outcome: &'static str,
    pub(crate) attempts: u32,
    pub(crate) duration_ms: u64,
    #[serde(skip)]
    pub(crate) usage: Usage,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cause: Option<String>,
}

impl Line {
    /// Writes the line to standard output, where Lambda collects it.
    pub(crate) fn write(&self) {
        println!("{}", self.json());
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        let level = match self.outcome {
            "internal" | "outcome-unknown" => "ERROR",
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
                // Of all slices together, for an alarm that needs no change with a new one.
                "Namespace": "Ringfence",
                "Dimensions": [[]],
                "Metrics": [metric("contention", "Count")],
            }],
        });
        line
    }
}
