//! Events as entries of the index: each is the item that its own log has of it.
//!
//! An event of the DCB log or the aggregate log is an item there. An event of a document is a part of
//! its Tip or of a calf; its entry is an item of its own, with the stream and the event's index as
//! key. No body is unpacked and no attribute is converted, so an entry can hold whatever a log can.

use std::error::Error;

use ringfence_aggregate_log::event_of_image as event_of_aggregate;
use ringfence_aws::Item;
use ringfence_core::{BoundaryId, LogKind, Metadata, SequencedEvent};
use ringfence_dcb_log::event_of_image as event_of_dcb;
use ringfence_document_log::{BodyError, Span, StreamName, TimelineEvent};
use serde_json::Value;

use crate::checkpoint::Checkpoint;
use crate::partition::{Doorbell, Partition};

type Source = Box<dyn Error + Send + Sync>;

/// One event of the feed.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The checkpoint after it, which a reader keeps when it is done with the event.
    pub checkpoint: Checkpoint,
    /// The event.
    pub event: SequencedEvent,
}

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
fn log_of(item: &Item) -> Option<LogKind> {
    let has = |name: &str| item.contains_key(name);
    match () {
        () if has("id") && has("position") => Some(LogKind::Dcb),
        () if has("aggregateId") => Some(LogKind::Aggregates),
        () if has("p") => Some(LogKind::Documents),
        () => None,
    }
}

/// The events that a NEW_IMAGE of one of the tables' streams shows: one for a new event of the DCB log
/// or the aggregate log, those of the append for a document's Tip, and none for anything else.
///
/// # Errors
/// The image should have events and can't be read. An event of a document that can't be unpacked fails
/// alone.
pub fn events_of_image(image: Item) -> Result<Vec<Result<SequencedEvent, EntryError>>, EntryError> {
    match log_of(&image) {
        Some(LogKind::Dcb) => {
            let event = event_of_dcb(image).map_err(unreadable)?;
            Ok(event.into_iter().map(Ok).collect())
        }
        Some(LogKind::Aggregates) => {
            let event = event_of_aggregate(image).map_err(unreadable)?;
            Ok(vec![Ok(event.into())])
        }
        Some(LogKind::Documents) => {
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
pub(crate) fn event_of(entry: Item) -> Result<SequencedEvent, EntryError> {
    match log_of(&entry) {
        Some(LogKind::Dcb) => {
            let event = event_of_dcb(entry).map_err(unreadable)?;
            event.ok_or_else(|| unreadable("it has no event type"))
        }
        Some(LogKind::Aggregates) => event_of_aggregate(entry).map(Into::into).map_err(unreadable),
        Some(LogKind::Documents) => {
            let (stream, event) = TimelineEvent::of_item(entry).map_err(unreadable)?;
            event.fed(&stream).map_err(unreadable)
        }
        None => Err(unreadable("it has the key of no table of events")),
    }
}

/// Where the event of an entry is, as its key says, whatever else is in it.
pub(crate) fn place_of(item: &Item) -> Option<(Partition, u64)> {
    let text = |name: &str| item.get(name)?.as_s().ok();
    let partition = match log_of(item)? {
        LogKind::Dcb => BoundaryId::stored(text("id")?.as_str()).into(),
        LogKind::Aggregates => Partition::of_aggregate(text("aggregateId")?),
        LogKind::Documents => {
            Partition::of_document(&StreamName::try_from(text("p")?.clone()).ok()?)
        }
    };
    Some((partition, slot_of(item)?))
}

/// What an entry says of its event, whatever can't be decoded: where it is, and its type and context if they are there.
pub(crate) fn known_of(item: &Item) -> SequencedEvent {
    let text = |names: &[&str]| {
        let found = names.iter().find_map(|name| item.get(*name)?.as_s().ok());
        found.cloned().unwrap_or_default()
    };
    let partition = place_of(item).map(|(partition, _)| partition.id);
    let partition =
        partition.unwrap_or_else(|| BoundaryId::stored(text(&["id", "aggregateId", "p"])));
    let context = match text(&["context"]) {
        context if !context.is_empty() => context,
        _ => partition.as_str().split(['#', '-']).next().unwrap_or_default().to_owned(),
    };
    SequencedEvent {
        slot: slot_of(item).unwrap_or_default(),
        at: at_of(item).unwrap_or_default(),
        rest: 0,
        event_type: text(&["event", "type", "c"]),
        context,
        tags: Vec::new(),
        version: 1,
        data: Value::Null,
        metadata: Metadata::default(),
        partition,
    }
}

/// The number of an event in its partition.
pub(crate) fn slot_of(item: &Item) -> Option<u64> {
    slot_text(item)?.parse().ok()
}

fn slot_text(item: &Item) -> Option<&String> {
    ["position", "version", "i"].into_iter().find_map(|name| item.get(name)?.as_n().ok())
}

/// The append that put an event of the DCB log: of two events in one slot, one before a restore and one
/// after it, each has its own.
pub(crate) fn append_id_of(item: &Item) -> Option<&String> {
    item.get("appendId")?.as_s().ok()
}

/// The time of an event of the DCB log.
pub(crate) fn at_of(item: &Item) -> Option<u64> {
    item.get("at")?.as_n().ok()?.parse().ok()
}

/// Names an item for a person, readable or not.
pub(crate) fn name_of(item: &Item) -> String {
    let partition = ["id", "aggregateId", "p"].into_iter().find_map(|name| item.get(name));
    let partition = partition.and_then(|partition| partition.as_s().ok());
    let slot = slot_text(item).map_or("", String::as_str);
    format!("item {} {slot}", partition.map_or("?", String::as_str))
}

impl Doorbell {
    /// The doorbell that a NEW_IMAGE of one of the tables' streams rings; `None` if the image shows no
    /// new event. A document's Tip shows those of its last append.
    ///
    /// # Errors
    /// The image is of none of the tables.
    pub fn of_image(image: Item) -> Result<Option<Self>, EntryError> {
        let log =
            log_of(&image).ok_or_else(|| unreadable("it has the key of no table of events"))?;
        if log == LogKind::Documents {
            return of_tip(image);
        }
        if log == LogKind::Dcb && !image.contains_key("event") {
            return Ok(None);
        }
        let place = place_of(&image);
        let (partition, slot) =
            place.ok_or_else(|| unreadable("its key is not that of an event"))?;
        Ok(Some(Self { partition, events: [(slot, image)].into() }))
    }
}

/// A calf does not have `a`, the number of events that a write of the Tip has appended. A Tip that can't be read
/// still names its stream.
fn of_tip(image: Item) -> Result<Option<Doorbell>, EntryError> {
    let appended = image.get("a").and_then(|appended| appended.as_n().ok());
    if appended.is_none_or(|appended| appended == "0") {
        return Ok(None);
    }
    let stream = image.get("p").and_then(|stream| stream.as_s().ok()).cloned();
    let stream = StreamName::try_from(stream.unwrap_or_default()).map_err(unreadable)?;
    let partition = Partition::of_document(&stream);
    let span = Span::of_image(image).ok().flatten();
    let events = span.into_iter().flat_map(|span| span.events);
    let events = events.map(|event| (event.index, event.to_item(&stream))).collect();
    Ok(Some(Doorbell { partition, events }))
}
