//! The services that take forms, in their formats: CloudFormation knows the outputs of the one stack and when it was
//! started, CloudWatch how long the first message of a queue has waited.

use std::collections::BTreeMap;

use axum::{
    http::StatusCode,
    response::{IntoResponse, Response},
};
use ringfence_core::rfc3339;

use crate::{clock, queues::Queues, template::STACK};

/// The answer to a form.
pub(crate) fn answer(
    form: &[u8],
    (outputs, api): (&BTreeMap<String, String>, &str),
    starts: &[u64],
    queues: &Queues,
) -> Response {
    // The names of stacks and queues need no escape.
    let field = |name: &str| {
        let mut fields = form.split(|byte| *byte == b'&');
        let value = fields.find_map(|field| field.strip_prefix(format!("{name}=").as_bytes()));
        String::from_utf8_lossy(value.unwrap_or_default()).into_owned()
    };
    let (action, stack) = (field("Action"), field("StackName"));
    let answer = match &*action {
        "DescribeStacks" | "DescribeStackEvents" if stack != STACK => Err((
            "ValidationError",
            format!("Stack with id {stack} does not exist; this one is {STACK}"),
        )),
        "DescribeStacks" => Ok(described(outputs, api)),
        "DescribeStackEvents" => Ok(events(starts)),
        "GetMetricStatistics" => waited(queues, &field("Dimensions.member.1.Value")),
        _ => Err((
            "InvalidAction",
            "this machine has DescribeStacks, DescribeStackEvents and GetMetricStatistics"
                .to_owned(),
        )),
    };
    let (status, body) = match answer {
        Ok(body) => (StatusCode::OK, body),
        Err((code, message)) => (StatusCode::BAD_REQUEST, error(code, &message)),
    };
    (status, [("content-type", "text/xml")], body).into_response()
}

/// The starts of the stack as its events, the newest first. The first one made it, if it is known.
fn events(starts: &[u64]) -> String {
    let event = |(n, start): (usize, &u64)| {
        let (time, status) = (rfc3339(*start), if n == 0 { "CREATE" } else { "UPDATE" });
        format!(
            "<member><StackId>{STACK}</StackId><PhysicalResourceId>{STACK}</PhysicalResourceId>\
             <ResourceType>AWS::CloudFormation::Stack</ResourceType><Timestamp>{time}</Timestamp>\
             <ResourceStatus>{status}_COMPLETE</ResourceStatus></member>"
        )
    };
    let events: String =
        starts.iter().enumerate().rev().filter(|(_, start)| **start > 0).map(event).collect();
    format!(
        "<DescribeStackEventsResponse><DescribeStackEventsResult><StackEvents>{events}</StackEvents>\
         </DescribeStackEventsResult></DescribeStackEventsResponse>"
    )
}

/// How many seconds the first message of a queue has waited, as the metric of this moment.
fn waited(queues: &Queues, queue: &str) -> Result<String, (&'static str, String)> {
    let sent_ms = queues.oldest_ms(queue);
    let sent_ms = sent_ms.map_err(|error| ("InvalidParameterValue", error.to_string()))?;
    let now = clock::now();
    let point = sent_ms.map(|sent_ms| {
        let (time, seconds) = (now.to_rfc3339(), (now.timestamp_millis() - sent_ms) / 1_000);
        format!("<member><Timestamp>{time}</Timestamp><Maximum>{seconds}</Maximum></member>")
    });
    let point = point.unwrap_or_default();
    Ok(format!(
        "<GetMetricStatisticsResponse><GetMetricStatisticsResult><Datapoints>{point}</Datapoints>\
         </GetMetricStatisticsResult></GetMetricStatisticsResponse>"
    ))
}

fn described(outputs: &BTreeMap<String, String>, api: &str) -> String {
    let member = |(name, value): (&String, &String)| {
        // API Gateway's host does not exist on this machine.
        let value = if value.contains(".execute-api.") { api } else { value };
        let (name, value) = (escape(name), escape(value));
        format!("<member><OutputKey>{name}</OutputKey><OutputValue>{value}</OutputValue></member>")
    };
    let outputs: String = outputs.iter().map(member).collect();
    format!(
        "<DescribeStacksResponse><DescribeStacksResult><Stacks><member>\
         <StackName>{STACK}</StackName><StackStatus>CREATE_COMPLETE</StackStatus>\
         <Outputs>{outputs}</Outputs>\
         </member></Stacks></DescribeStacksResult></DescribeStacksResponse>"
    )
}

fn error(code: &str, message: &str) -> String {
    let message = escape(message);
    format!(
        "<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>{message}</Message>\
         </Error></ErrorResponse>"
    )
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}
