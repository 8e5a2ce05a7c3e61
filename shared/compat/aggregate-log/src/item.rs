//! The item of an event, attribute by attribute: Castore's layout.

use aws_sdk_dynamodb::types::AttributeValue;
use ringfence_aws::{CodecError, Item, from_attribute, to_attribute};

use crate::{
    AggregateError, AggregateEvent, AggregateKey, KeyError, NewAggregateEvent, Version,
    VersionConflict,
};

/// Partition key: `<store>#<aggregate>`.
pub const AGGREGATE_ID: &str = "aggregateId";
/// Sort key, from 1.
pub const VERSION: &str = "version";
/// Type name.
pub const TYPE: &str = "type";
/// RFC 3339, UTC, milliseconds; sort key of the index.
pub const TIMESTAMP: &str = "timestamp";
/// The payload, if the event has one.
pub const PAYLOAD: &str = "payload";
/// The metadata, if the event has some.
pub const METADATA: &str = "metadata";
/// The store, on first events alone: partition key of the index.
pub const EVENT_STORE_ID: &str = "eventStoreId";
/// Names the push that wrote the item. A writer recognises its event by it after a lost answer. The original neither
/// writes nor reads it.
pub const PUSH_ID: &str = "pushId";
/// The number of events of the same push that follow in the aggregate. The last event does not have it. The original
/// neither writes nor reads it.
pub const REST: &str = "rest";
/// First events of the older layout have this instead of the store.
pub const IS_INITIAL_EVENT: &str = "isInitialEvent";
/// The index of first events.
pub const INITIAL_EVENTS: &str = "initialEvents";

/// Types that the original reserves for its messages.
const RESERVED_TYPES: [&str; 2] = ["__REPLAYED__", "__AGGREGATE_EXISTS__"];

/// The reason that an item is not an event.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// An attribute is missing or has the wrong type.
    #[error("attribute {0} is missing or has the wrong type")]
    Attribute(&'static str),
    /// The partition key names no aggregate.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The payload or the metadata has no JSON form.
    #[error("an attribute has no JSON form")]
    Value(#[from] CodecError),
}

pub(crate) fn text(value: impl Into<String>) -> AttributeValue {
    AttributeValue::S(value.into())
}

pub(crate) fn number(value: u64) -> AttributeValue {
    AttributeValue::N(value.to_string())
}

pub(crate) fn encode(
    key: &AggregateKey,
    version: u64,
    event: &NewAggregateEvent,
    timestamp: &str,
    push_id: &str,
    rest: u64,
) -> Result<Item, AggregateError> {
    if event.event_type.is_empty() || RESERVED_TYPES.contains(&&*event.event_type) {
        let why = format!("{:?} can't be the type of an event", event.event_type);
        return Err(AggregateError::Invalid(why));
    }
    let mut item = Item::from([
        (AGGREGATE_ID.to_owned(), text(key.to_string())),
        (VERSION.to_owned(), number(version)),
        (TYPE.to_owned(), text(&event.event_type)),
        (TIMESTAMP.to_owned(), text(timestamp)),
        (PUSH_ID.to_owned(), text(push_id)),
    ]);
    for (name, value) in [(PAYLOAD, &event.payload), (METADATA, &event.metadata)] {
        let Some(value) = value else { continue };
        let unstorable = |source| AggregateError::Unstorable { key: key.clone(), source };
        item.insert(name.to_owned(), to_attribute(name, value).map_err(unstorable)?);
    }
    if rest > 0 {
        item.insert(REST.to_owned(), number(rest));
    }
    if version == 1 {
        item.insert(EVENT_STORE_ID.to_owned(), text(key.store()));
    }
    Ok(item)
}

pub(crate) fn decode(mut item: Item) -> Result<AggregateEvent, DecodeError> {
    let key = AggregateKey::of_partition(text_of(&item, AGGREGATE_ID)?)?;
    let version = version_of(&item)?;
    let event_type = text_of(&item, TYPE)?.to_owned();
    let timestamp = text_of(&item, TIMESTAMP)?.to_owned();
    let rest = item.get(REST).and_then(|value| value.as_n().ok());
    let rest = rest.and_then(|rest| rest.parse().ok()).unwrap_or(0);
    let mut json = |name| item.remove(name).map(|value| from_attribute(name, value)).transpose();
    let (payload, metadata) = (json(PAYLOAD)?, json(METADATA)?);
    Ok(AggregateEvent { key, version, event_type, timestamp, payload, metadata, rest })
}

/// [`decode`], with an error that names the item.
pub(crate) fn decode_named(item: Item) -> Result<AggregateEvent, AggregateError> {
    let name = name_of(&item);
    decode(item).map_err(|error| AggregateError::undecodable(name, error))
}

/// Names an item in an error, even if it is not an event.
#[must_use]
pub fn name_of(item: &Item) -> String {
    let partition = text_of(item, AGGREGATE_ID).unwrap_or("?");
    let version = item.get(VERSION).and_then(|version| version.as_n().ok());
    format!("item {partition} {}", version.map_or("?", |version| version))
}

pub(crate) fn text_of<'a>(item: &'a Item, name: &'static str) -> Result<&'a str, DecodeError> {
    let value = item.get(name).and_then(|value| value.as_s().ok());
    value.map(String::as_str).ok_or(DecodeError::Attribute(name))
}

pub(crate) fn version_of(item: &Item) -> Result<Version, DecodeError> {
    let number = item.get(VERSION).and_then(|value| value.as_n().ok());
    let version = number.and_then(|number| number.parse().ok()).map(Version);
    version.ok_or(DecodeError::Attribute(VERSION))
}

/// The type of an item's event.
pub(crate) fn event_type(item: &Item) -> Option<&str> {
    text_of(item, TYPE).ok()
}

/// The conflict of a new event with the item in its place.
pub(crate) fn conflict(key: AggregateKey, version: u64, found: Option<&Item>) -> VersionConflict {
    let event_type = found.and_then(event_type);
    VersionConflict { key, version, event_type: event_type.unwrap_or("something else").to_owned() }
}

/// Whether the push `push_id` wrote `found`.
pub(crate) fn is_of_push(found: Option<&Item>, push_id: &str) -> bool {
    found.is_some_and(|item| text_of(item, PUSH_ID).is_ok_and(|found| found == push_id))
}
