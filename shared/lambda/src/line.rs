//! The line of the log about a run: a JSON object, of which CloudWatch makes metrics. `tracing` writes the other lines.

use ringfence_core::rfc3339;
use serde_json::{Value, json};
use tracing::Level;

/// A line of the log.
#[derive(Debug)]
pub struct LogLine {
    /// What is written.
    pub json: Value,
    at_ms: u64,
}

/// What a metric counts.
#[derive(Clone, Copy, Debug)]
pub enum MetricUnit {
    /// Things.
    Count,
    /// Milliseconds.
    Milliseconds,
}

impl LogLine {
    /// A line about something that was so at this time, in milliseconds since 1970. `json` is an object with the rest.
    pub fn new(at_ms: u64, level: Level, message: impl Into<String>, mut json: Value) -> Self {
        json["timestamp"] = rfc3339(at_ms).into();
        json["level"] = level.as_str().into();
        json["message"] = message.into().into();
        Self { json, at_ms }
    }

    /// Adds values as metrics, in CloudWatch's embedded metric format. Each value of a dimension, which is a member of the
    /// line, has its own series, and each series costs money every month. So most metrics have no dimension.
    /// <https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html>
    pub fn measure<'m, N: Into<Value>>(
        &mut self,
        dimensions: &[&str],
        metrics: impl IntoIterator<Item = (&'m str, MetricUnit, N)>,
    ) {
        let mut named = Vec::new();
        for (name, unit, value) in metrics {
            self.json[name] = value.into();
            named.push(json!({ "Name": name, "Unit": format!("{unit:?}") }));
        }
        if named.is_empty() {
            return;
        }
        let metrics =
            json!({ "Namespace": "Ringfence", "Dimensions": [dimensions], "Metrics": named });
        let envelope = &mut self.json["_aws"];
        envelope["Timestamp"] = self.at_ms.into();
        match envelope["CloudWatchMetrics"].as_array_mut() {
            Some(all) => all.push(metrics),
            None => envelope["CloudWatchMetrics"] = json!([metrics]),
        }
    }

    /// Writes the line to standard output, where Lambda collects it.
    pub fn write(&self) {
        println!("{}", self.json);
    }
}
