//! Dead letters: work that failed and was kept, and how to do it again.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display, Formatter};
use std::ops::Range;

use anyhow::{Context, Result, anyhow, bail};
use ringfence_aws::ms_of_rfc3339;
use ringfence_core::{BoundaryId, LogKind};
use ringfence_document_log::StreamName;
use ringfence_feed::Partition;
use ringfence_lambda::slice::QueuedCommand;
use ringfence_services::topic::TopicEntry;
use ringfence_stack::Stack;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::json::from_json;

/// The member of an event's detail with its history. Only a redrive adds it.
const REDRIVEN: &str = "redriven";

/// CloudFormation cuts no shorter logical id in the name of a function.
const CUT_ID_LEN: usize = 24;

/// The destination of the records of a failed batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum To {
    /// To the bus: batches of publish-events.
    Bus,
    /// Into the index: batches of index-events.
    Index,
}

impl To {
    /// The destination of the records that a function has given up; `None` if they have none.
    pub fn of_function(name: &str) -> Option<Self> {
        let name = name.replace('-', "").to_lowercase();
        match &*name {
            "publishevents" => Some(Self::Bus),
            "indexevents" => Some(Self::Index),
            _ => None,
        }
    }
}

/// The work to be done again.
#[derive(Debug, PartialEq)]
pub enum Work {
    /// Send the events of stream records to the bus.
    Publish(Vec<Value>),
    /// Send the events of a record to the bus that was too large for a message. They are read from their table.
    PublishStored(Stored),
    /// Send an event to the bus again, unchanged.
    Repeat(TopicEntry),
    /// Index the new events of partitions.
    Index(BTreeSet<Partition>),
    /// Put a command into the queue again.
    Queue(Box<QueuedCommand>),
}

/// The place of events.
#[derive(Debug, PartialEq)]
pub enum Stored {
    /// Of the DCB log, or of the aggregate log: the item of this key.
    Item {
        /// The log.
        log: LogKind,
        /// The key of its item.
        key: Value,
    },
    /// The events of one append to a document.
    Span {
        /// The stream of the document.
        stream: StreamName,
        /// The events, by their indexes.
        events: Range<u64>,
    },
}

/// The function of a dead letter, where several share a queue.
#[derive(Debug, Default, PartialEq)]
pub struct Whose {
    /// The function that failed, or that a rule could not reach.
    pub function: Option<String>,
    /// The rule that could not reach it.
    pub rule: Option<String>,
}

/// The past failures of an automation on one event. A redrive adds them to the event, so the next dead letter has them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct History {
    /// The time of the first failure, if known: RFC 3339.
    pub first_failed: Option<String>,
    /// How often Lambda or EventBridge and redrives tried it.
    pub tries: u64,
}

/// Work that failed and was kept.
#[derive(Debug, PartialEq)]
pub struct DeadLetter {
    /// Its function.
    pub whose: Whose,
    /// Its past failures.
    pub history: History,
    /// The cause of the failure, if the message says it.
    pub cause: Option<String>,
    /// The work to be done again.
    pub work: Work,
}

impl DeadLetter {
    /// A message of a dead-letter queue: a dead letter of run-commands, publish-events or index-events, an event that a
    /// rule could not deliver, or Lambda's record of an invocation that failed. EventBridge puts rule, function and
    /// cause into the message's attributes, Lambda into its record.
    pub fn of_message(body: &str, attributes: &BTreeMap<String, String>) -> Result<Self> {
        let mut body: Value = from_json("the message", body)?;
        let (mut whose, mut cause) = (Whose::default(), text(&body, "/cause"));
        let mut history = History::default();
        let work = if body["queued"].is_object() {
            let tries = body["tries"].as_u64().unwrap_or_default();
            history = History { first_failed: text(&body, "/firstFailed"), tries };
            Work::Queue(queued(body["queued"].take())?)
        } else if body["commandId"].is_string() && body["group"].is_string() {
            // SQS moved it here, because it was received several times and never deleted.
            cause = Some("run-commands ended each time before it had an answer".to_owned());
            Work::Queue(queued(body)?)
        } else if body["record"].is_object() {
            Work::Publish(vec![body["record"].take()])
        } else if body["key"].is_object() {
            Work::PublishStored(stored(&mut body)?)
        } else if let Some(partition) = text(&body, "/partition") {
            // Dead letters from before there were several logs do not name theirs.
            let log = match body["log"].take() {
                Value::Null => LogKind::default(),
                log => {
                    serde_json::from_value(log).context("the dead letter names an unknown log")?
                }
            };
            Work::Index(BTreeSet::from([Partition { log, id: BoundaryId::stored(partition) }]))
        } else if body["requestPayload"].is_object() {
            let why = ["/responsePayload/errorMessage", "/requestContext/condition"];
            cause = why.into_iter().find_map(|pointer| text(&body, pointer));
            let function = text(&body, "/requestContext/functionArn");
            whose.function = function.and_then(|arn| function_of(&arn));
            let tries = body.pointer("/requestContext/approximateInvokeCount");
            let tries = tries.and_then(Value::as_u64);
            let failed = text(&body, "/timestamp");
            history = History::of(&body["requestPayload"], &whose, failed, tries);
            Work::Repeat(entry(&mut body["requestPayload"], &whose, &history)?)
        } else if body["detail"].is_object() {
            cause = together(["ERROR_CODE", "ERROR_MESSAGE"].map(|n| attributes.get(n).cloned()));
            whose.function = attributes.get("TARGET_ARN").and_then(|arn| function_of(arn));
            let name = |arn: &String| arn.rsplit('/').next().map(str::to_owned);
            whose.rule = attributes.get("RULE_ARN").and_then(name);
            let retries = attributes.get("RETRY_ATTEMPTS").and_then(|count| count.parse().ok());
            let tries = retries.map(|retries: u64| retries + 1);
            history = History::of(&body, &whose, None, tries);
            Work::Repeat(entry(&mut body, &whose, &history)?)
        } else if let (Some(cause), Some(_)) = (&cause, body["body"].as_str()) {
            // run-commands made this dead letter of a message that is not a command.
            bail!("{cause}. The message can't be redriven: look at its body, then delete it")
        } else {
            bail!("the message is neither a dead letter of this stack nor an event of its bus");
        };
        Ok(Self { whose, history, cause, work })
    }

    /// An object of a bucket of failed batches: Lambda's record of a batch that it gave up, with the batch's records.
    pub fn of_object(body: &str, to: To) -> Result<Self> {
        let object: Value = from_json("the object", body)?;
        let payload = object["payload"].as_str().context("the object has no payload")?;
        let mut payload: Value = from_json("the object's payload", payload)?;
        let Some(Value::Array(records)) = payload.get_mut("Records").map(Value::take) else {
            bail!("the object's payload has no records of a stream");
        };
        let work = match to {
            To::Bus => Work::Publish(records),
            To::Index => {
                let keys = records.iter().map(|record| &record["dynamodb"]["Keys"]);
                Work::Index(keys.map(partition).collect::<Result<_>>()?)
            }
        };
        let cause = text(&object, "/requestContext/condition");
        Ok(Self { whose: Whose::default(), history: History::default(), cause, work })
    }
}

impl Display for Work {
    /// Says what a redrive will do.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Publish(records) if records.len() == 1 => {
                f.write_str("sends the events of a stream record to the bus")
            }
            Self::Publish(records) => {
                write!(f, "sends the events of {} stream records to the bus", records.len())
            }
            Self::PublishStored(_) => {
                f.write_str("reads the events from their log and sends them to the bus")
            }
            Self::Repeat(entry) => {
                let event = &entry.detail_type;
                write!(f, "sends {event} to the bus again, to every rule that matches")
            }
            Self::Index(partitions) if partitions.len() == 1 => {
                f.write_str("indexes the new events of a partition")
            }
            Self::Index(partitions) => {
                write!(f, "indexes the new events of {} partitions", partitions.len())
            }
            Self::Queue(queued) => {
                write!(f, "puts the command of {} into its queue again", queued.slice)
            }
        }
    }
}

impl Whose {
    /// The slice, reactor or other function of the stack, if exactly one can be meant.
    #[must_use]
    pub fn in_stack<'s>(&self, stack: &'s Stack) -> Option<&'s str> {
        let function = self.function.as_deref()?;
        let slices = stack.slices().map(|(_, slice)| slice.name);
        let others = stack.reactors().map(|(_, reactor)| reactor.name);
        let others = others.chain(stack.functions().map(|(_, function)| function.name));
        let mut found = slices.chain(others).filter(|name| is_function_of(function, name));
        found.next().filter(|_| found.next().is_none())
    }

    /// Its key in the event's history.
    fn mark(&self) -> &str {
        self.function.as_deref().or(self.rule.as_deref()).unwrap_or("unknown")
    }
}

impl Display for Whose {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { function, rule } = self;
        function.as_ref().map_or(Ok(()), |function| write!(f, " of function {function}"))?;
        rule.as_ref().map_or(Ok(()), |rule| write!(f, ", rule {rule}"))
    }
}

impl History {
    /// The history of an event that failed again, at this time and after so many tries.
    fn of(event: &Value, whose: &Whose, failed: Option<String>, tries: Option<u64>) -> Self {
        let before = Self::marked(&event["detail"], whose);
        let first_failed = before.first_failed.or(failed);
        Self { first_failed, tries: before.tries + tries.unwrap_or(1) }
    }

    /// The history that a redrive added to the detail of an event. The bus gives the event to all functions, so each
    /// has its own entry.
    fn marked(detail: &Value, whose: &Whose) -> Self {
        Self::deserialize(&detail[REDRIVEN][whose.mark()]).unwrap_or_default()
    }
}

impl Display for History {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { first_failed, tries } = self;
        if *tries > 1 {
            write!(f, ", tried {tries} times")?;
        }
        first_failed.as_ref().map_or(Ok(()), |first| write!(f, ", failed first at {first}"))
    }
}

/// Joins the parts of a cause that are present.
fn together(parts: [Option<String>; 2]) -> Option<String> {
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    Some(parts.join(": ")).filter(|cause| !cause.is_empty())
}

/// The name in a function's ARN, which may end with a version: `arn:aws:lambda:…:function:name:$LATEST`.
fn function_of(arn: &str) -> Option<String> {
    arn.split(":function:").nth(1)?.split(':').next().map(str::to_owned)
}

/// Whether a function can be that of this name. CloudFormation names it `<stack>-<LogicalId>-<random>`, and may cut the
/// id.
fn is_function_of(function: &str, name: &str) -> bool {
    let plain = |name: &str| name.replace('-', "").to_lowercase();
    let id = function.rsplit('-').nth(1).filter(|id| id.starts_with(char::is_uppercase));
    let (name, id) = (plain(name), id.map(plain));
    let is_id = |id: String| id == name || id.len() >= CUT_ID_LEN && name.starts_with(&id);
    plain(function) == name || id.is_some_and(is_id)
}

/// The partition of an item with this key.
fn partition(key: &Value) -> Result<Partition> {
    if let Some(id) = text(key, "/id/S") {
        return Ok(BoundaryId::stored(id).into());
    }
    if let Some(aggregate) = text(key, "/aggregateId/S") {
        return Ok(Partition::from(BoundaryId::stored(aggregate)));
    }
    let stream = text(key, "/p/S").context("a record's key is not the key of an event")?;
    Ok(Partition::from(StreamName::try_from(stream)?.partition()))
}

fn queued(command: Value) -> Result<Box<QueuedCommand>> {
    serde_json::from_value(command).context("the dead letter's command can't be read")
}

/// The place of the events of a record that was too large for a message.
fn stored(dead_letter: &mut Value) -> Result<Stored> {
    let Partition { log, .. } = partition(&dead_letter["key"])?;
    if log != LogKind::Documents {
        return Ok(Stored::Item { log, key: dead_letter["key"].take() });
    }
    let stream = StreamName::try_from(text(dead_letter, "/key/p/S").unwrap_or_default())?;
    let number = |name: &str| dead_letter[name]["N"].as_str().and_then(|n| n.parse().ok());
    let (end, appended): (Option<u64>, Option<u64>) = (number("n"), number("a"));
    let span = end.zip(appended).and_then(|(end, a)| Some(end.checked_sub(a)?..end));
    let events = span.context("the dead letter does not say which events of the stream")?;
    Ok(Stored::Span { stream, events })
}

fn text(value: &Value, pointer: &str) -> Option<String> {
    value.pointer(pointer).and_then(Value::as_str).map(str::to_owned)
}

/// The bus entry that repeats an event of the bus, with its history.
fn entry(event: &mut Value, whose: &Whose, history: &History) -> Result<TopicEntry> {
    let detail = event.get_mut("detail").and_then(Value::as_object_mut);
    let detail = detail.context("not an event of the bus: /detail is not an object")?;
    let marks = detail.entry(REDRIVEN).or_insert(Value::Null);
    if !marks.is_object() {
        *marks = Value::Object(serde_json::Map::new());
    }
    marks[whose.mark()] = serde_json::to_value(history)?;
    let required = |pointer| {
        let missing = || anyhow!("not an event of the bus: {pointer} is missing");
        text(event, pointer).ok_or_else(missing)
    };
    Ok(TopicEntry {
        source: required("/source")?,
        detail_type: required("/detail-type")?,
        id: required("/detail/id")?,
        time_ms: time_ms(event),
        detail: event["detail"].to_string(),
    })
}

/// When the event was recorded, in milliseconds since 1970.
fn time_ms(event: &Value) -> Option<u64> {
    ms_of_rfc3339(event.pointer("/detail/recordedAt")?.as_str()?)
}

#[cfg(test)]
mod tests;
