//! Letters: work that failed and was kept, and what it asks for.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display, Formatter};
use std::ops::Range;

use anyhow::{Context, Result, anyhow, bail};
use ringfence::BoundaryId;
use ringfence_document_log::StreamName;
use ringfence_dynamo::ms_of_rfc3339;
use ringfence_feed::{Log, Partition};
use ringfence_topic::Entry;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The member of an event's detail with its history. An event that no redrive has sent has none.
const REDRIVEN: &str = "redriven";

/// Where the records of a failed batch go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum To {
    /// To the bus: batches of publish-events.
    Bus,
    /// Into the index: batches of index-events.
    Index,
}

impl To {
    /// Where the records go that a function has given up; `None` if they need to go nowhere.
    pub(crate) fn of_function(name: &str) -> Option<Self> {
        let name = name.replace('-', "").to_lowercase();
        match &*name {
            "publishevents" => Some(Self::Bus),
            "indexevents" => Some(Self::Index),
            _ => None,
        }
    }
}

/// What is to be done again.
#[derive(Debug, PartialEq)]
pub(crate) enum Work {
    /// The events of stream records go to the bus.
    Publish(Vec<Value>),
    /// The events of a record that was too large for a message go to the bus. They are read from their table.
    PublishStored(Stored),
    /// An event of the bus goes there again, as it was.
    Repeat(Entry),
    /// What is new in partitions goes into the index.
    Index(BTreeSet<Partition>),
}

/// Events, by where they are.
#[derive(Debug, PartialEq)]
pub(crate) enum Stored {
    /// Of the DCB log, or of the aggregate log: the item of this key.
    Item { log: Log, key: Value },
    /// Of a document: those that one append has brought.
    Span { stream: StreamName, events: Range<u64> },
}

/// Whose letter it is, where several share a queue.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Whose {
    /// The function that failed, or that a rule could not reach.
    pub(crate) function: Option<String>,
    /// The rule that could not reach it.
    pub(crate) rule: Option<String>,
}

/// What a letter of an automation has behind it. A redrive marks the event with it, so that the next letter knows it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct History {
    /// When it failed first, if that is known: RFC 3339.
    pub(crate) first_failed: Option<String>,
    /// How often it was tried, by Lambda or EventBridge and by redrives.
    pub(crate) tries: u64,
}

/// Something that failed and was kept.
#[derive(Debug, PartialEq)]
pub(crate) struct Letter {
    pub(crate) whose: Whose,
    pub(crate) history: History,
    /// Why it was kept, if it says so.
    pub(crate) cause: Option<String>,
    pub(crate) work: Work,
}

impl Letter {
    /// A message of a dead-letter queue: a letter of publish-events or index-events, an event that a
    /// rule could not deliver, or Lambda's record of an invocation that failed. EventBridge says in the
    /// message's attributes which rule, which function and why; Lambda says it in its record.
    pub(crate) fn of_message(body: &str, attributes: &BTreeMap<String, String>) -> Result<Self> {
        let mut body: Value = serde_json::from_str(body).context("the message is not JSON")?;
        let (mut whose, mut cause) = (Whose::default(), text(&body, "/cause"));
        let mut history = History::default();
        let work = if body["record"].is_object() {
            Work::Publish(vec![body["record"].take()])
        } else if body["key"].is_object() {
            Work::PublishStored(stored(&mut body)?)
        } else if let Some(partition) = text(&body, "/partition") {
            // Letters from the time of a single log do not name it.
            let log = match body["log"].take() {
                Value::Null => Log::default(),
                log => serde_json::from_value(log).context("the letter names an unknown log")?,
            };
            Work::Index(BTreeSet::from([Partition { log, id: BoundaryId::stored(partition) }]))
        } else if body["requestPayload"].is_object() {
            let why = ["/requestContext/condition", "/responsePayload/errorMessage"];
            cause = together(why.map(|pointer| text(&body, pointer)));
            let function = text(&body, "/requestContext/functionArn");
            whose.function = function.and_then(|arn| function_of(&arn));
            let tries = body.pointer("/requestContext/approximateInvokeCount");
            let tries = tries.and_then(Value::as_u64);
            let failed = text(&body, "/timestamp");
            history = History::of(&body["requestPayload"], failed, tries);
            Work::Repeat(entry(&mut body["requestPayload"], &history)?)
        } else if body["detail"].is_object() {
            cause = together(["ERROR_CODE", "ERROR_MESSAGE"].map(|n| attributes.get(n).cloned()));
            whose.function = attributes.get("TARGET_ARN").and_then(|arn| function_of(arn));
            let name = |arn: &String| arn.rsplit('/').next().map(str::to_owned);
            whose.rule = attributes.get("RULE_ARN").and_then(name);
            let retries = attributes.get("RETRY_ATTEMPTS").and_then(|count| count.parse().ok());
            history = History::of(&body, None, retries.map(|retries: u64| retries + 1));
            Work::Repeat(entry(&mut body, &history)?)
        } else {
            bail!("the message is neither a letter of this stack nor an event of its bus");
        };
        Ok(Self { whose, history, cause, work })
    }

    /// An object of a bucket of failed batches: Lambda's record of a batch that it gave up, with
    /// the batch's records.
    pub(crate) fn of_object(body: &str, to: To) -> Result<Self> {
        let object: Value = serde_json::from_str(body).context("the object is not JSON")?;
        let payload = object["payload"].as_str().context("the object has no payload")?;
        let mut payload: Value =
            serde_json::from_str(payload).context("the object's payload is not JSON")?;
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

impl Display for Whose {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { function, rule } = self;
        function.as_ref().map_or(Ok(()), |function| write!(f, " of function {function}"))?;
        rule.as_ref().map_or(Ok(()), |rule| write!(f, ", rule {rule}"))
    }
}

impl History {
    /// The history of an event that failed again, at this time and after so many tries.
    fn of(event: &Value, failed: Option<String>, tries: Option<u64>) -> Self {
        let before = Self::marked(&event["detail"]);
        let first_failed = before.first_failed.or(failed);
        Self { first_failed, tries: before.tries + tries.unwrap_or(1) }
    }

    /// The history with which a redrive has marked the detail of an event.
    pub(crate) fn marked(detail: &Value) -> Self {
        Self::deserialize(&detail[REDRIVEN]).unwrap_or_default()
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

/// The parts of a cause that are present, as one text.
fn together(parts: [Option<String>; 2]) -> Option<String> {
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    Some(parts.join(": ")).filter(|cause| !cause.is_empty())
}

/// The name in a function's ARN, which may end with a version: `arn:aws:lambda:…:function:name:$LATEST`.
fn function_of(arn: &str) -> Option<String> {
    arn.split(":function:").nth(1)?.split(':').next().map(str::to_owned)
}

/// The partition of an item with this key.
fn partition(key: &Value) -> Result<Partition> {
    if let Some(id) = text(key, "/id/S") {
        return Ok(BoundaryId::stored(id).into());
    }
    if let Some(aggregate) = text(key, "/aggregateId/S") {
        return Ok(Partition::of_aggregate(&aggregate));
    }
    let stream = text(key, "/p/S").context("a record's key is not the key of an event")?;
    Ok(Partition::of_document(&StreamName::try_from(stream)?))
}

/// Where to find the events of a record that was too large for a message.
fn stored(letter: &mut Value) -> Result<Stored> {
    let Partition { log, .. } = partition(&letter["key"])?;
    if log != Log::Documents {
        return Ok(Stored::Item { log, key: letter["key"].take() });
    }
    let stream = StreamName::try_from(text(letter, "/key/p/S").unwrap_or_default())?;
    let number = |name: &str| letter[name]["N"].as_str().and_then(|n| n.parse().ok());
    let (end, appended): (Option<u64>, Option<u64>) = (number("n"), number("a"));
    let span = end.zip(appended).and_then(|(end, a)| Some(end.checked_sub(a)?..end));
    let events = span.context("the letter does not say which events of the stream")?;
    Ok(Stored::Span { stream, events })
}

fn text(value: &Value, pointer: &str) -> Option<String> {
    value.pointer(pointer).and_then(Value::as_str).map(str::to_owned)
}

/// The entry that made an event of the bus, with the mark of its history.
fn entry(event: &mut Value, history: &History) -> Result<Entry> {
    event["detail"][REDRIVEN] = serde_json::to_value(history)?;
    let required = |pointer| {
        let missing = || anyhow!("not an event of the bus: {pointer} is missing");
        text(event, pointer).ok_or_else(missing)
    };
    Ok(Entry {
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
mod tests {
    use serde_json::json;

    use super::*;

    const ID: &str = "orderId:o1/3";

    fn event() -> Value {
        json!({
            "version": "0", "id": "x", "source": "ordering", "detail-type": "OrderPlaced",
            "detail": {
                "id": ID, "slot": 3, "recordedAt": "2023-11-14T22:13:20.000Z", "data": { "a": 1 },
            },
        })
    }

    fn of_message(body: &str) -> Result<Letter> {
        Letter::of_message(body, &BTreeMap::new())
    }

    fn check(body: &Value, cause: Option<&str>, work: &Work) {
        let letter = of_message(&body.to_string()).expect("a letter");
        assert_eq!((letter.cause.as_deref(), &letter.work), (cause, work));
    }

    #[test]
    fn messages_say_what_they_ask_for() {
        let record = json!({ "dynamodb": {} });
        let publish = Work::Publish(vec![record.clone()]);
        check(&json!({ "cause": "c", "record": record }), Some("c"), &publish);
        let id = "orderId:o1";
        let partition = Partition::from(BoundaryId::stored(id));
        let index = Work::Index(BTreeSet::from([partition]));
        check(&json!({ "cause": "c", "partition": id }), Some("c"), &index);
        let letter = json!({ "cause": "c", "log": "aggregates", "partition": "customers#ada" });
        let partition = Partition::of_aggregate("customers#ada");
        check(&letter, Some("c"), &Work::Index(BTreeSet::from([partition])));
    }

    #[test]
    fn events_of_a_record_that_was_too_large_for_a_message_are_found_by_their_key() {
        for (log, key) in [
            (Log::Dcb, json!({ "id": { "S": "orderId:o1" }, "position": { "N": "3" } })),
            (
                Log::Aggregates,
                json!({ "aggregateId": { "S": "customers#a" }, "version": { "N": "3" } }),
            ),
        ] {
            let stored = Stored::Item { log, key: key.clone() };
            check(&json!({ "cause": "c", "key": key }), Some("c"), &Work::PublishStored(stored));
        }
        let key = json!({ "p": { "S": "carts-a:1" }, "i": { "N": "2147483647" } });
        let letter = json!({ "cause": "c", "key": key, "n": { "N": "7" }, "a": { "N": "2" } });
        let stream = StreamName::new("carts", "a:1").expect("a name");
        let stored = Stored::Span { stream, events: 5..7 };
        check(&letter, Some("c"), &Work::PublishStored(stored));
        let unsaid = json!({ "cause": "c", "key": key }).to_string();
        check_refused(&unsaid, "the letter does not say which events of the stream");
    }

    #[test]
    fn events_are_repeated_as_they_were_with_their_history() {
        let mut detail = event()["detail"].clone();
        detail["redriven"] = json!({ "firstFailed": null, "tries": 1 });
        let repeat = Work::Repeat(Entry {
            source: "ordering".to_owned(),
            detail_type: "OrderPlaced".to_owned(),
            detail: detail.to_string(),
            id: ID.to_owned(),
            time_ms: Some(1_700_000_000_000),
        });
        check(&event(), None, &repeat);
        let failed = json!({
            "requestContext": { "condition": "RetriesExhausted" },
            "responsePayload": { "errorMessage": "no table" },
            "requestPayload": event(),
        });
        check(&failed, Some("RetriesExhausted: no table"), &repeat);
    }

    #[test]
    fn a_letter_of_an_automation_says_which_function_and_which_rule() {
        let function = "arn:aws:lambda:eu-west-1:1:function:shop-PlaceOrder-1A";
        let failed = json!({
            "requestContext": { "functionArn": format!("{function}:$LATEST") },
            "requestPayload": event(),
        });
        let failed = of_message(&failed.to_string()).expect("a letter").whose;
        assert_eq!((failed.function.as_deref(), failed.rule), (Some("shop-PlaceOrder-1A"), None));
        let attributes = [
            ("ERROR_CODE", "NO_PERMISSIONS"),
            ("ERROR_MESSAGE", "not authorized"),
            ("RULE_ARN", "arn:aws:events:eu-west-1:1:rule/shop-events/shop-PlaceOrderRule-2B"),
            ("TARGET_ARN", function),
        ];
        let attributes = attributes.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let letter = Letter::of_message(&event().to_string(), &attributes.into());
        let letter = letter.expect("a letter");
        let whose = letter.whose.to_string();
        assert_eq!(whose, " of function shop-PlaceOrder-1A, rule shop-PlaceOrderRule-2B");
        assert_eq!(letter.cause.as_deref(), Some("NO_PERMISSIONS: not authorized"));
    }

    fn check_refused(body: &str, cause: &str) {
        let error = of_message(body).expect_err("no letter");
        assert!(format!("{error:#}").starts_with(cause), "{error:#}");
    }

    #[test]
    fn a_message_that_is_not_a_letter_is_refused_with_the_reason() {
        check_refused("{", "the message is not JSON: ");
        check_refused(
            "{}",
            "the message is neither a letter of this stack nor an event of its bus",
        );
        let foreign = r#"{"source":"aws.s3","detail-type":"x","detail":{}}"#;
        check_refused(foreign, "not an event of the bus: /detail/id is missing");
    }

    #[test]
    fn a_failed_batch_is_published_or_indexed_as_it_is_asked() {
        let record = |name: &str, id| json!({ "dynamodb": { "Keys": { name: { "S": id } } } });
        let records = [("id", "a:1"), ("aggregateId", "a#1"), ("p", "a-1:2"), ("id", "a:1")];
        let payload = json!({ "Records": records.map(|(name, id)| record(name, id)) });
        let object = json!({
            "requestContext": { "condition": "RetryAttemptsExhausted" },
            "payload": payload.to_string(),
        })
        .to_string();
        let letter = |to| Letter::of_object(&object, to).expect("a batch");
        let records = payload["Records"].as_array().cloned().expect("records");
        assert_eq!(letter(To::Bus).work, Work::Publish(records));
        assert_eq!(letter(To::Bus).cause.as_deref(), Some("RetryAttemptsExhausted"));
        let stream = StreamName::new("a", "1:2").expect("a name");
        let partitions = [
            BoundaryId::stored("a:1").into(),
            Partition::of_aggregate("a#1"),
            Partition::of_document(&stream),
        ];
        assert_eq!(letter(To::Index).work, Work::Index(BTreeSet::from(partitions)));
        for payload in ["{}", "[]", "null"] {
            let object = json!({ "payload": payload }).to_string();
            let error = Letter::of_object(&object, To::Bus).expect_err("no batch").to_string();
            assert_eq!(error, "the object's payload has no records of a stream");
        }
    }
}
