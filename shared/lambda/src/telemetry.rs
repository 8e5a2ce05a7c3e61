//! What a slice logs of an invocation: one JSON object, with its metrics.

use ringfence::{BoundaryId, rfc3339};
use ringfence_dynamo::Usage;
use ringfence_function::LOGGED_BYTES_MAX;
use serde::Serialize;
use serde_json::json;

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
    /// Who gave the command, or caused the first one of its flow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) principal: Option<String>,
    /// The slice whose reaction the command is; absent for one that a caller gave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) by: Option<String>,
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
    /// Notes as many conflicts as fit into the line.
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
            "internal" | "newer-version" | "outcome-unknown" | "unknown-type" => "ERROR",
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
    use ringfence_dynamo::Units;

    use super::*;

    fn line(outcome: &'static str) -> Line {
        Line {
            timestamp_ms: 0,
            slice: "order-product",
            function_request_id: "r-1".to_owned(),
            cold_start: false,
            command_id: None,
            correlation_id: None,
            causation_id: None,
            principal: None,
            by: None,
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
}
