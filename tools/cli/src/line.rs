//! An event as a line of JSON, for `tail --json` and exports.

use anyhow::{Context, Result, bail, ensure};
use ringfence_aggregate_log::VERSION_MAX;
use ringfence_aws::ms_of_rfc3339;
use ringfence_core::{BoundaryId, Metadata, SequencedEvent, Tag};
use ringfence_feed::Checkpoint;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Lists;
use crate::json::from_json;
use crate::shown::ShownEvent;

/// An event as JSON for programs. On a log of streams the payload does not repeat the id of its stream, so the id is a
/// member beside it.
pub(crate) fn of_event(shown: &ShownEvent) -> Value {
    let ShownEvent { event, stored } = shown;
    let mut json = json!({
        "id": event.id(),
        "slot": event.slot,
        "recordedAt": event.recorded_at(),
        "type": event.event_type,
        "context": event.context,
        "partition": event.partition.as_str(),
        "tags": event.tags,
        "data": event.data,
        "meta": event.metadata,
    });
    if event.version > 1 {
        json["schema"] = event.version.into();
    }
    if let Some(stored) = stored {
        json["storedSchema"] = json!(stored);
    }
    if let Some(id) = event.stream_id() {
        json["streamId"] = id.into();
    }
    json
}

/// An entry of the index as JSON.
pub(crate) fn of_entry(checkpoint: Checkpoint, shown: &ShownEvent) -> Value {
    let mut json = of_event(shown);
    json["checkpoint"] = json!(checkpoint);
    json
}

/// A line. An unknown member is an error, because it would be lost.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Line {
    id: String,
    slot: u64,
    recorded_at: String,
    #[serde(rename = "type")]
    event_type: String,
    context: String,
    partition: String,
    tags: Vec<Tag>,
    data: Value,
    meta: Metadata,
    #[serde(default = "first")]
    schema: u32,
    stored_schema: Option<u32>,
    checkpoint: Option<Value>,
    stream_id: Option<String>,
}

/// The version of a payload whose line does not say it.
fn first() -> u32 {
    1
}

/// The event of a line, as it is stored.
///
/// # Errors
/// The line is not JSON, lacks a member, has an unknown one, or contradicts itself. Its payload was upcast.
pub(crate) fn event_of(line: &str) -> Result<SequencedEvent> {
    let (ShownEvent { event, stored }, _) = shown_of(line)?;
    if let Some(stored) = stored {
        bail!(
            "storedSchema: the log has version {stored} of the payload, and the line has version {}; export the events \
             without --newest",
            event.version
        );
    }
    Ok(event)
}

/// The line with its payload in the newest version of its type.
///
/// # Errors
/// Those of [`event_of`] and [`Lists::newest`].
pub(crate) fn newest(line: &str, lists: &Lists) -> Result<Value> {
    let (ShownEvent { event, stored }, checkpoint) = shown_of(line)?;
    let mut shown = lists.newest(&event)?;
    shown.stored = stored.or(shown.stored);
    let mut json = of_event(&shown);
    json["checkpoint"] = json!(checkpoint);
    Ok(json)
}

/// The event of a line as the line shows it, and its checkpoint.
fn shown_of(line: &str) -> Result<(ShownEvent, Option<Value>)> {
    ensure!(
        line.trim_start().starts_with('{'),
        "the line is not a JSON object, as each line of an export is"
    );
    let Line {
        id,
        slot,
        recorded_at,
        event_type,
        context,
        partition,
        tags,
        data,
        meta,
        schema,
        stored_schema,
        checkpoint,
        stream_id,
    } = from_json("the line", line)?;
    let at = ms_of_rfc3339(&recorded_at).with_context(|| {
        format!("recordedAt: must be a time such as 2024-06-23T00:00:00.120Z, is {recorded_at:?}")
    })?;
    ensure!(schema > 0, "schema: is 0, and versions begin with 1");
    check_slot("slot", slot)?;
    let partition = BoundaryId::stored(partition);
    match (stream_id, partition.stream_id()) {
        (None, _) => {}
        (Some(_), None) => {
            bail!(
                "streamId: {partition} is a partition of the DCB log, which has none; leave it out"
            )
        }
        (Some(given), Some(id)) => {
            ensure!(given == id, "streamId: must be {id:?}, as in {partition}, is {given:?}");
        }
    }
    let (rest, version, metadata) = (0, schema, meta);
    let event = SequencedEvent {
        partition,
        slot,
        at,
        rest,
        event_type,
        context,
        tags,
        version,
        data,
        metadata,
    };
    ensure!(id == event.id(), "id: must be {:?}, of partition and slot, is {id:?}", event.id());
    Ok((ShownEvent { event, stored: stored_schema }, checkpoint))
}

/// Fails if no event can have this number. The log adds to the number, so it needs a limit.
pub(crate) fn check_slot(field: &str, slot: u64) -> Result<()> {
    ensure!(
        slot <= VERSION_MAX,
        "{field}: must be at most {VERSION_MAX}, is {slot}; the events of a partition are numbered without gaps"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> Value {
        json!({
            "id": "orderId:o-1/3",
            "slot": 3,
            "recordedAt": "2024-06-23T00:00:00.120Z",
            "type": "OrderPlaced",
            "context": "ordering",
            "partition": "orderId:o-1",
            "tags": [{ "key": "orderId", "value": "o-1" }],
            "data": { "orderId": "o-1", "weight": 1.5 },
            "meta": { "principal": "eve" },
        })
    }

    #[test]
    fn an_event_is_read_as_it_was_written() {
        let event = event_of(&line().to_string()).expect("an event");
        assert_eq!((event.at, event.version), (1_719_100_800_120, 1));
        assert_eq!(of_event(&event.clone().into()), line());
        let newer = SequencedEvent { version: 2, ..event };
        let line = of_event(&newer.clone().into()).to_string();
        assert_eq!(event_of(&line).expect("an event"), newer);
    }

    #[test]
    fn a_line_that_is_no_event_says_why() {
        for (member, value, why) in [
            (
                "slot",
                json!("3"),
                "slot: must be an integer from 0 to 18446744073709551615, is \"3\"",
            ),
            (
                "slot",
                json!(u64::MAX),
                "slot: must be at most 9007199254740991, is 18446744073709551615; the events of a partition",
            ),
            ("slot", json!(4), "id: must be \"orderId:o-1/4\", of partition and slot, is "),
            (
                "recordedAt",
                json!("today"),
                "recordedAt: must be a time such as 2024-06-23T00:00:00.120Z, is \"today\"",
            ),
            ("schema", json!(0), "schema: is 0, and versions begin with 1"),
            (
                "storedSchema",
                json!(2),
                "storedSchema: the log has version 2 of the payload, and the line has version 1; export the events without",
            ),
            ("secret", json!(1), "secret: is unknown; the fields are id, slot, "),
            ("tags", json!([{ "key": "a" }]), "tags[0].value: is missing"),
            (
                "meta",
                json!({ "expiresAt": 1 }),
                "meta: metadata key \"expiresAt\" is reserved for the log",
            ),
            ("streamId", json!("o-1"), "streamId: orderId:o-1 is a partition of the DCB log"),
        ] {
            let mut line = line();
            line[member] = value;
            let error = event_of(&line.to_string()).expect_err(why);
            assert!(format!("{error:#}").starts_with(why), "{error:#}");
        }
        for (line, why) in [
            ("{}", "id: is missing"),
            ("[]", "the line is not a JSON object"),
            ("{", "the line is not JSON: EOF while parsing"),
        ] {
            let error = event_of(line).expect_err(why);
            assert!(error.to_string().starts_with(why), "{error}");
        }
    }
}
