//! The attributes of the table's items, and events as items.

use aws_sdk_dynamodb::types::AttributeValue;
use ringfence_aws::{CodecError, Item, from_attribute, to_attribute};
use ringfence_core::{
    BoundaryId, Catalog, CommandRecord, Filing, LogError, Metadata, MetadataError, Place,
    SequencedEvent, StoreError, Tag,
};

/// Partition key of the table.
pub const ID: &str = "id";
/// Sort key of the table: the slot of an event, the time of an index item with a fraction, or 0 for any other item.
pub const POSITION: &str = "position";
/// When an event was recorded, in milliseconds since 1970; sort key of every index.
pub const AT: &str = "at";
/// Random id of the append that put an event. A writer recognises its events by it.
pub const APPEND_ID: &str = "appendId";
/// The number of events of the same append that follow in the partition. The last event does not have it.
pub const REST: &str = "rest";
/// Slot of the event that an index item repeats.
pub const SLOT: &str = "slot";
/// Type name of an event. Only events have it, so scans and stream filters find events by it.
pub const EVENT: &str = "event";
/// Type name of the event that an index item repeats.
pub const INDEX_OF: &str = "indexOf";
/// Partition of the event that an index item repeats.
pub const PARTITION: &str = "partition";
/// The context of an event.
pub const CONTEXT: &str = "context";
/// The payload of an event.
pub const DATA: &str = "data";
/// The tags of an event, each a map of `key` and `value`.
pub const TAGS: &str = "tags";
/// The version of an event's payload, if it is above 1. It is the only name in the last element of the tags. Every
/// index projects the tags, so every read has the version, and no index has to be rebuilt for it.
const SCHEMA: &str = Metadata::SCHEMA;
pub(crate) const RECORDED_AT: &str = "recordedAt";
/// The id that an imported event had in its first log.
pub const EVENT_ID: &str = "eventId";
/// Time of the newest event that a fence counts.
pub const HEAD: &str = "head";
/// Prefix of a fence's attributes that count the events of a type.
pub const COUNT: &str = "cnt#";
/// Names the last repair of a fence.
pub const REPAIRED: &str = "repaired";
/// The number of a fence's last announcement; of a copy, the number of the announcement that put it.
pub const ANNOUNCED: &str = "announced";
/// Names who announces on a fence, until that ends.
pub const ANNOUNCER: &str = "announcer";
/// When the announcer began, in milliseconds since 1970.
pub const SINCE: &str = "since";
/// How many copies a fence has.
pub const COPIES: &str = "copies";
/// Whether a copy can be checked. A closed copy does not have it.
pub const OPEN: &str = "open";
/// An index and its partition key, for events that are read by their whole set of tags.
pub const COMPOSITE_INDEX: &str = "tag_composite";

/// An index and its partition key, for a cross-partition tag key.
#[must_use]
pub fn tag_index(key: &str) -> String {
    format!("tag_{key}")
}

/// The attribute of a fence that counts the events of a type.
#[must_use]
pub fn count_name(event_type: &str) -> String {
    format!("{COUNT}{event_type}")
}

pub(crate) fn text(value: impl Into<String>) -> AttributeValue {
    AttributeValue::S(value.into())
}

pub(crate) fn number(value: u64) -> AttributeValue {
    AttributeValue::N(value.to_string())
}

/// The key of an item.
pub(crate) fn key(id: impl Into<String>, position: u64) -> Item {
    Item::from([(ID.to_owned(), text(id)), (POSITION.to_owned(), number(position))])
}

/// The count of `event_type` in a fence; 0 if the fence or the count is missing.
pub(crate) fn count(fence: Option<&Item>, event_type: &str) -> u64 {
    let count = fence.and_then(|fence| fence.get(&count_name(event_type)));
    count.and_then(|count| count.as_n().ok()).and_then(|count| count.parse().ok()).unwrap_or(0)
}

/// About how many attributes an event has besides its key.
const ATTRIBUTES: usize = 12;

/// Encodes an event of the append with this id.
pub(crate) fn encode(
    event: &SequencedEvent,
    filing: &Filing,
    append_id: &str,
) -> Result<Item, LogError> {
    let mut item = key(filing.partition.as_str(), event.slot);
    item.reserve(ATTRIBUTES);
    for (name, value) in event.metadata.iter() {
        // Metadata that was deserialised is not checked yet. A name `expiresAt` would delete the event, and a name
        // `tag_<key>` would show it where it is not filed.
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
    let schema = (event.version > 1)
        .then(|| AttributeValue::M([(SCHEMA.to_owned(), number(event.version.into()))].into()));
    let tags = tags.chain(schema);
    item.extend([
        (EVENT.to_owned(), text(&event.event_type)),
        (CONTEXT.to_owned(), text(&event.context)),
        (DATA.to_owned(), to_attribute(DATA, &event.data)?),
        (AT.to_owned(), number(event.at)),
        (APPEND_ID.to_owned(), text(append_id)),
        (TAGS.to_owned(), AttributeValue::L(tags.collect())),
    ]);
    item.extend((event.rest > 0).then(|| (REST.to_owned(), number(event.rest))));
    item.extend(filing.indexed.iter().map(|tag| (tag_index(&tag.key), text(&tag.value))));
    item.extend(filing.composite.iter().map(|id| (COMPOSITE_INDEX.to_owned(), text(id.as_str()))));
    Ok(item)
}

/// The index item that repeats the event of `item` under `boundary`. Its type has another attribute name, so scans
/// and stream filters do not take it for an event.
pub(crate) fn index_item(item: &Item, filing: &Filing, boundary: &BoundaryId) -> Item {
    let mut copy = item.clone();
    copy.retain(|name, _| name != EVENT && !name.starts_with("tag_"));
    copy.insert(ID.to_owned(), text(items_id(boundary)));
    let partition = filing.partition.clone();
    let (at, slot) = (whole(item, AT).unwrap_or(0), slot(item).unwrap_or(0));
    let position = Place { at, partition, slot }.index_position();
    copy.insert(POSITION.to_owned(), AttributeValue::N(position));
    copy.insert(PARTITION.to_owned(), text(filing.partition.as_str()));
    copy.insert(SLOT.to_owned(), item[POSITION].clone());
    copy.insert(INDEX_OF.to_owned(), item[EVENT].clone());
    copy
}

/// The partition key of a boundary's index items.
pub(crate) fn items_id(boundary: &BoundaryId) -> String {
    format!("tag#{boundary}")
}

/// Why an item is not an event.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DecodeError {
    #[error("attribute {0} is missing or of another type")]
    Attribute(&'static str),
    #[error("a value can't be read")]
    Value(#[from] CodecError),
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

/// The attribute names for partition, slot and type, of an event's item or of an index item.
fn place_names(item: &Item) -> [&'static str; 3] {
    match item.contains_key(INDEX_OF) {
        true => [PARTITION, SLOT, INDEX_OF],
        false => [ID, POSITION, EVENT],
    }
}

/// The partition of an event's item or of an index item.
pub(crate) fn partition(item: &Item) -> Option<&str> {
    let [partition, ..] = place_names(item);
    Some(item.get(partition)?.as_s().ok()?)
}

/// The context of an event. If an index does not project it, it comes from the catalog.
fn context(catalog: &Catalog, item: &mut Item, event_type: &str) -> String {
    let of_catalog = |_| catalog.context(event_type).unwrap_or_default().to_owned();
    take_text(item, CONTEXT).unwrap_or_else(of_catalog)
}

/// Decodes an event's item or an index item. If an index does not project metadata, the metadata are empty.
pub(crate) fn decode(catalog: &Catalog, mut item: Item) -> Result<SequencedEvent, DecodeError> {
    let [partition, slot, event_type] = place_names(&item);
    let partition = BoundaryId::stored(take_text(&mut item, partition)?);
    let slot = whole(&item, slot).ok_or(DecodeError::Attribute(slot))?;
    let at = whole(&item, AT).ok_or(DecodeError::Attribute(AT))?;
    let rest = whole(&item, REST).unwrap_or(0);
    let event_type = take_text(&mut item, event_type)?;
    let data = item.remove(DATA).ok_or(DecodeError::Attribute(DATA))?;
    let Some(AttributeValue::L(mut tags)) = item.remove(TAGS) else {
        return Err(DecodeError::Attribute(TAGS));
    };
    let version = take_version(&mut tags)?;
    let tags = tags.into_iter().map(tag).collect::<Result<_, _>>()?;
    let context = context(catalog, &mut item, &event_type);
    let mut metadata = Metadata::default();
    for (name, value) in item.into_iter().filter(|(name, _)| !Metadata::is_reserved(name)) {
        let value = from_attribute(&name, value)?;
        metadata.insert(name, value)?;
    }
    let data = from_attribute(DATA, data)?;
    Ok(SequencedEvent {
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
    })
}

/// The [`SequencedEvent::place_only`] of an item. Decodes nothing else.
pub(crate) fn place_only(catalog: &Catalog, mut item: Item) -> Result<SequencedEvent, DecodeError> {
    let mut metadata = Metadata::default();
    for mark in CommandRecord::MARKS.into_iter().chain([CommandRecord::REJECTION]) {
        if let Ok(text) = take_text(&mut item, mark) {
            metadata.insert(mark, text)?;
        }
    }
    let [partition, slot, event_type] = place_names(&item);
    let event_type = take_text(&mut item, event_type)?;
    Ok(SequencedEvent {
        partition: BoundaryId::stored(take_text(&mut item, partition)?),
        slot: whole(&item, slot).ok_or(DecodeError::Attribute(slot))?,
        at: whole(&item, AT).unwrap_or(0),
        rest: whole(&item, REST).unwrap_or(0),
        context: context(catalog, &mut item, &event_type),
        event_type,
        tags: Vec::new(),
        version: 1,
        data: serde_json::Value::Null,
        metadata,
    })
}

/// An integer attribute. Parsed strictly: to DynamoDB, 1 and 1.0 are one key, and 1.5 is possible.
pub(crate) fn whole(item: &Item, name: &str) -> Option<u64> {
    item.get(name)?.as_n().ok()?.parse().ok()
}

/// The slot of an event's item.
pub(crate) fn slot(item: &Item) -> Option<u64> {
    whole(item, POSITION)
}

/// The place of an event, from the key of its item.
pub(crate) fn place_of(item: &Item) -> Option<(BoundaryId, u64)> {
    Some((BoundaryId::stored(item.get(ID)?.as_s().ok()?.as_str()), slot(item)?))
}

/// The id of the append that put an event.
pub(crate) fn append_id(item: &Item) -> Option<&str> {
    Some(item.get(APPEND_ID)?.as_s().ok()?)
}

/// The name of an item in errors: its partition and its position, like the id of an event.
pub(crate) fn name(item: &Item) -> String {
    let (id, position) = key_of(item);
    format!("{id}/{position}")
}

/// The key of an item, as two strings.
pub(crate) fn key_of(item: &Item) -> (String, String) {
    let id = item.get(ID).and_then(|id| id.as_s().ok()).cloned();
    let position = item.get(POSITION).and_then(|position| position.as_n().ok()).cloned();
    (id.unwrap_or_default(), position.unwrap_or_default())
}

/// An event's item without payload and metadata. Filing the event needs no more.
pub(crate) fn unloaded(item: &Item) -> Item {
    let mut item = item.clone();
    item.retain(|name, _| matches!(name.as_str(), ID | POSITION | AT | EVENT | TAGS));
    item.insert(DATA.to_owned(), AttributeValue::Null(true));
    item
}

fn take_text(item: &mut Item, name: &'static str) -> Result<String, DecodeError> {
    match item.remove(name) {
        Some(AttributeValue::S(text)) => Ok(text),
        _ => Err(DecodeError::Attribute(name)),
    }
}

/// Removes the last element of the tags if it is a version, and returns the version.
fn take_version(tags: &mut Vec<AttributeValue>) -> Result<u32, DecodeError> {
    let schema = |last: &AttributeValue| Some(last.as_m().ok()?.get(SCHEMA)?.clone());
    let Some(schema) = tags.last().and_then(schema) else { return Ok(1) };
    tags.pop();
    let version = schema.as_n().ok().and_then(|version| version.parse().ok());
    version.ok_or(DecodeError::Attribute(SCHEMA))
}

fn tag(value: AttributeValue) -> Result<Tag, DecodeError> {
    let AttributeValue::M(mut tag) = value else {
        return Err(DecodeError::Attribute(TAGS));
    };
    Ok(Tag::new(take_text(&mut tag, "key")?, take_text(&mut tag, "value")?))
}

#[cfg(test)]
mod tests {
    use ringfence_aws::item_bytes;
    use ringfence_core::{Event, NewEvent, storable};

    use super::*;

    #[derive(Event)]
    #[event(read_as_composite, read_by_type, fenced)]
    struct Moved {
        #[tag(partition)]
        parcel_id: String,
        #[tag(cross_partition)]
        driver_id: String,
        #[tag(cross_partition, strong)]
        depot_id: String,
    }

    #[test]
    fn items_have_as_many_bytes_as_the_core_counts() {
        let catalog = Catalog::new("parcels", [Moved::SCHEMA]).expect("free of contradictions");
        let text = |text: &str| text.to_owned();
        let moved =
            Moved { parcel_id: text("p#1"), driver_id: text("d"), depot_id: text("größe") };
        let new = NewEvent::from(moved);
        let filing = catalog.filing(&new).expect("it has a partition");
        let mut metadata = Metadata::default();
        metadata
            .insert("correlationId", serde_json::json!(["c", 1.5, null]))
            .expect("not reserved");
        let places = [(1, 1_719_100_800_123, 0, 1), (120, 1_719_100_800_000, 17, 120)];
        for (slot, at, rest, version) in places {
            let NewEvent { event_type, tags, data } = new.clone();
            let event = SequencedEvent {
                partition: filing.partition.clone(),
                slot,
                at,
                rest,
                event_type: event_type.into_owned(),
                context: text("parcels"),
                tags,
                version,
                data,
                metadata: metadata.clone(),
            };
            let append_id = "8a3b0a1e-5f61-4a3e-9d83-0f3c1b2a4d5e";
            let item = encode(&event, &filing, append_id).expect("it can be stored");
            assert_eq!(storable::event_bytes(&event, &filing), item_bytes(&item), "{item:?}");
            assert_eq!(decode(&catalog, item.clone()).expect("an event"), event);
            assert_eq!((filing.items.len(), filing.indexed.len()), (2, 1));
            for boundary in &filing.items {
                let copy = index_item(&item, &filing, boundary);
                assert_eq!(
                    storable::index_item_bytes(&event, boundary),
                    item_bytes(&copy),
                    "{copy:?}"
                );
                // An index projects no more of an event than this, and must show its version.
                let mut copy = copy;
                let projected = [EVENT, INDEX_OF, ID, POSITION, PARTITION, SLOT, AT, DATA, TAGS];
                copy.retain(|name, _| projected.contains(&name.as_str()));
                let read = decode(&catalog, copy).expect("an event");
                assert_eq!((read.version, read.tags), (version, event.tags.clone()));
            }
        }
    }

    #[test]
    fn an_event_that_only_takes_its_slot_keeps_the_marks_of_command_and_rejection() {
        let marks = CommandRecord::MARKS.into_iter().chain([CommandRecord::REJECTION]);
        let mut metadata = Metadata::default();
        for mark in marks.clone() {
            metadata.insert(mark, format!("the {mark}")).expect("not reserved");
        }
        let marked = metadata.clone();
        metadata.insert("correlationId", "c").expect("not reserved");
        let mut item = key("parcelId:p", 1);
        item.insert(EVENT.to_owned(), text("Moved"));
        for (name, value) in metadata.iter() {
            item.insert(name.to_owned(), to_attribute(name, value).expect("a text"));
        }
        let catalog = Catalog::new("parcels", [Moved::SCHEMA]).expect("free of contradictions");
        assert_eq!(place_only(&catalog, item).expect("an event").metadata, marked);
    }
}
