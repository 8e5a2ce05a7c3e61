//! A line of the log as a span.

use std::collections::BTreeMap;

use ringfence_aws::ms_of_rfc3339;
use ringfence_core::Traceparent;
use serde::Deserialize;
use serde_json::Value;

use crate::spans::otlp::TraceSpan;

/// Members of a line that become attributes, each with the attribute's name. No member has contents of a command, or
/// names its caller.
const ATTRIBUTES: [(&str, &str); 12] = [
    ("command_id", "ringfence.command_id"),
    ("correlation_id", "ringfence.correlation_id"),
    ("by", "ringfence.by"),
    ("outcome", "ringfence.outcome"),
    ("attempts", "ringfence.attempts"),
    ("requests", "ringfence.requests"),
    ("read_units", "ringfence.read_units"),
    ("write_units", "ringfence.write_units"),
    ("events", "ringfence.events"),
    ("rows", "ringfence.rows"),
    ("cold_start", "faas.coldstart"),
    ("function_request_id", "faas.invocation_id"),
];

/// The members of every line that is a span.
#[derive(Deserialize)]
struct Line {
    timestamp: String,
    level: String,
    duration_ms: u64,
    trace_id: String,
    span_id: String,
    parent_span_id: Option<String>,
    /// Of a command.
    slice: Option<String>,
    /// Of a function that handles batches.
    run: Option<String>,
    outcome: Option<String>,
    by: Option<String>,
    #[serde(default)]
    links: Vec<String>,
    #[serde(default)]
    repeated: bool,
    #[serde(default = "yes")]
    sampled: bool,
}

fn yes() -> bool {
    true
}

/// The span of a line, if it is to be forwarded. Repeats are not, because the first run has the span already; nor are
/// spans of traces that are not sampled.
pub(crate) fn span(text: &str) -> Option<TraceSpan> {
    let whole: Value = serde_json::from_str(text).ok()?;
    let line = Line::deserialize(&whole).ok().filter(|line| line.sampled && !line.repeated)?;
    let ids = |span: &str| format!("00-{}-{span}-01", line.trace_id).parse::<Traceparent>().ok();
    let name = line.slice.or(line.run)?;
    let began_ms = ms_of_rfc3339(&line.timestamp)?;
    let is_failure = ["ERROR", "WARN"].contains(&&*line.level);
    let attribute = |(member, name): (&str, &'static str)| {
        let value = whole.get(member).filter(|value| !value.is_null())?;
        Some((name, value.clone()))
    };
    Some(TraceSpan {
        ids: ids(&line.span_id)?,
        parent: line.parent_span_id.as_deref().and_then(ids),
        service: name.split(' ').next().unwrap_or_default().to_owned(),
        is_reaction: line.by.is_some() || !line.links.is_empty(),
        name,
        began_ms,
        ended_ms: began_ms.saturating_add(line.duration_ms),
        attributes: ATTRIBUTES.into_iter().filter_map(attribute).collect::<BTreeMap<_, _>>(),
        links: line.links.iter().filter_map(|link| link.parse().ok()).collect(),
        events: Vec::new(),
        failure: line.outcome.filter(|_| is_failure),
    })
}
