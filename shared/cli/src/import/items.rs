//! Events as Reventless' DCB log stores them. The key is `id` and `position`, two texts. The items of fences
//! have no attribute `event`.

use anyhow::{Context, Result, bail};
use aws_sdk_dynamodb::operation::scan::builders::ScanInputBuilder;
use aws_sdk_dynamodb::types::AttributeValue;
use ringfence::{Metadata, Name, NewEvent};
use ringfence_dynamo::{CodecError, Item, from_attribute};
use serde_json::{Map, Value};

use crate::recorded::ForeignEvent;

const ID: &str = "id";
const POSITION: &str = "position";
/// Type name.
const EVENT: &str = "event";
const DATA: &str = "data";
/// A list of maps of `key` and `value`.
const TAGS: &str = "tags";
/// The time of the position, once more.
const RECORDED_AT: &str = "recordedAt";
/// What the attributes begin with that repeat tags for the indexes.
const TAG: &str = "tag_";
/// Digits of the milliseconds since 1970 that a position begins with, so that positions sort by time.
const MS_DIGITS: usize = 13;

/// Only the items of events.
pub(super) fn events(scan: ScanInputBuilder) -> ScanInputBuilder {
    scan.filter_expression("attribute_exists(#event)").expression_attribute_names("#event", EVENT)
}

/// Names an item.
pub(super) fn name(item: &Item) -> String {
    let text =
        |name| item.get(name).and_then(|value| value.as_s().ok()).map_or("?", String::as_str);
    format!("{}/{}", text(ID), text(POSITION))
}

/// The event of an item. Its id is its position: milliseconds since 1970, a counter in newer versions, a UUID, and a
/// number for each further event of one append, joined by `-`. Events are folded in the order of these texts.
pub(super) fn recorded(mut item: Item) -> Result<ForeignEvent> {
    let id = text(&mut item, POSITION)?;
    let ms = ms(&id).with_context(|| {
        format!("its position does not begin with {MS_DIGITS} digits of milliseconds and a hyphen")
    })?;
    let event_type: Name = text(&mut item, EVENT)?.into();
    let data = value(&mut item, DATA)?;
    let tags = value(&mut item, TAGS)?;
    let tags = serde_json::from_value(tags).context("attribute tags must be a list of tags")?;
    // The attributes that belong to no part of the layout.
    let is_kept = |name: &str| ![ID, RECORDED_AT].contains(&name) && !name.starts_with(TAG);
    item.retain(|name, _| is_kept(name));
    let metadata = item.into_iter().map(|(name, value)| {
        let value = from_attribute(&name, value)?;
        Ok((name, value))
    });
    let metadata: Map<_, _> = metadata.collect::<Result<_, CodecError>>()?;
    if metadata.contains_key(Metadata::SCHEMA) {
        bail!(
            "it has the metadata {:?}, which says in this log which version the payload has: give it another name in \
             the source",
            Metadata::SCHEMA
        );
    }
    let (metadata, _) = Metadata::foreign(Value::Object(metadata), &event_type);
    let event = NewEvent { event_type, tags, data };
    Ok(ForeignEvent { id, ms, event, metadata })
}

fn text(item: &mut Item, name: &str) -> Result<String> {
    match item.remove(name) {
        Some(AttributeValue::S(text)) => Ok(text),
        _ => bail!("attribute {name} is missing or no text"),
    }
}

fn value(item: &mut Item, name: &str) -> Result<Value> {
    let value = item.remove(name).with_context(|| format!("attribute {name} is missing"))?;
    Ok(from_attribute(name, value)?)
}

fn ms(position: &str) -> Option<u64> {
    let (ms, _) = position.split_once('-')?;
    let right = ms.len() == MS_DIGITS && ms.bytes().all(|digit| digit.is_ascii_digit());
    right.then(|| ms.parse().ok()).flatten()
}
