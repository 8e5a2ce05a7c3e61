//! The messages of OTLP's traces, as its proto files have them, in the JSON of proto3: 64-bit numbers are strings,
//! enums are numbers, ids are hexadecimal. Other members are errors.
//! <https://github.com/open-telemetry/opentelemetry-proto/blob/v1.9.0/opentelemetry/proto/trace/v1/trace.proto>

use serde::{Deserialize, Serialize};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct TracesData {
    resource_spans: Vec<ResourceSpans>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ResourceSpans {
    resource: Resource,
    scope_spans: Vec<ScopeSpans>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Resource {
    attributes: Vec<KeyValue>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ScopeSpans {
    scope: InstrumentationScope,
    spans: Vec<Span>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct InstrumentationScope {
    name: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Span {
    pub(crate) trace_id: String,
    pub(crate) span_id: String,
    pub(crate) parent_span_id: Option<String>,
    pub(crate) name: String,
    pub(crate) kind: u8,
    pub(crate) start_time_unix_nano: String,
    pub(crate) end_time_unix_nano: String,
    pub(crate) attributes: Vec<KeyValue>,
    pub(crate) events: Vec<Event>,
    pub(crate) links: Vec<Link>,
    pub(crate) status: Option<Status>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Event {
    pub(crate) name: String,
    pub(crate) time_unix_nano: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Link {
    pub(crate) trace_id: String,
    pub(crate) span_id: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Status {
    pub(crate) code: u8,
    pub(crate) message: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct KeyValue {
    pub(crate) key: String,
    pub(crate) value: AnyValue,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum AnyValue {
    StringValue(String),
    BoolValue(bool),
    IntValue(String),
    DoubleValue(f64),
}

/// A document, whose ids and times are right.
pub(crate) fn document(json: &str) -> TracesData {
    let document: TracesData = serde_json::from_str(json).unwrap();
    let is_hex = |text: &str| text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let is_id = |text: &str, digits| text.len() == digits && is_hex(text);
    for span in document.spans() {
        assert!(is_id(&span.trace_id, 32) && is_id(&span.span_id, 16), "{span:?}");
        assert!(span.parent_span_id.iter().all(|parent| is_id(parent, 16)), "{span:?}");
        assert!(span.links.iter().all(|it| is_id(&it.trace_id, 32) && is_id(&it.span_id, 16)));
        let time = |text: &str| text.parse::<u64>().unwrap();
        assert!(time(&span.start_time_unix_nano) <= time(&span.end_time_unix_nano), "{span:?}");
        assert!(!span.name.is_empty() && (1..=5).contains(&span.kind), "{span:?}");
        assert!(span.events.iter().all(|it| !it.name.is_empty() && time(&it.time_unix_nano) > 0));
    }
    document
}

impl TracesData {
    pub(crate) fn spans(&self) -> Vec<Span> {
        let scopes = self.resource_spans.iter().flat_map(|resource| &resource.scope_spans);
        let of_scope = |scope: &ScopeSpans| {
            assert_eq!(scope.scope.name, "ringfence");
            scope.spans.clone()
        };
        scopes.flat_map(of_scope).collect()
    }

    pub(crate) fn services(&self) -> impl Iterator<Item = &str> {
        self.resource_spans.iter().map(|resource| {
            let [KeyValue { key, value: AnyValue::StringValue(service) }] =
                &resource.resource.attributes[..]
            else {
                panic!("{resource:?}")
            };
            assert_eq!(key, "service.name");
            &**service
        })
    }
}
