//! The payloads of a slice's function.
//!
//! A direct caller sends a command alone, or a command with its surroundings, in which it is `command`. With
//! `failOnProblem` a problem is an error of the invocation.

use std::collections::BTreeMap;

use crate::{ApiGatewayV2httpRequest, Issuers, Problem, Sender, principal, request};
use aws_lambda_events::eventbridge::EventBridgeEvent;
use aws_lambda_events::http::HeaderMap;
use ringfence_aws::{Clock, LEVELS_MAX, TIME_WANTED, ms_of_rfc3339};
use ringfence_core::personal::{FORGOTTEN, MARKED, SEALED};
use ringfence_core::{
    Cause, CommandContext, CurrentError, Envelope, Metadata, Principal, PrincipalKind, Slice,
    TopicEvent, Traceparent, canonical_json, reaction_key,
};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::slice::json::{member, read, typed};

/// Largest command, in bytes of JSON: an event has at most 350 KB, so a larger command could not be recorded.
const COMMAND_BYTES_MAX: usize = 350 * 1024;
/// Longest text beside a command (its ids, principal, effective time), in bytes: each is an attribute of every event.
const NAME_BYTES_MAX: usize = 128;

/// The member of a direct invoke that makes a problem an error of the invocation.
const FAIL_ON_PROBLEM: &str = "failOnProblem";

/// The name of the effective time in problems.
const EFFECTIVE_AT: &str = "Effective-At (effectiveAt)";

/// The message for a command that is a list, a string or a number.
const NO_OBJECT: &str = "must be an object";

/// A payload, as text: JSON that is read has lost the keys that were given twice.
pub(crate) struct Payload<'t> {
    text: &'t str,
    pub(crate) sender: Sender,
}

/// A decoded invocation.
pub(crate) enum Invocation<S> {
    /// A command of a caller who waits for the answer, over HTTP or directly, or the problem with it.
    Command(Result<Box<S>, Problem>, Box<Surroundings>),
    /// An event of the EventTopic and its commands, each with its key.
    Event(Box<TopicEvent>, Vec<(String, S)>),
    /// An old event, sent again by the replay of this name. It has no commands.
    Replay(String),
}

/// The data that a caller sends along with a command.
#[derive(Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct Surroundings {
    /// The id of the command, which makes it take effect once.
    pub(crate) command_id: Option<String>,
    pub(crate) correlation_id: Option<String>,
    pub(crate) causation_id: Option<String>,
    /// The span of the sender.
    #[serde(deserialize_with = "traceparent")]
    pub(crate) traceparent: Option<Traceparent>,
    /// A direct caller names itself.
    #[serde(deserialize_with = "direct_principal")]
    pub(crate) principal: Option<Principal>,
    /// The slice whose reaction the command is. No caller can set it.
    #[serde(skip)]
    pub(crate) by: Option<&'static str>,
    /// When the reported action happened, if that was before the command was sent. No decision looks at it.
    pub(crate) effective_at: Option<String>,
}

impl<'t> Payload<'t> {
    pub(crate) fn of(text: &'t str) -> Self {
        let has = |pointer: &str| pointer.split('/').skip(1).try_fold(text, member).is_some();
        Self { text, sender: Sender::by(has) }
    }
}

impl Payload<'_> {
    /// Whether a direct caller wants a problem as an error. That is known even if the payload can't be read.
    pub(crate) fn fails_on_problem(&self) -> bool {
        self.sender == Sender::Direct && member(self.text, FAIL_ON_PROBLEM) == Some("true")
    }

    /// Parses the parts that do not depend on the slice. It is a separate function so that it is compiled once, and not
    /// for each slice.
    pub(crate) fn read(
        &self,
        issuers: &Issuers,
        scopes: Option<&[&str]>,
    ) -> Result<Given, Problem> {
        match self.sender {
            Sender::Http => {
                let json = serde_json::from_str(self.text);
                let json = json.map_err(|error| Problem::malformed("payload", error))?;
                let (command, surroundings) = of_request(request(json)?, issuers, scopes)?;
                Ok(Given::Command(command, Box::new(surroundings)))
            }
            Sender::Bus => event_of(self.text),
            Sender::Direct => direct(self.text),
        }
    }
}

/// A payload for any slice.
pub(crate) enum Given {
    /// The JSON of a command, or the problem with it, and the data that was sent along with it.
    Command(Result<Value, Problem>, Box<Surroundings>),
    /// An event, whose source is its context.
    Event(Box<EventBridgeEvent<TopicEvent>>),
}

fn direct(text: &str) -> Result<Given, Problem> {
    // A command may nest as deep inside a payload as without it.
    let around = usize::from(member(text, "command").is_some());
    let mut json = object(text, LEVELS_MAX + around)?;
    let Some(command) = json.remove("command") else {
        return Ok(Given::Command(Ok(json.into()), Box::default()));
    };
    // The answer uses it.
    if json.remove(FAIL_ON_PROBLEM).is_some_and(|fails| !fails.is_boolean()) {
        return Err(Problem::malformed(FAIL_ON_PROBLEM, "must be true or false"));
    }
    let surroundings: Surroundings = typed("", json.into())?;
    surroundings.check()?;
    let command = match command.is_object() {
        true => Ok(command),
        false => Err(Problem::malformed("command", NO_OBJECT)),
    };
    Ok(Given::Command(command, Box::new(surroundings)))
}

/// The JSON of the command in a request, or the problem with it, and the data that was sent along with it. `scopes` are
/// the scopes of the slice's route.
///
/// # Errors
/// That data is refused, or the slice has no route.
pub(crate) fn of_request(
    request: ApiGatewayV2httpRequest,
    issuers: &Issuers,
    scopes: Option<&[&str]>,
) -> Result<(Result<Value, Problem>, Surroundings), Problem> {
    let scopes = scopes.ok_or_else(Problem::slice_not_found)?;
    let principal = principal(&request, issuers);
    let mut surroundings = Surroundings::of_headers(&request.headers);
    surroundings.check()?;
    let allowed = principal.and_then(|principal| {
        // The API has checked the scopes of the route. Only here they are those of the slice.
        let may_use = principal.as_ref().is_none_or(|principal| principal.may_use(scopes));
        // Set after the check: it comes from the authorizer, and the subject of a token can be long.
        surroundings.principal = principal;
        may_use.then_some(()).ok_or_else(|| Problem::scope_missing(scopes))
    });
    let command = allowed.and_then(|()| object(&body(request)?, LEVELS_MAX)).map(Value::from);
    Ok((command, surroundings))
}

fn event_of(text: &str) -> Result<Given, Problem> {
    // A program beside this stack may have put it on the bus.
    let json = read(text, ringfence_core::json::LEVELS_MAX)?;
    Ok(Given::Event(Box::new(typed("", json)?)))
}

impl<S: Slice> Invocation<S> {
    /// What the payload means for the slice.
    ///
    /// # Errors
    /// The slice does not react to the event, or can't.
    pub(crate) fn of(given: Given) -> Result<Self, Problem> {
        match given {
            Given::Command(command, surroundings) => {
                Ok(Self::Command(command.and_then(|command| of_caller(command)), surroundings))
            }
            Given::Event(event) => Self::event(Box::new(event.detail), &event.source),
        }
    }

    fn event(event: Box<TopicEvent>, source: &str) -> Result<Self, Problem> {
        if let Some(replay) = event.replay {
            return Ok(Self::Replay(replay));
        }
        let Some(cause) = cause::<S>(&event, source) else {
            let (name, event_type) = (S::NAME, &event.event_type);
            let why = format_args!("{name} does not react to {event_type} of {source:?}");
            return Err(Problem::malformed("detail-type", why));
        };
        let current = cause.current(&event).map_err(|error| match error {
            CurrentError::Newer(_) => Problem::newer_version(),
            CurrentError::Upcast { source, .. } => Problem::malformed("detail.data", source),
        })?;
        let commands =
            S::react(&current).map_err(|error| Problem::malformed("detail.data", error))?;
        let commands = keyed(&event, commands)?;
        Ok(Self::Event(event, commands))
    }
}

/// The cause of the slice that an event of this source is.
pub(crate) fn cause<S: Slice>(event: &TopicEvent, source: &str) -> Option<&'static Cause> {
    let mut causes = S::REACTS_TO.iter();
    causes.find(|cause| cause.event_type == event.event_type && cause.context == source)
}

/// A command in the JSON of a caller. The forms of personal data are not for callers: a sealed value could be another
/// person's.
///
/// # Errors
/// It is not a command of the type.
pub(crate) fn of_caller<S: Slice>(command: Value) -> Result<Box<S>, Problem> {
    if let Some(key) = [MARKED, SEALED, FORGOTTEN].into_iter().find(|key| has_key(&command, key)) {
        let why = format_args!("is a key of personal data in a store; send the plain value");
        return Err(Problem::malformed(key, why));
    }
    typed("", command)
}

fn has_key(json: &Value, key: &str) -> bool {
    match json {
        Value::Array(values) => values.iter().any(|value| has_key(value, key)),
        Value::Object(fields) => {
            fields.contains_key(key) || fields.values().any(|value| has_key(value, key))
        }
        _ => false,
    }
}

/// Gives each command of an event its key, which consists of the event and of the command's subject. So a later version
/// of the reaction, which may make other commands or another order, can't take effect a second time.
///
/// # Errors
/// Two different commands have the same subject: later nobody could tell which one took effect.
fn keyed<S: Slice>(event: &TopicEvent, commands: Vec<S>) -> Result<Vec<(String, S)>, Problem> {
    let mut known = BTreeMap::new();
    let mut keyed = Vec::with_capacity(commands.len());
    for command in commands {
        let about = command.about();
        let json = canonical_json(&command);
        match known.get(&about) {
            Some(same) if *same == json => {}
            Some(_) => {
                return Err(Problem::malformed(
                    "detail",
                    format_args!(
                        "{} makes two different commands about one thing of an event; make one of \
                         them, or tell them apart in `about`, which is {about:?} of both",
                        S::NAME
                    ),
                ));
            }
            None => {
                keyed.push((reaction_key(&event.id, &about), command));
                known.insert(about, json);
            }
        }
    }
    Ok(keyed)
}

/// Parses the JSON of a caller. It must be an object. serde would also take an array of the fields' values, but its
/// meaning would change with the order of the fields.
fn object(text: &str, levels_max: usize) -> Result<Map<String, Value>, Problem> {
    if text.len() > COMMAND_BYTES_MAX {
        return Err(Problem::too_large(format!(
            "body: {} bytes, limit {COMMAND_BYTES_MAX}; an event holds no more",
            text.len()
        )));
    }
    match read(text, levels_max)? {
        Value::Object(object) => Ok(object),
        _ => Err(Problem::malformed("body", NO_OBJECT)),
    }
}

fn body(request: ApiGatewayV2httpRequest) -> Result<String, Problem> {
    let empty = || Problem::malformed("body", "is empty; send the command as JSON");
    let body = request.body.filter(|body| !body.is_empty()).ok_or_else(empty)?;
    if !request.is_base64_encoded {
        return Ok(body);
    }
    let bytes = aws_smithy_types::base64::decode(body)
        .map_err(|_| Problem::malformed("body", "is not base64"))?;
    String::from_utf8(bytes).map_err(|_| Problem::malformed("body", "is not UTF-8"))
}

/// An invalid one is ignored, as the W3C's Trace Context says.
fn traceparent<'de, D: Deserializer<'de>>(json: D) -> Result<Option<Traceparent>, D::Error> {
    let text = Option::<String>::deserialize(json)?;
    Ok(text.and_then(|text| text.parse().ok()))
}

/// A direct caller, by the name that it gives itself.
fn direct_principal<'de, D: Deserializer<'de>>(json: D) -> Result<Option<Principal>, D::Error> {
    let name = Option::<String>::deserialize(json)?;
    Ok(name.map(|name| Principal::new(PrincipalKind::Direct, None, name)))
}

impl Surroundings {
    fn of_headers(headers: &HeaderMap) -> Self {
        let header = |name: &str| {
            headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        Self {
            command_id: header("idempotency-key"),
            correlation_id: header("x-correlation-id"),
            causation_id: None,
            traceparent: header("traceparent").and_then(|text| text.parse().ok()),
            principal: None,
            by: None,
            effective_at: header("effective-at"),
        }
    }

    /// The envelope of an event's command for this slice, under the command's key. The command's span is a child of the
    /// span of the command that wrote the event.
    pub(crate) fn of_event(
        event: &TopicEvent,
        slice: &'static str,
        key: String,
        clock: &Clock,
    ) -> Envelope {
        let of_cause = |name| event.meta.text(name).map(str::to_owned);
        let surroundings = Self {
            command_id: Some(key),
            correlation_id: of_cause("correlationId"),
            causation_id: Some(event.id.clone()),
            traceparent: Traceparent::of_event(&event.meta),
            principal: event.meta.text(Metadata::PRINCIPAL).map(Principal::from),
            by: Some(slice),
            effective_at: None,
        };
        let cause_ms = ms_of_rfc3339(&event.recorded_at);
        Envelope { cause_ms, ..surroundings.envelope(slice, clock) }
    }

    /// The envelope of a command of this slice without a deadline. Its events get the span of the command.
    pub(crate) fn envelope(self, slice: &str, clock: &Clock) -> Envelope {
        let Self { command_id, correlation_id, causation_id, traceparent, .. } = self;
        let Self { principal, by, effective_at, .. } = self;
        let idempotency_key = command_id.clone();
        let command_id = command_id.unwrap_or_else(|| clock.uuid().to_string());
        let span = Traceparent::of_command(&command_id, slice, traceparent);
        let mut metadata = Metadata::default();
        let entries = [
            ("commandId", Some(command_id.clone())),
            ("correlationId", Some(correlation_id.unwrap_or_else(|| command_id.clone()))),
            ("causationId", Some(causation_id.unwrap_or_else(|| command_id.clone()))),
            (Metadata::TRACEPARENT, Some(span.to_string())),
            (Metadata::PRINCIPAL, principal.as_ref().map(Principal::to_string)),
            (Metadata::BY, by.map(str::to_owned)),
            ("effectiveAt", effective_at),
        ];
        for (key, value) in entries {
            if let Some(value) = value {
                metadata.insert(key, value).expect("none of these keys is the log's own");
            }
        }
        let (now_ms, is_of_stack) = (clock.now_ms(), by.is_some());
        let context = CommandContext { now_ms, command_id, principal, is_of_stack };
        Envelope { context, metadata, idempotency_key, cause_ms: None, deadline_ms: None }
    }

    /// Each becomes an attribute of every event, so each is short and plain.
    fn check(&self) -> Result<(), Problem> {
        let principal = self.principal.as_ref().map(|principal| principal.id.clone());
        let names = [
            ("Idempotency-Key (commandId)", &self.command_id),
            ("X-Correlation-Id (correlationId)", &self.correlation_id),
            ("causationId", &self.causation_id),
            ("principal", &principal),
            (EFFECTIVE_AT, &self.effective_at),
        ];
        for (field, value) in names {
            let Some(value) = value else { continue };
            let plain = value.bytes().all(|byte| byte.is_ascii_graphic());
            if value.is_empty() || value.len() > NAME_BYTES_MAX || !plain {
                let limit = format!("must be 1 to {NAME_BYTES_MAX} visible ASCII characters");
                return Err(Problem::malformed(field, limit));
            }
        }
        // Only keys of reactions have a slash, so no caller can use up the key of a reaction.
        if self.command_id.as_ref().is_some_and(|id| id.contains('/')) {
            return Err(Problem::malformed(names[0].0, "must not contain /"));
        }
        if self.effective_at.as_ref().is_some_and(|text| ms_of_rfc3339(text).is_none()) {
            return Err(Problem::malformed(EFFECTIVE_AT, TIME_WANTED));
        }
        Ok(())
    }
}
