//! The attributes of the table's items, and events as items.

use aws_sdk_dynamodb::types::AttributeValue;
use ringfence::{
    BoundaryId, Catalog, Filing, LogError, Metadata, MetadataError, Position, PositionError,
    SequencedEvent, StoreError, Tag,
};
use ringfence_dynamo::{CodecError, Item, from_attribute, to_attribute};

/// Partition key of the table.
pub(crate) const ID: &str = "id";
/// Sort key of the table and of every index.
pub(crate) const POSITION: &str = "position";
/// Type name; events alone have it, so scans and stream filters know them by it.
pub(crate) const EVENT: &str = "event";
/// Type name of an event that an index item repeats.
const INDEX_OF: &str = "indexOf";
/// Partition of an event that an index item repeats.
const PARTITION: &str = "partition";
const CONTEXT: &str = "context";
pub(crate) const DATA: &str = "data";
pub(crate) const TAGS: &str = "tags";
pub(crate) const RECORDED_AT: &str = "recordedAt";
/// The id that an imported event had in its first log.
pub(crate) const EVENT_ID: &str = "eventId";
/// Newest position of any type under a fence.
pub(crate) const HEAD: &str = "head";
/// What the attributes of a fence begin with that count the events of a type.
pub(crate) const COUNT: &str = "cnt#";
/// Names the last repair of a fence.
pub(crate) const REPAIRED: &str = "repaired";
/// Index, and its partition key, of the events read by their whole set of tags.
pub(crate) const COMPOSITE_INDEX: &str = "tag_composite";

/// Index, and its partition key, of a cross-partition tag key.
pub(crate) fn tag_index(key: &str) -> String {
    format!("tag_{key}")
}

/// The attribute of a fence that counts the events of a type.
pub(crate) fn count_name(event_type: &str) -> String {
    format!("{COUNT}{event_type}")
}

/// The attribute of a fence that holds the newest position of a type.
pub(crate) fn position_name(event_type: &str) -> String {
    format!("pos#{event_type}")
}

pub(crate) fn text(value: impl Into<String>) -> AttributeValue {
    AttributeValue::S(value.into())
}

pub(crate) fn number(value: u64) -> AttributeValue {
    AttributeValue::N(value.to_string())
}

/// The key of an item.
pub(crate) fn key(id: impl Into<String>, position: &str) -> Item {
    Item::from([(ID.to_owned(), text(id)), (POSITION.to_owned(), text(position))])
}

/// The count of `event_type` in a fence; a fence or a count that is not there is zero.
pub(crate) fn count(fence: Option<&Item>, event_type: &str) -> u64 {
    let count = fence.and_then(|fence| fence.get(&count_name(event_type)));
    count.and_then(|count| count.as_n().ok()).and_then(|count| count.parse().ok()).unwrap_or(0)
}

/// The item of an event.
pub(crate) fn encode(event: &SequencedEvent, filing: &Filing) -> Result<Item, LogError> {
    let mut item = key(filing.partition.as_str(), event.position.as_str());
    for (name, value) in event.metadata.iter() {
        // Metadata that was deserialised is not checked yet. One `expiresAt` would delete the
        // event, one `tag_<key>` show it where it is not filed.
        if Metadata::is_reserved(name) {
            let source = format!("metadata key {name:?} is reserved for the log").into();
            return Err(StoreError::Failed { operation: "encoding an item", source }.into());
        }
        item.insert(name.to_owned(), to_attribute(name, value)?);
    }
    let tags = event.tags.iter().map(|tag| {
        let pair = [("key", text(&*tag.key)), ("value", text(&tag.value))];
        AttributeValue::M(pair.map(|(name, value)| (name.to_owned(), value)).into())
    });
    item.extend([
        (EVENT.to_owned(), text(&event.event_type)),
        (CONTEXT.to_owned(), text(&event.context)),
        (DATA.to_owned(), to_attribute(DATA, &event.data)?),
        (RECORDED_AT.to_owned(), text(&event.recorded_at)),
        (TAGS.to_owned(), AttributeValue::L(tags.collect())),
    ]);
    item.extend(filing.indexed.iter().map(|tag| (tag_index(&tag.key), text(&tag.value))));
    item.extend(filing.composite.iter().map(|id| (COMPOSITE_INDEX.to_owned(), text(id.as_str()))));
    Ok(item)
}

/// The index item that repeats the event of `item` under `boundary`. It says its type by another
/// name, so that no scan and no stream filter takes it for an event.
pub(crate) fn index_item(item: &Item, filing: &Filing, boundary: &BoundaryId) -> Item {
    let mut copy = item.clone();
    copy.retain(|name, _| name != EVENT && !name.starts_with("tag_"));
    copy.insert(ID.to_owned(), text(items_id(boundary)));
    copy.insert(PARTITION.to_owned(), text(filing.partition.as_str()));
    copy.insert(INDEX_OF.to_owned(), item[EVENT].clone());
    copy
}

/// The partition key of a boundary's index items.
pub(crate) fn items_id(boundary: &BoundaryId) -> String {
    format!("tag#{boundary}")
}

/// Why an item is no event.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DecodeError {
    #[error("attribute {0} is missing or of another type")]
    Attribute(&'static str),
    #[error("a value can't be read")]
    Value(#[from] CodecError),
    #[error("the position can't be read")]
    Position(#[from] PositionError),
    #[error("the metadata can't be read")]
    Metadata(#[from] MetadataError),
}

/// The type name of an event's item, if it has one.
pub(crate) fn event_type(item: &Item) -> Option<&str> {
    Some(item.get(EVENT)?.as_s().ok()?)
}

/// The type name of an event's item or of an index item.
pub(crate) fn read_type(item: &Item) -> Option<&str> {
    event_type(item).or_else(|| Some(item.get(INDEX_OF)?.as_s().ok()?))
}

/// The event of an item, its own or an index item. An index that does not project metadata or `recordedAt` leaves them
/// empty; the context then comes from the catalog.
pub(crate) fn decode(catalog: &Catalog, mut item: Item) -> Result<SequencedEvent, DecodeError> {
    let position = Position::try_from(take_text(&mut item, POSITION)?)?;
    let (partition, event_type) =
        if item.contains_key(INDEX_OF) { (PARTITION, INDEX_OF) } else { (ID, EVENT) };
    let partition = BoundaryId::stored(take_text(&mut item, partition)?);
    let event_type = take_text(&mut item, event_type)?;
    let data = item.remove(DATA).ok_or(DecodeError::Attribute(DATA))?;
    let tags = match item.remove(TAGS) {
        Some(AttributeValue::L(tags)) => tags.into_iter().map(tag).collect::<Result<_, _>>()?,
        _ => return Err(DecodeError::Attribute(TAGS)),
    };
    let context = take_text(&mut item, CONTEXT)
        .unwrap_or_else(|_| catalog.context(&event_type).unwrap_or_default().to_owned());
    let recorded_at = take_text(&mut item, RECORDED_AT).unwrap_or_default();
    let mut metadata = Metadata::default();
    for (name, value) in item.into_iter().filter(|(name, _)| !Metadata::is_reserved(name)) {
        let value = from_attribute(&name, value)?;
        metadata.insert(name, value)?;
    }
    let data = from_attribute(DATA, data)?;
    Ok(SequencedEvent {
        position,
        partition,
        event_type,
        context,
        tags,
        data,
        metadata,
        recorded_at,
    })
}

/// The event's item with the context that the catalog has for its type, if it names none: other writers
/// of the layout do not know contexts.
pub(crate) fn in_context(catalog: &Catalog, mut item: Item) -> Item {
    if !item.contains_key(CONTEXT) {
        let context = event_type(&item).and_then(|event_type| catalog.context(event_type));
        item.extend(context.map(|context| (CONTEXT.to_owned(), text(context))));
    }
    item
}

/// Names an item in an error: its partition and its position.
pub(crate) fn name(item: &Item) -> String {
    let [id, position] = key_texts(item);
    format!("{id} {position}")
}

/// The key of an item, as two texts.
pub(crate) fn key_texts(item: &Item) -> [String; 2] {
    [ID, POSITION]
        .map(|name| item.get(name).and_then(|v| v.as_s().ok()).cloned().unwrap_or_default())
}

/// An event's item without its payload and metadata: what is needed to file the event.
pub(crate) fn unloaded(item: &Item) -> Item {
    let mut item = item.clone();
    item.retain(|name, _| matches!(name.as_str(), ID | POSITION | EVENT | TAGS));
    item.insert(DATA.to_owned(), AttributeValue::Null(true));
    item
}

fn take_text(item: &mut Item, name: &'static str) -> Result<String, DecodeError> {
    match item.remove(name) {
        Some(AttributeValue::S(text)) => Ok(text),
        _ => Err(DecodeError::Attribute(name)),
    }
}

fn tag(value: AttributeValue) -> Result<Tag, DecodeError> {
    let AttributeValue::M(mut tag) = value else {
        return Err(DecodeError::Attribute(TAGS));
    };
    Ok(Tag::new(take_text(&mut tag, "key")?, take_text(&mut tag, "value")?))
}
