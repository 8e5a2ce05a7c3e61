//! CloudFormation's DescribeStacks, in its format: the outputs of the one stack.

use std::collections::BTreeMap;

use axum::{
    http::StatusCode,
    response::{IntoResponse, Response},
};

use crate::template::STACK;

/// The answer to a form.
pub(crate) fn answer(form: &[u8], outputs: &BTreeMap<String, String>, api: &str) -> Response {
    let field = |name: &str| {
        let mut fields = form.split(|byte| *byte == b'&');
        fields.find_map(|field| field.strip_prefix(format!("{name}=").as_bytes()))
    };
    let (status, body) = match (field("Action"), field("StackName")) {
        // The name of this stack needs no escape.
        (Some(b"DescribeStacks"), Some(stack)) if stack == STACK.as_bytes() => {
            (StatusCode::OK, described(outputs, api))
        }
        (Some(b"DescribeStacks"), Some(stack)) => {
            let stack = String::from_utf8_lossy(stack);
            let message = format!("Stack with id {stack} does not exist; this one is {STACK}");
            (StatusCode::BAD_REQUEST, error("ValidationError", &message))
        }
        _ => (
            StatusCode::BAD_REQUEST,
            error("InvalidAction", "this machine has only DescribeStacks"),
        ),
    };
    (status, [("content-type", "text/xml")], body).into_response()
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
