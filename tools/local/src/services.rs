//! The endpoint for AWS clients in place of EventBridge, SQS, S3, SES, Systems Manager, CloudFormation and CloudWatch,
//! and the receiver of webhooks.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use axum::{
    Router,
    body::Bytes,
    extract::{DefaultBodyLimit, State},
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
    routing::post,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    buckets::Buckets,
    bus::{BusEntry, Buses},
    environment::Environment,
    forms,
    inbox::Inbox,
    invoke::Invoke,
    queues::{MessageOrder, Queues, Received, SendError, UnknownQueue},
    s3,
};

/// The most entries of one PutEvents call.
const ENTRIES_MAX: usize = 10;
/// The most bytes of all entries of one PutEvents call: 1 MB.
const ENTRIES_BYTES_MAX: usize = 1024 * 1024;
/// The most bytes of an SQS message: 1 MB.
const MESSAGE_BYTES_MAX: usize = 1024 * 1024;
/// The most messages of one ReceiveMessage call.
const MESSAGES_MAX: usize = 10;
/// The longest time for which a message is hidden: twelve hours.
const VISIBILITY_MAX_S: u64 = 12 * 3600;
/// The code for a queue that does not exist, and its name in SQS's older protocol.
const NO_QUEUE: &str = "QueueDoesNotExist";
const NO_QUEUE_QUERY: &str = "AWS.SimpleQueueService.NonExistentQueue;Sender";
/// The most bytes of a request's body, enough for the limits above in escaped JSON.
const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The parts that the endpoint serves.
pub struct Services<I> {
    /// The buses.
    pub bus: Buses<I>,
    /// The queues.
    pub queues: Queues,
    /// The buckets.
    pub buckets: Buckets,
    /// The mails and webhooks.
    pub inbox: Inbox,
    /// The parameters of the Parameter Store that functions read.
    pub parameters: Environment,
    /// The API's URL, in the outputs.
    pub api: String,
    /// The stack's outputs, for CloudFormation.
    pub outputs: BTreeMap<String, String>,
    /// When the stack was started, in milliseconds since 1970.
    pub starts: Vec<u64>,
}

/// The endpoint's routes.
pub fn router<I: Invoke>(services: Services<I>) -> Router {
    let s3 = s3::router(services.buckets.clone());
    let inbox = services.inbox.routes(BODY_BYTES_MAX);
    Router::new()
        .route("/", post(call))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .with_state(Arc::new(services))
        .merge(inbox)
        .merge(s3)
}

async fn call<I: Invoke>(
    State(services): State<Arc<Services<I>>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let target = headers.get("x-amz-target").and_then(|value| value.to_str().ok());
    if target.is_none() {
        let Services { outputs, api, starts, queues, .. } = &*services;
        return forms::answer(&body, (outputs, api), starts, queues);
    }
    let answer = match target {
        Some("AWSEvents.PutEvents") => put_events(&services, &body),
        Some("AmazonSQS.SendMessage") => send_message(&services, &body),
        Some("AmazonSQS.ReceiveMessage") => receive_message(&services, &body),
        Some("AmazonSQS.DeleteMessage") => delete_message(&services, &body),
        Some("AmazonSQS.ChangeMessageVisibility") => change_visibility(&services, &body),
        Some("AmazonSQS.GetQueueAttributes") => queue_attributes(&services, &body),
        Some("AmazonSSM.GetParameter") => get_parameter(&services, &body),
        other => Err((
            "UnknownOperationException",
            format!("this machine does not have {}", other.unwrap_or("-")),
        )),
    };
    match answer {
        Ok(answer) => {
            ([("content-type", "application/x-amz-json-1.1")], answer.to_string()).into_response()
        }
        Err((code, message)) => {
            let body = json!({ "__type": code, "message": message }).to_string();
            let headers = [
                ("content-type", "application/x-amz-json-1.1"),
                // Clients of SQS read the code of its older protocol here.
                ("x-amzn-query-error", if code == NO_QUEUE { NO_QUEUE_QUERY } else { code }),
            ];
            (StatusCode::BAD_REQUEST, headers, body).into_response()
        }
    }
}

type Call = Result<Value, (&'static str, String)>;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct PutEvents {
    entries: Vec<BusEntry>,
}

fn put_events<I: Invoke>(services: &Services<I>, body: &[u8]) -> Call {
    let request: PutEvents = parse(body)?;
    let (count, bytes) =
        (request.entries.len(), request.entries.iter().map(BusEntry::bytes).sum::<usize>());
    if count == 0 || count > ENTRIES_MAX {
        let message = format!("{count} entries: a call has 1 to {ENTRIES_MAX}");
        return Err(("ValidationException", message));
    }
    if bytes > ENTRIES_BYTES_MAX {
        let message = format!("{bytes} bytes of entries: a call has at most {ENTRIES_BYTES_MAX}");
        return Err(("ValidationException", message));
    }
    let mut failed = 0;
    let mut put = |entry| match services.bus.put(entry) {
        Ok(id) => json!({ "EventId": id }),
        Err(refused) => {
            failed += 1;
            json!({ "ErrorCode": refused.code, "ErrorMessage": refused.message })
        }
    };
    let entries: Vec<_> = request.entries.into_iter().map(&mut put).collect();
    Ok(json!({ "FailedEntryCount": failed, "Entries": entries }))
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct SendMessage {
    queue_url: String,
    message_body: String,
    message_group_id: Option<String>,
    message_deduplication_id: Option<String>,
}

fn send_message<I: Invoke>(services: &Services<I>, body: &[u8]) -> Call {
    let request: SendMessage = parse(body)?;
    let bytes = request.message_body.len();
    if bytes == 0 || bytes > MESSAGE_BYTES_MAX {
        let message = format!("{bytes} bytes: a message has 1 to {MESSAGE_BYTES_MAX}");
        return Err(("InvalidParameterValue", message));
    }
    if let Some(wrong) = request.message_body.chars().find(|c| !is_of_xml(*c)) {
        let message = format!("a message can't have the character {wrong:?}");
        return Err(("InvalidMessageContents", message));
    }
    let SendMessage { queue_url, message_body, message_group_id, message_deduplication_id } =
        request;
    let order = MessageOrder { group: message_group_id, deduplication: message_deduplication_id };
    let sent = services.queues.put(&queue_url, message_body, BTreeMap::new(), order);
    let id = sent.map_err(|error| match error {
        SendError::Unknown(error) => no_queue(error),
        SendError::Lacks { .. } => ("MissingParameter", error.to_string()),
        SendError::Invalid { .. } => ("InvalidParameterValue", error.to_string()),
    })?;
    Ok(json!({ "MessageId": id }))
}

/// The characters of XML 1.0, which SQS takes.
fn is_of_xml(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{FFFD}' | '\u{10000}'..)
}

/// The time for which a message is hidden, in seconds.
fn visibility(seconds: u64) -> Result<Duration, (&'static str, String)> {
    if seconds > VISIBILITY_MAX_S {
        let message = format!("VisibilityTimeout {seconds}: it is 0 to {VISIBILITY_MAX_S} seconds");
        return Err(("InvalidParameterValue", message));
    }
    Ok(Duration::from_secs(seconds))
}

fn no_queue(error: UnknownQueue) -> (&'static str, String) {
    (NO_QUEUE, error.to_string())
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ReceiveMessage {
    queue_url: String,
    max_number_of_messages: Option<usize>,
    /// The time in seconds.
    visibility_timeout: Option<u64>,
    /// Names of attributes. Without them, messages come without attributes.
    #[serde(default)]
    message_attribute_names: Vec<String>,
    /// Names of SQS's attributes. Without them, messages come without those.
    #[serde(default)]
    message_system_attribute_names: Vec<String>,
}

/// Answers immediately, whatever time the request wants to wait.
fn receive_message<I: Invoke>(services: &Services<I>, body: &[u8]) -> Call {
    let request: ReceiveMessage = parse(body)?;
    let max = request.max_number_of_messages.unwrap_or(1);
    if max == 0 || max > MESSAGES_MAX {
        let message = format!("MaxNumberOfMessages {max}: a call takes 1 to {MESSAGES_MAX}");
        return Err(("InvalidParameterValue", message));
    }
    let visibility = request.visibility_timeout.map(visibility).transpose()?;
    let received = services.queues.receive(&request.queue_url, max, visibility);
    let mut received = received.map_err(no_queue)?;
    let is_asked =
        |asked: &[String], name: &String| asked.iter().any(|it| it == name || it == "All");
    for Received { message, system, .. } in &mut received {
        message.attributes.retain(|name, _| is_asked(&request.message_attribute_names, name));
        system.retain(|name, _| is_asked(&request.message_system_attribute_names, name));
    }
    Ok(json!({ "Messages": received }))
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct DeleteMessage {
    queue_url: String,
    receipt_handle: String,
}

/// An old receipt deletes nothing. As on AWS, that is an error only for a FIFO queue.
fn delete_message<I: Invoke>(services: &Services<I>, body: &[u8]) -> Call {
    let DeleteMessage { queue_url, receipt_handle } = parse(body)?;
    let is_deleted = services.queues.delete(&queue_url, &receipt_handle).map_err(no_queue)?;
    let attributes = services.queues.attributes(&queue_url).map_err(no_queue)?;
    if !is_deleted && attributes.contains_key("FifoQueue") {
        let message = "the receipt handle has expired".to_owned();
        return Err(("InvalidParameterValue", message));
    }
    Ok(json!({}))
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ChangeMessageVisibility {
    queue_url: String,
    receipt_handle: String,
    /// The time in seconds.
    visibility_timeout: u64,
}

fn change_visibility<I: Invoke>(services: &Services<I>, body: &[u8]) -> Call {
    let request: ChangeMessageVisibility = parse(body)?;
    let visibility = visibility(request.visibility_timeout)?;
    let ChangeMessageVisibility { queue_url, receipt_handle, .. } = request;
    match services.queues.hide(&queue_url, &receipt_handle, visibility).map_err(no_queue)? {
        true => Ok(json!({})),
        false => Err(("ReceiptHandleIsInvalid", "no message has this receipt".to_owned())),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct GetQueueAttributes {
    queue_url: String,
    #[serde(default)]
    attribute_names: Vec<String>,
}

fn queue_attributes<I: Invoke>(services: &Services<I>, body: &[u8]) -> Call {
    let GetQueueAttributes { queue_url, attribute_names } = parse(body)?;
    let mut attributes = services.queues.attributes(&queue_url).map_err(no_queue)?;
    attributes.retain(|name, _| attribute_names.iter().any(|it| it == name || it == "All"));
    Ok(json!({ "Attributes": attributes }))
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct GetParameter {
    name: String,
}

fn get_parameter<I: Invoke>(services: &Services<I>, body: &[u8]) -> Call {
    let GetParameter { name } = parse(body)?;
    let value = services.parameters.get(&name).ok_or_else(|| {
        let message = format!("set the variable {name} before the stack starts");
        ("ParameterNotFound", message)
    })?;
    Ok(
        json!({ "Parameter": { "Name": name, "Type": "SecureString", "Value": value, "Version": 1 } }),
    )
}

fn parse<T: serde::de::DeserializeOwned>(body: &[u8]) -> Result<T, (&'static str, String)> {
    serde_json::from_slice(body).map_err(|error| ("SerializationException", error.to_string()))
}

#[cfg(test)]
#[path = "services_tests.rs"]
mod tests;
