//! What a function is invoked with.
//!
//! | payload | told by |
//! |---|---|
//! | API Gateway HTTP API request, format 2.0 | `requestContext.http` |
//! | EventBridge event of the EventTopic | `detail-type` and `detail` |
//! | command with surroundings | `command` |
//! | bare command | anything else |

use aws_lambda_events::apigw::ApiGatewayV2httpRequest;
use ringfence::TopicEvent;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use crate::handler::Handler;
use crate::problem::Problem;

/// Largest command, in bytes of JSON: an event has at most 350 KB, so a larger command could not be
/// recorded.
const COMMAND_BYTES_MAX: usize = 350 * 1024;
/// Longest name that a caller gives (command, correlation and causation id, traceparent, principal),
/// in bytes: each is an attribute of every event.
const NAME_BYTES_MAX: usize = 128;

/// An invocation, understood.
pub(crate) enum Invocation<C> {
    /// A command of a caller who waits, over HTTP or not.
    Command(Box<C>, Surroundings),
    /// An event of the EventTopic and the commands that it leads to.
    Event(Box<TopicEvent>, Vec<C>),
    /// An event that happened long ago, sent again by the replay of this name: nothing follows.
    Replay(String),
}

/// What a caller says around a command.
#[derive(Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct Surroundings {
    /// Makes the command take effect once, and names it.
    pub(crate) command_id: Option<String>,
    pub(crate) correlation_id: Option<String>,
    pub(crate) causation_id: Option<String>,
    pub(crate) traceparent: Option<String>,
    pub(crate) principal: Option<String>,
}

impl<C: DeserializeOwned> Invocation<C> {
    pub(crate) fn parse<H: Handler<Command = C>>(payload: Value) -> Result<Self, Problem> {
        match payload {
            Value::Object(map) if is_http(&map) => Self::http(map.into()),
            Value::Object(map) if map.contains_key("detail-type") => Self::event::<H>(map.into()),
            Value::Object(mut map) if map.contains_key("command") => {
                let command = map.remove("command").unwrap_or_default();
                let surroundings: Surroundings = from_json(map.into())?;
                surroundings.check()?;
                Ok(Self::Command(Box::new(self::command(command)?), surroundings))
            }
            command => {
                Ok(Self::Command(Box::new(self::command(command)?), Surroundings::default()))
            }
        }
    }

    fn http(payload: Value) -> Result<Self, Problem> {
        let request: ApiGatewayV2httpRequest = from_json(payload)?;
        let mut surroundings = Surroundings::of_request(&request);
        surroundings.check()?;
        // After the check: the authorizer gives it, and an ARN can be long.
        surroundings.principal = principal(&request);
        let body = body(request)?;
        if body.len() > COMMAND_BYTES_MAX {
            return Err(Problem::too_large(format!(
                "body: {} bytes, limit {COMMAND_BYTES_MAX}; an event holds no more",
                body.len()
            )));
        }
        let json = serde_json::from_slice(&body).map_err(|e| Problem::malformed("body", e))?;
        Ok(Self::Command(Box::new(command(json)?), surroundings))
    }

    fn event<H: Handler<Command = C>>(mut payload: Value) -> Result<Self, Problem> {
        let event: TopicEvent = from_json(payload["detail"].take())?;
        if let Some(replay) = event.replay {
            return Ok(Self::Replay(replay));
        }
        match H::react(&event) {
            Ok(Some(commands)) => Ok(Self::Event(Box::new(event), commands)),
            Ok(None) => Err(Problem::malformed(
                "detail-type",
                format!("{} does not react to {}", H::NAME, event.event_type),
            )),
            Err(error) => Err(Problem::malformed("detail.data", error)),
        }
    }
}

fn is_http(payload: &serde_json::Map<String, Value>) -> bool {
    payload.get("requestContext").is_some_and(|context| context.get("http").is_some())
}

fn body(request: ApiGatewayV2httpRequest) -> Result<Vec<u8>, Problem> {
    let body = request.body.unwrap_or_default();
    if body.is_empty() {
        return Err(Problem::malformed("body", "is empty; send the command as JSON"));
    }
    if !request.is_base64_encoded {
        return Ok(body.into_bytes());
    }
    aws_smithy_types::base64::decode(body).map_err(|error| Problem::malformed("body", error))
}

/// A command is an object: serde would take an array of its fields' values as well, which says
/// something else as soon as the fields change.
fn command<C: DeserializeOwned>(json: Value) -> Result<C, Problem> {
    if json.is_object() {
        from_json(json)
    } else {
        Err(Problem::malformed("body", "not an object"))
    }
}

fn from_json<T: DeserializeOwned>(json: Value) -> Result<T, Problem> {
    serde_path_to_error::deserialize(json).map_err(|error| {
        let message = error.inner().to_string();
        // serde names a field that is not there in its message alone.
        let missing = message.strip_prefix("missing field `").and_then(|m| m.split('`').next());
        match (error.path().to_string().as_str(), missing) {
            (".", Some(field)) => Problem::malformed(field, "is missing"),
            (".", None) => Problem::malformed("body", message),
            (path, Some(field)) => Problem::malformed(&format!("{path}.{field}"), "is missing"),
            (path, None) => Problem::malformed(path, message),
        }
    })
}

/// Whether `text` has the form of a traceparent of version 00: four fields of hexadecimal digits.
fn is_traceparent(text: &str) -> bool {
    let hex = |c: char| matches!(c, '0'..='9' | 'a'..='f' | '-');
    text.chars().all(hex) && text.split('-').map(str::len).eq([2, 32, 16, 2])
}

/// Who calls, as API Gateway's authorizer says.
fn principal(request: &ApiGatewayV2httpRequest) -> Option<String> {
    let authorizer = request.request_context.authorizer.as_ref()?;
    let subject = authorizer.jwt.as_ref().and_then(|jwt| jwt.claims.get("sub").cloned());
    subject.or_else(|| authorizer.iam.as_ref()?.user_arn.clone())
}

impl Surroundings {
    fn of_request(request: &ApiGatewayV2httpRequest) -> Self {
        let header = |name| {
            let value = request.headers.get(name)?;
            Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        Self {
            command_id: header("idempotency-key"),
            correlation_id: header("x-correlation-id"),
            causation_id: None,
            // One that is malformed is ignored, as the W3C's Trace Context has it.
            traceparent: header("traceparent").filter(|text| is_traceparent(text)),
            principal: None,
        }
    }

    /// Each becomes an attribute of every event, so each is bounded and plain.
    fn check(&self) -> Result<(), Problem> {
        let names = [
            ("Idempotency-Key (commandId)", &self.command_id),
            ("X-Correlation-Id (correlationId)", &self.correlation_id),
            ("causationId", &self.causation_id),
            ("traceparent", &self.traceparent),
            ("principal", &self.principal),
        ];
        for (field, value) in names {
            let Some(value) = value else { continue };
            let plain = value.bytes().all(|byte| byte.is_ascii_graphic());
            if value.is_empty() || value.len() > NAME_BYTES_MAX || !plain {
                let limit = format!("must be 1 to {NAME_BYTES_MAX} visible ASCII characters");
                return Err(Problem::malformed(field, limit));
            }
        }
        // The commands of a reaction are named `<event id>/<n>`; nobody may take such a name before.
        if self.command_id.as_ref().is_some_and(|id| id.contains('/')) {
            return Err(Problem::malformed(names[0].0, "must not contain /"));
        }
        Ok(())
    }
}
