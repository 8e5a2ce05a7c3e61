//! Spans in the JSON of OTLP. <https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding>

use std::collections::BTreeMap;

use ringfence_core::Traceparent;
use serde_json::{Map, Value, json};

/// The code of a span that has failed.
const FAILED: u8 = 2;

/// A span.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceSpan {
    /// Its ids.
    pub ids: Traceparent,
    /// The span that led to it, in the same trace.
    pub parent: Option<Traceparent>,
    /// The slice or the function that ran.
    pub service: String,
    /// Its name for people.
    pub name: String,
    /// Whether an event led to it, and not a caller.
    pub is_reaction: bool,
    /// When it began, in milliseconds since 1970.
    pub began_ms: u64,
    /// When it ended.
    pub ended_ms: u64,
    /// Other attributes: strings, integers, numbers or booleans.
    pub attributes: BTreeMap<&'static str, Value>,
    /// The spans of other traces that led to it.
    pub links: Vec<Traceparent>,
    /// The events that it wrote: the name of each, and when it was recorded, in milliseconds since 1970.
    pub events: Vec<(String, u64)>,
    /// The failure, if it has failed.
    pub failure: Option<String>,
}

impl TraceSpan {
    fn json(&self) -> Value {
        // The numbers of `SPAN_KIND_SERVER` and `SPAN_KIND_CONSUMER`.
        let kind = if self.is_reaction { 5 } else { 2 };
        let event =
            |(name, at): &(String, u64)| json!({ "name": name, "timeUnixNano": nanos(*at) });
        let link = |to: &Traceparent| json!({ "traceId": to.trace_id(), "spanId": to.span_id() });
        let mut json = json!({
            "traceId": self.ids.trace_id(),
            "spanId": self.ids.span_id(),
            "name": self.name,
            "kind": kind,
            "startTimeUnixNano": nanos(self.began_ms),
            "endTimeUnixNano": nanos(self.ended_ms),
            "attributes": self.attributes.iter().map(|(key, value)| attribute(key, value)).collect::<Value>(),
            "events": self.events.iter().map(event).collect::<Value>(),
            "links": self.links.iter().map(link).collect::<Value>(),
        });
        if let Some(parent) = self.parent {
            json["parentSpanId"] = parent.span_id().into();
        }
        if let Some(message) = &self.failure {
            json["status"] = json!({ "code": FAILED, "message": message });
        }
        json
    }
}

/// A document of spans: the body of a request to a collector.
#[must_use]
pub fn document<'s>(spans: impl IntoIterator<Item = &'s TraceSpan>) -> Value {
    let mut services = BTreeMap::<&str, Vec<Value>>::new();
    for span in spans {
        services.entry(&span.service).or_default().push(span.json());
    }
    let resources = services.into_iter().map(|(service, spans)| {
        json!({
            "resource": { "attributes": [attribute("service.name", &service.into())] },
            "scopeSpans": [{ "scope": { "name": "ringfence" }, "spans": spans }],
        })
    });
    json!({ "resourceSpans": resources.collect::<Value>() })
}

/// Times are strings, because programs may round a JSON number of 64 bits.
fn nanos(ms: u64) -> String {
    (u128::from(ms) * 1_000_000).to_string()
}

fn attribute(key: &str, value: &Value) -> Value {
    let typed = match value {
        Value::Bool(_) => ("boolValue", value.clone()),
        Value::Number(number) if number.is_f64() => ("doubleValue", value.clone()),
        Value::Number(number) => ("intValue", number.to_string().into()),
        Value::String(_) => ("stringValue", value.clone()),
        other => ("stringValue", other.to_string().into()),
    };
    json!({ "key": key, "value": Map::from_iter([(typed.0.to_owned(), typed.1)]) })
}
