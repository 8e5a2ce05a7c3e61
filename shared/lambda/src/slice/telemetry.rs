//! The log line of a command: one JSON object. It is a span of a trace too: it began at `timestamp` and took
//! `duration_ms`.

use std::collections::BTreeMap;

use crate::{LOGGED_BYTES_MAX, LogLine, MetricUnit};
use ringfence_aws::{Began, Usage};
use ringfence_core::{BoundaryId, EventRef, Traceparent};
use serde::Serialize;
use tracing::Level;

/// The report of one command, or of an invocation without commands.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Line {
    #[serde(skip)]
    pub(crate) began: Began,
    pub(crate) slice: &'static str,
    /// Whether it has metrics of the slice.
    #[serde(skip)]
    pub(crate) per_slice: bool,
    /// Of an invocation that failed: its problem names it to the caller, and lines of Lambda have it.
    #[serde(skip)]
    pub(crate) function_request_id: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) cold_start: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) command_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) correlation_id: Option<String>,
    /// The event that caused a reaction; for other commands, the caller's value, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) causation_id: Option<String>,
    /// The span of the command, if there is one.
    #[serde(skip)]
    pub(crate) span: Option<Traceparent>,
    /// The span of the sender, if known.
    #[serde(skip)]
    pub(crate) parent: Option<Traceparent>,
    /// Whether the command took effect before, under the same key. Its first line has the same span.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) repeated: bool,
    /// The caller of the command, or of the first one in its flow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) principal: Option<String>,
    /// The slice whose reaction the command is; absent for a caller's command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) by: Option<String>,
    pub(crate) outcome: &'static str,
    pub(crate) attempts: u32,
    /// The boundary of each conflict, to which another command added something.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) conflicts: Vec<String>,
    /// How many events of each type the command wrote.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) events: BTreeMap<String, u64>,
    pub(crate) duration_ms: u64,
    #[serde(skip)]
    pub(crate) usage: Usage,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cause: Option<String>,
}

impl Line {
    /// Adds as many conflicts as fit into the line.
    pub(crate) fn met(&mut self, boundaries: &[BoundaryId]) {
        for boundary in boundaries {
            let noted: usize = self.conflicts.iter().map(String::len).sum();
            if noted + boundary.as_str().len() <= LOGGED_BYTES_MAX {
                self.conflicts.push(boundary.to_string());
            }
        }
    }

    /// Counts these events by type, for as many types as fit into the line.
    pub(crate) fn wrote(&mut self, events: &[EventRef]) {
        for EventRef { event_type, .. } in events {
            let noted: usize = self.events.keys().map(String::len).sum();
            if let Some(count) = self.events.get_mut(event_type) {
                *count += 1;
            } else if noted + event_type.len() <= LOGGED_BYTES_MAX {
                self.events.insert(event_type.clone(), 1);
            }
        }
    }

    pub(crate) fn log(&self) -> LogLine {
        let level = match self.outcome {
            "internal" | "newer-version" | "outcome-unknown" | "unknown-type" => Level::ERROR,
            "contention" | "throttled" | "unavailable" => Level::WARN,
            _ => Level::INFO,
        };
        let message = format!("{} {}", self.slice, self.outcome);
        let json = serde_json::to_value(self).expect("a line is a map with text keys");
        let mut line = LogLine::new(self.began.at_ms, level, message, json);
        let json = &mut line.json;
        if level != Level::INFO {
            json["function_request_id"] = self.function_request_id.as_str().into();
        }
        let units = self.usage.total();
        json["requests"] = (self.usage.reads + self.usage.writes).into();
        json["read_units"] = units.read.into();
        json["write_units"] = units.write.into();
        if let Some(span) = self.span {
            json["trace_id"] = span.trace_id().into();
            json["span_id"] = span.span_id().into();
            if let Some(parent) = self.parent {
                json["parent_span_id"] = parent.span_id().into();
            }
            if !span.is_sampled() {
                json["sampled"] = false.into();
            }
        }
        // All slices share the metric that has an alarm. It is written only when something is to be counted.
        if self.outcome == "contention" {
            line.measure(&[], [("contention", MetricUnit::Count, 1)]);
        }
        if self.per_slice {
            let attempts = ("attempts", MetricUnit::Count, u64::from(self.attempts));
            let duration = ("duration_ms", MetricUnit::Milliseconds, self.duration_ms);
            line.measure(&["slice"], [attempts, duration]);
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use ringfence_aws::Units;
    use serde_json::json;

    use super::*;

    fn line(outcome: &'static str) -> Line {
        Line {
            began: Began::default(),
            slice: "order-product",
            per_slice: false,
            function_request_id: "r-1".to_owned(),
            cold_start: false,
            command_id: None,
            correlation_id: None,
            causation_id: None,
            span: None,
            parent: None,
            repeated: false,
            principal: None,
            by: None,
            outcome,
            attempts: 1,
            conflicts: Vec::new(),
            events: BTreeMap::new(),
            duration_ms: 0,
            usage: Usage::default(),
            cause: None,
        }
    }

    #[test]
    fn the_level_of_a_line_and_its_metrics_follow_from_the_outcome() {
        for (outcome, level) in [
            ("accepted", "INFO"),
            ("rejected", "INFO"),
            ("malformed", "INFO"),
            ("contention", "WARN"),
            ("throttled", "WARN"),
            ("unavailable", "WARN"),
            ("outcome-unknown", "ERROR"),
            ("internal", "ERROR"),
        ] {
            let contends = outcome == "contention";
            let found = line(outcome).log().json;
            assert_eq!(found["level"], level, "{outcome}");
            assert_eq!(found.get("contention"), contends.then_some(&json!(1)), "{outcome}");
            assert_eq!(found.get("_aws").is_some(), contends, "{outcome}");
            let own = Line { per_slice: true, ..line(outcome) }.log().json;
            let directives = own["_aws"]["CloudWatchMetrics"].as_array().expect("directives");
            let dimensions: Vec<_> = directives.iter().map(|it| &it["Dimensions"]).collect();
            let (all, slice) = (json!([[]]), json!([["slice"]]));
            let expected = if contends { vec![&all, &slice] } else { vec![&slice] };
            assert_eq!(dimensions, expected, "{outcome}");
            for metric in directives.iter().flat_map(|it| it["Metrics"].as_array()).flatten() {
                let name = metric["Name"].as_str().expect("a name");
                assert!(own[name].is_number(), "{name} has no value");
            }
        }
    }

    /// The bill of a stack counts these bytes.
    #[test]
    fn the_line_of_a_command_of_a_caller_has_483_bytes() {
        let [id, correlation] = ["0198c0de-1111-7222-8333-444455556666"; 2].map(str::to_owned);
        let usage = Usage {
            reads: 1,
            writes: 1,
            tables: Units { read: 1.0, write: 8.0 },
            indexes: [].into(),
        };
        let line = Line {
            span: Some(Traceparent::of_command(&id, "order-product", None)),
            principal: Some(format!("jwt:main:{id}")),
            command_id: Some(id),
            correlation_id: Some(correlation),
            duration_ms: 12,
            usage,
            events: [("OrderPlaced".to_owned(), 1)].into(),
            ..line("accepted")
        };
        let json = line.log().json;
        assert_eq!(json.to_string().len(), 483, "{json}");
        let failed = Line { outcome: "internal", ..line }.log().json;
        assert_eq!(failed["function_request_id"], "r-1");
    }

    #[test]
    fn a_line_has_the_requests_and_units_of_tables_and_indexes() {
        let index = Units { read: 0.5, write: 4.0 };
        let usage = Usage {
            reads: 3,
            writes: 2,
            tables: Units { read: 1.0, write: 8.0 },
            indexes: [("events/tag_a".to_owned(), index)].into(),
        };
        let line = Line { usage, ..line("accepted") }.log().json;
        let found = [&line["requests"], &line["read_units"], &line["write_units"]];
        assert_eq!(found, [&json!(5), &json!(1.5), &json!(12.0)]);
    }

    #[test]
    fn the_events_of_a_line_are_counted_by_type_as_far_as_the_types_fit() {
        let of = |event_type: String| EventRef { event_type, partition: String::new(), slot: 0 };
        let long = |letter: &str| of(letter.repeat(1_024));
        let mut line = line("accepted");
        line.wrote(&[long("a"), of("b".to_owned()), long("a"), long("c"), of("b".to_owned())]);
        let noted: Vec<_> = line.events.iter().map(|(of, count)| (of.len(), *count)).collect();
        assert_eq!(noted, [(1_024, 2), (1, 2)]);
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
