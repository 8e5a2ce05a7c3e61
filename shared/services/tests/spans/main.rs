//! forward-spans as its log group and its collector see it.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests fail by panicking")]

mod collector;
mod otlp;
mod rotel;

use std::io::Write;
use std::time::Duration;

use aws_smithy_types::base64;
use axum::http::StatusCode;
use flate2::{Compression, write::GzEncoder};
use ringfence_core::Traceparent;
use ringfence_lambda::{Call, Service, Variables};
use ringfence_services::spans::ForwardSpans;
use serde_json::{Value, json};

use collector::Collector;

/// A batch of lines as a subscription brings it.
fn batch(stream: &str, lines: &[Value]) -> Value {
    let line = |line: &Value| json!({ "id": "1", "timestamp": 0, "message": line.to_string() });
    let batch = json!({
        "messageType": "DATA_MESSAGE",
        "owner": "123456789012",
        "logGroup": "shop-Logs",
        "logStream": stream,
        "subscriptionFilters": ["shop-ForwardSpans"],
        "logEvents": lines.iter().map(line).collect::<Value>(),
    });
    packed(&batch)
}

fn packed(batch: &Value) -> Value {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(batch.to_string().as_bytes()).unwrap();
    json!({ "awslogs": { "data": base64::encode(gzip.finish().unwrap()) } })
}

/// The log stream of a slice.
const OF_A_SLICE: &str = "2026/11/26/shop-PlaceOrder-1[$LATEST]0123";

fn span(command: &str, parent: Option<Traceparent>) -> Traceparent {
    Traceparent::of_command(command, "place-order", parent)
}

/// The line of a command.
fn line(command: &str, parent: Option<Traceparent>) -> Value {
    let own = span(command, parent);
    let mut line = json!({
        "timestamp": "2026-11-26T10:00:00.250Z",
        "level": "INFO",
        "message": "place-order accepted",
        "slice": "place-order",
        "function_request_id": "r-1",
        "cold_start": false,
        "command_id": command,
        "correlation_id": "walk-1",
        "principal": "jwt:main:canary",
        "outcome": "accepted",
        "attempts": 1,
        "duration_ms": 40,
        "requests": 2,
        "read_units": 0.5,
        "write_units": 6.0,
        "trace_id": own.trace_id(),
        "span_id": own.span_id(),
    });
    if let Some(parent) = parent {
        line["parent_span_id"] = parent.span_id().into();
    }
    line
}

/// The line of a run that handles a batch.
fn run(links: &[Traceparent]) -> Value {
    let own = Traceparent::of_batch("project-views", "r-2");
    json!({
        "timestamp": "2026-11-26T10:00:00.300Z",
        "level": "INFO",
        "message": "views present",
        "run": "project-views",
        "events": 2,
        "rows": 2,
        "duration_ms": 9,
        "trace_id": own.trace_id(),
        "span_id": own.span_id(),
        "links": links.iter().map(Traceparent::to_string).collect::<Value>(),
    })
}

/// Forwards a batch to this collector.
async fn forward(url: &str, payload: Value) -> Result<Value, String> {
    let url = url.to_owned();
    let function = ForwardSpans::at(&url, String::new()).await.unwrap();
    let [request_id, function_name] = ["r", "shop-ForwardSpans-1"].map(str::to_owned);
    let time = Duration::from_secs(5);
    let call = Call { payload, request_id, function: function_name, time };
    function.answer(call).await.map_err(|failed| failed.error_message)
}

#[tokio::test]
async fn the_spans_of_lines_arrive_as_otlp_says_them() {
    let collector = Collector::start(StatusCode::OK, json!({})).await;
    let root = span("c-1", None);
    let mut failed = line("c-2", Some(root));
    (failed["level"], failed["outcome"]) = ("WARN".into(), "contention".into());
    failed["by"] = "place-order".into();
    let lines = [line("c-1", None), failed, run(&[root, span("c-2", Some(root))])];
    forward(&collector.url, batch(OF_A_SLICE, &lines)).await.unwrap();
    let [request] = &collector.requests()[..] else { panic!("one request") };
    assert_eq!(request.headers["content-type"], "application/json");
    assert_eq!(request.headers["content-encoding"], "gzip");
    assert!(!request.headers.contains_key("authorization"), "only X-Ray asks for it");
    assert!(!request.body.contains("canary"), "{}", request.body);
    let document = otlp::document(&request.body);
    let services: Vec<_> = document.services().collect();
    assert_eq!(services, ["place-order", "project-views"]);
    let spans = document.spans();
    let [first, second, run] = &spans[..] else { panic!("{spans:?}") };
    assert_eq!((&*first.span_id, &*first.trace_id), (&*root.span_id(), &*root.trace_id()));
    assert_eq!((&first.parent_span_id, first.kind), (&None, 2));
    assert_eq!(first.start_time_unix_nano, "1795687200250000000");
    assert_eq!(first.end_time_unix_nano, "1795687200290000000");
    assert_eq!(second.parent_span_id, Some(root.span_id()));
    let status = second.status.as_ref().unwrap();
    assert_eq!((second.kind, status.code, status.message.as_str()), (5, 2, "contention"));
    assert_eq!(run.links.len(), 2);
    assert_eq!((&run.links[0].span_id, &run.links[0].trace_id), (&first.span_id, &first.trace_id));
    assert_ne!(run.trace_id, first.trace_id);
    let attribute = |name: &str| {
        let found = first.attributes.iter().find(|it| it.key == name);
        serde_json::to_string(&found.unwrap().value).unwrap()
    };
    assert_eq!(attribute("ringfence.correlation_id"), r#"{"stringValue":"walk-1"}"#);
    assert_eq!(attribute("ringfence.attempts"), r#"{"intValue":"1"}"#);
    assert_eq!(attribute("ringfence.read_units"), r#"{"doubleValue":0.5}"#);
    assert_eq!(attribute("faas.coldstart"), r#"{"boolValue":false}"#);
}

#[tokio::test]
async fn what_is_no_span_or_is_one_already_is_not_forwarded() {
    let collector = Collector::start(StatusCode::OK, json!({})).await;
    let with = |member: &str, value: Value| {
        let mut line = line("c-1", None);
        line[member] = value;
        line
    };
    let malformed = json!({ "level": "INFO", "message": "hello", "span_id": "x" });
    let lines = [
        with("repeated", true.into()),
        with("sampled", false.into()),
        with("span_id", "0000000000000000".into()),
        with("trace_id", "4BF9".into()),
        with("timestamp", "yesterday".into()),
        malformed,
    ];
    forward(&collector.url, batch(OF_A_SLICE, &lines)).await.unwrap();
    // Lambda names a log stream after its function. Lines of forward-spans itself would come back for ever.
    let own = "2026/11/26/shop-ForwardSpans-1[$LATEST]0123";
    forward(&collector.url, batch(own, &[line("c-1", None)])).await.unwrap();
    let control = json!({
        "messageType": "CONTROL_MESSAGE", "owner": "CloudwatchLogs", "logGroup": "", "logStream": "",
        "subscriptionFilters": [],
        "logEvents": [{ "id": "1", "timestamp": 0, "message": line("c-1", None).to_string() }],
    });
    forward(&collector.url, packed(&control)).await.unwrap();
    assert_eq!(collector.requests().len(), 0);
    forward(&collector.url, batch(OF_A_SLICE, &[line("c-1", None)])).await.unwrap();
    assert_eq!(collector.requests().len(), 1);
}

#[tokio::test]
async fn many_spans_are_sent_in_several_requests_below_the_limits_of_x_ray() {
    let collector = Collector::start(StatusCode::OK, json!({})).await;
    let long = "c".repeat(128);
    let lines: Vec<_> = (0..2_500).map(|n| line(&format!("{n:0>128}"), None)).collect();
    let mut lines = lines;
    lines.iter_mut().for_each(|line| line["correlation_id"] = long.as_str().into());
    forward(&collector.url, batch(OF_A_SLICE, &lines)).await.unwrap();
    let sent = collector.requests();
    let spans: Vec<_> = sent.iter().map(|it| otlp::document(&it.body).spans().len()).collect();
    assert_eq!(spans, [2_000, 500]);
    assert!(sent.iter().all(|request| request.body.len() < 5_000_000));
}

#[tokio::test]
async fn a_collector_that_refuses_fails_the_invocation_and_one_that_takes_a_part_does_not() {
    let payload = || batch(OF_A_SLICE, &[line("c-1", None)]);
    let busy = Collector::start(StatusCode::SERVICE_UNAVAILABLE, json!("later\u{1b}")).await;
    let refused = forward(&busy.url, payload()).await.unwrap_err();
    assert!(refused.contains("503: \"later"), "{refused}");
    let partial = json!({ "partialSuccess": { "rejectedSpans": "1", "errorMessage": "old" } });
    let partial = Collector::start(StatusCode::OK, partial).await;
    forward(&partial.url, payload()).await.unwrap();
    for payload in
        [json!({}), json!({ "awslogs": { "data": "?" } }), json!({ "awslogs": { "data": "AAAA" } })]
    {
        let refused = forward(&partial.url, payload).await.unwrap_err();
        assert!(refused.starts_with("awslogs.data "), "{refused}");
    }
}

/// The template sets the variables that it reads.
#[test]
fn it_reads_the_url_of_its_collector() {
    let names = Variables::names(|variables| ForwardSpans::config(&(), variables));
    assert_eq!(names.required, ["SPANS_URL".to_owned()].into());
    assert_eq!(names.optional, ["AWS_CA_BUNDLE".to_owned()].into());
}
