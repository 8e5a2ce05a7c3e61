//! The span of a run that handles a batch of events. The run has many causes, so it begins a trace, and links to the
//! spans of the commands that wrote the events.

use ringfence_core::{Metadata, Traceparent, rfc3339};

use crate::line::LogLine;

/// The most links of a line.
const LINKS_MAX: usize = 10;

/// The links of a line: the spans of the first commands of a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Links(Vec<Traceparent>);

impl Links {
    /// Whether further links would be ignored.
    #[must_use]
    fn is_full(&self) -> bool {
        self.0.len() == LINKS_MAX
    }

    /// Adds the command of the event with this metadata, if its span is recorded and has no link yet.
    pub fn add(&mut self, metadata: &Metadata) {
        let span = Traceparent::of_event(metadata).filter(|_| !self.is_full());
        self.0.extend(span.filter(|span| !self.0.contains(span)));
    }

    /// Makes the line of a run a span. Without links it stays a plain line.
    pub fn trace(
        &self,
        LogLine { json, .. }: &mut LogLine,
        run: &str,
        request_id: &str,
        began_ms: u64,
        duration_ms: u64,
    ) {
        json["timestamp"] = rfc3339(began_ms).into();
        json["duration_ms"] = duration_ms.into();
        if self.0.is_empty() {
            return;
        }
        let span = Traceparent::of_batch(run, request_id);
        json["run"] = run.into();
        json["trace_id"] = span.trace_id().into();
        json["span_id"] = span.span_id().into();
        json["links"] = self.0.iter().map(Traceparent::to_string).collect();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tracing::Level;

    use super::*;

    #[test]
    fn a_line_has_a_link_to_each_of_the_first_ten_commands_and_none_without_events() {
        let mut links = Links::default();
        let mut line = LogLine::new(0, Level::INFO, "batch", json!({}));
        links.trace(&mut line, "orders", "r", 1_719_100_800_000, 7);
        let expected = json!({
            "timestamp": "2024-06-23T00:00:00.000Z",
            "level": "INFO",
            "message": "batch",
            "duration_ms": 7,
        });
        assert_eq!(line.json, expected);
        links.add(&Metadata::default());
        for n in 0..24 {
            let span = Traceparent::of_command(&format!("c-{}", n / 2), "s", None).to_string();
            let mut metadata = Metadata::default();
            metadata.insert(Metadata::TRACEPARENT, span).expect("not reserved");
            links.add(&metadata);
        }
        links.trace(&mut line, "orders", "r", 0, 0);
        let found = line.json["links"].as_array().expect("links");
        let first = Traceparent::of_command("c-0", "s", None);
        assert_eq!((found.len(), &found[0]), (10, &json!(first.to_string())));
        assert_eq!(line.json["run"], "orders", "forward-spans names the span after it");
        assert_eq!(line.json["span_id"], Traceparent::of_batch("orders", "r").span_id());
    }
}
