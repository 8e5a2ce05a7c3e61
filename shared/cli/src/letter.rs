//! What was kept, and what it asks for.

use std::collections::BTreeSet;

use anyhow::{Context, Result, anyhow, bail};
use publish_events::Entry;
use ringfence::{BoundaryId, Place, Sequence};
use serde_json::Value;

/// Where the records of a failed batch go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum To {
    /// To the bus: batches of publish-events.
    Bus,
    /// Into the index: batches of index-events.
    Index,
}

/// What is to be done again.
#[derive(Debug, PartialEq)]
pub(crate) enum Work {
    /// The events of stream records go to the bus.
    Publish(Vec<Value>),
    /// The event of this key goes to the bus: its record was too large for a message.
    PublishKey { id: String, position: String },
    /// An event of the bus goes there again, as it was.
    Repeat(Entry),
    /// What is new in partitions goes into the index.
    Index(BTreeSet<BoundaryId>),
}

/// Something that failed and was kept.
#[derive(Debug, PartialEq)]
pub(crate) struct Letter {
    /// Why it was kept, as far as it says.
    pub(crate) cause: Option<String>,
    pub(crate) work: Work,
}

impl Letter {
    /// A message of a dead-letter queue: a letter of publish-events or index-events, an event that a
    /// rule could not deliver, or Lambda's record of an invocation that failed.
    pub(crate) fn of_message(body: &str) -> Result<Self> {
        let mut body: Value = serde_json::from_str(body).context("the message is no JSON")?;
        let mut cause = text(&body, "/cause");
        let work = if body["record"].is_object() {
            Work::Publish(vec![body["record"].take()])
        } else if let Some(id) = text(&body, "/key/id/S") {
            let position = text(&body, "/key/position/S").context("the key has no position")?;
            Work::PublishKey { id, position }
        } else if let Some(partition) = text(&body, "/partition") {
            Work::Index(BTreeSet::from([BoundaryId::stored(partition)]))
        } else if body["requestPayload"].is_object() {
            let why = ["/requestContext/condition", "/responsePayload/errorMessage"];
            let why: Vec<_> = why.iter().filter_map(|pointer| text(&body, pointer)).collect();
            cause = Some(why.join(": ")).filter(|why| !why.is_empty());
            Work::Repeat(entry(&body["requestPayload"])?)
        } else if body["detail"].is_object() {
            Work::Repeat(entry(&body)?)
        } else {
            bail!("the message is neither a letter of this stack nor an event of its bus");
        };
        Ok(Self { cause, work })
    }

    /// An object of a bucket of failed batches: Lambda's record of a batch that it gave up, with
    /// the batch's records.
    pub(crate) fn of_object(body: &str, to: To) -> Result<Self> {
        let object: Value = serde_json::from_str(body).context("the object is no JSON")?;
        let payload = object["payload"].as_str().context("the object has no payload")?;
        let mut payload: Value =
            serde_json::from_str(payload).context("the object's payload is no JSON")?;
        let Value::Array(records) = payload["Records"].take() else {
            bail!("the object's payload has no records of a stream");
        };
        let work = match to {
            To::Bus => Work::Publish(records),
            To::Index => {
                let partition = |record| text(record, "/dynamodb/Keys/id/S");
                let partitions: Option<BTreeSet<_>> = records.iter().map(partition).collect();
                let partitions = partitions.context("a record has no key of an event")?;
                Work::Index(partitions.into_iter().map(BoundaryId::stored).collect())
            }
        };
        Ok(Self { cause: text(&object, "/requestContext/condition"), work })
    }
}

fn text(value: &Value, pointer: &str) -> Option<String> {
    value.pointer(pointer).and_then(Value::as_str).map(str::to_owned)
}

/// The entry that made an event of the bus.
fn entry(event: &Value) -> Result<Entry> {
    let required = |pointer| {
        let missing = || anyhow!("it is no event of the bus: {pointer} is missing");
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
    let sequence: Sequence =
        serde_json::from_value(event.pointer("/detail/position")?.clone()).ok()?;
    sequence.ms(event["time"].as_str().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const POSITION: &str = "1700000000000-00000000-0000-4000-8000-000000000000";

    fn event() -> Value {
        json!({
            "version": "0", "id": "x", "source": "ordering", "detail-type": "OrderPlaced",
            "detail": { "id": POSITION, "position": POSITION, "data": { "a": 1 } },
        })
    }

    fn check(body: &Value, cause: Option<&str>, work: &Work) {
        let letter = Letter::of_message(&body.to_string()).expect("a letter");
        assert_eq!((letter.cause.as_deref(), &letter.work), (cause, work));
    }

    #[test]
    fn messages_say_what_they_ask_for() {
        let record = json!({ "dynamodb": {} });
        let publish = Work::Publish(vec![record.clone()]);
        check(&json!({ "cause": "c", "record": record }), Some("c"), &publish);
        let (id, position) = ("orderId:o1".to_owned(), POSITION.to_owned());
        let key = json!({ "id": { "S": id }, "position": { "S": position } });
        let by_key = Work::PublishKey { id: id.clone(), position };
        check(&json!({ "cause": "c", "key": key }), Some("c"), &by_key);
        let index = Work::Index(BTreeSet::from([BoundaryId::stored(id.clone())]));
        check(&json!({ "cause": "c", "partition": id }), Some("c"), &index);
    }

    #[test]
    fn events_are_repeated_as_they_were() {
        let repeat = Work::Repeat(Entry {
            source: "ordering".to_owned(),
            detail_type: "OrderPlaced".to_owned(),
            detail: event()["detail"].to_string(),
            id: POSITION.to_owned(),
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

    fn check_refused(body: &str, cause: &str) {
        let error = Letter::of_message(body).expect_err("no letter");
        assert!(format!("{error:#}").starts_with(cause), "{error:#}");
    }

    #[test]
    fn what_is_no_letter_says_so() {
        check_refused("{", "the message is no JSON: ");
        check_refused(
            "{}",
            "the message is neither a letter of this stack nor an event of its bus",
        );
        let foreign = r#"{"source":"aws.s3","detail-type":"x","detail":{}}"#;
        check_refused(foreign, "it is no event of the bus: /detail/id is missing");
    }

    #[test]
    fn failed_batches_go_where_they_are_sent() {
        let record = |id| json!({ "dynamodb": { "Keys": { "id": { "S": id } } } });
        let payload = json!({ "Records": [record("a:1"), record("b:1"), record("a:1")] });
        let object = json!({
            "requestContext": { "condition": "RetryAttemptsExhausted" },
            "payload": payload.to_string(),
        })
        .to_string();
        let letter = |to| Letter::of_object(&object, to).expect("a batch");
        let records = payload["Records"].as_array().cloned().expect("records");
        assert_eq!(letter(To::Bus).work, Work::Publish(records));
        assert_eq!(letter(To::Bus).cause.as_deref(), Some("RetryAttemptsExhausted"));
        let partitions = ["a:1", "b:1"].map(BoundaryId::stored);
        assert_eq!(letter(To::Index).work, Work::Index(BTreeSet::from(partitions)));
        assert!(Letter::of_object(r#"{"payload":"{}"}"#, To::Bus).is_err());
    }
}
