//! Events as entries of the index: each is the item that its own log has of it.
//!
//! An event of the DCB log or the aggregate log is an item there. An event of a document is a part of
//! its Tip or of a calf; its entry is an item of its own, with the stream and the event's index as
//! key. No body is unpacked and no attribute is converted, so an entry can hold whatever a log can.

use std::error::Error;

use aws_sdk_dynamodb::types::AttributeValue;
use ringfence::{BoundaryId, FedEvent, Position, Sequence};
use ringfence_aggregate_log::event_of_image as event_of_aggregate;
use ringfence_dcb_log::event_of_image as event_of_dcb;
use ringfence_document_log::{BodyError, Recorded, Span};
use ringfence_dynamo::Item;

use crate::partition::{Log, Partition};

type Source = Box<dyn Error + Send + Sync>;

/// An item that should be an event and can't be read as one.
#[derive(Debug, thiserror::Error)]
#[error("the item is not a complete event")]
pub struct EntryError(#[source] Source);

impl From<BodyError> for EntryError {
    fn from(error: BodyError) -> Self {
        unreadable(error)
    }
}

fn unreadable(error: impl Into<Source>) -> EntryError {
    EntryError(error.into())
}

/// The log of an item, as its key says.
fn log_of(item: &Item) -> Option<Log> {
    let has = |name: &str| item.contains_key(name);
    match () {
        () if has("id") && has("position") => Some(Log::Dcb),
        () if has("aggregateId") => Some(Log::Aggregates),
        () if has("p") => Some(Log::Documents),
        () => None,
    }
}

/// The events that a NEW_IMAGE of one of the tables' streams shows: one for a new event of the DCB log
/// or the aggregate log, those of the append for a document's Tip, and none for anything else.
///
/// # Errors
/// The image should have events and can't be read. An event of a document that can't be unpacked fails
/// alone.
pub fn events_of_image(image: Item) -> Result<Vec<Result<FedEvent, EntryError>>, EntryError> {
    match log_of(&image) {
        Some(Log::Dcb) => {
            let event = event_of_dcb(image).map_err(unreadable)?;
            Ok(event.into_iter().map(|event| Ok(event.into())).collect())
        }
        Some(Log::Aggregates) => {
            let event = event_of_aggregate(image).map_err(unreadable)?;
            Ok(vec![Ok(event.into())])
        }
        Some(Log::Documents) => {
            let span = Span::of_image(image).map_err(unreadable)?;
            let events = span.into_iter().flat_map(|Span { stream, events, .. }| {
                events.into_iter().map(move |event| event.fed(&stream).map_err(unreadable))
            });
            Ok(events.collect())
        }
        None => Err(unreadable("it has the key of no table of events")),
    }
}

/// The event of an entry.
pub(crate) fn event_of(entry: Item) -> Result<FedEvent, EntryError> {
    match log_of(&entry) {
        Some(Log::Dcb) => {
            let event = event_of_dcb(entry).map_err(unreadable)?;
            event.map(FedEvent::from).ok_or_else(|| unreadable("it has no event type"))
        }
        Some(Log::Aggregates) => event_of_aggregate(entry).map(FedEvent::from).map_err(unreadable),
        Some(Log::Documents) => {
            let (stream, event) = Recorded::of_item(entry).map_err(unreadable)?;
            event.fed(&stream).map_err(unreadable)
        }
        None => Err(unreadable("it has the key of no table of events")),
    }
}

/// The place of an event of the DCB log or the aggregate log, as the key of its item says, whatever else
/// the item has.
pub(crate) fn place_of(item: &Item) -> Option<(Partition, Sequence)> {
    let text = |name: &str| item.get(name)?.as_s().ok();
    match log_of(item)? {
        Log::Dcb => {
            let position = Position::try_from(text("position")?.clone()).ok()?;
            Some((BoundaryId::stored(text("id")?.as_str()).into(), position.into()))
        }
        Log::Aggregates => {
            let version = item.get("version")?.as_n().ok()?.parse().ok()?;
            Some((Partition::of_aggregate(text("aggregateId")?), Sequence::Version(version)))
        }
        Log::Documents => None,
    }
}

/// Names an item for a person, readable or not.
pub(crate) fn name_of(item: &Item) -> String {
    let partition = ["id", "aggregateId", "p"].into_iter().find_map(|name| item.get(name));
    let partition = partition.and_then(|partition| partition.as_s().ok());
    format!("item {} {}", partition.map_or("?", String::as_str), position_of(item))
}

/// Names the place of an item for a person, readable or not.
pub(crate) fn position_of(item: &Item) -> String {
    let text = |name: &str| match item.get(name)? {
        AttributeValue::S(text) | AttributeValue::N(text) => Some(text.clone()),
        _ => None,
    };
    ["position", "version", "i"].into_iter().find_map(text).unwrap_or_default()
}
