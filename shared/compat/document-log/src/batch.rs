//! Items of the table: Tips and calves. Only this module names their attributes.

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use ringfence_aws::Item;

use crate::attributes::{A, B, C, E, ETAG, I, N, P, U};
use crate::{Body, ItemError, StreamName};

/// The sort key of a Tip, larger than the sort key of any calf.
pub(crate) const TIP_KEY: i64 = 2_147_483_647;

/// An event without its index; its place in the batch gives the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEvent {
    /// `c`: type name.
    pub event_type: String,
    /// `t`: the time of writing by the writer's clock, as text.
    pub time: String,
    /// `d`, `D`: the payload.
    pub data: Body,
    /// `m`, `M`: metadata.
    pub meta: Body,
    /// `x`: the id that events of one process share.
    pub correlation_id: Option<String>,
    /// `y`: the id of the event's cause.
    pub causation_id: Option<String>,
}

/// An event and its place in the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimelineEvent {
    /// The number of events before it.
    pub index: u64,
    /// The event.
    pub event: StoredEvent,
}

/// A snapshot: the state after all events up to some version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfold {
    /// `i`: the number of events it covers.
    pub version: u64,
    /// `t`: the time it was made.
    pub time: String,
    /// `c`: type name.
    pub event_type: String,
    /// `d`, `D`: the state.
    pub data: Body,
    /// `m`, `M`: metadata.
    pub meta: Body,
}

/// One item of a stream: its Tip, or a calf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// `p`: the stream.
    pub stream: StreamName,
    /// `i`: 2,147,483,647 for the Tip, else the index of the first event.
    pub key: i64,
    /// `n`: the index after the last event; the Tip's is the stream's version.
    pub version: u64,
    /// `etag` (Tip): new with every write.
    pub etag: Option<String>,
    /// `b` (Tip): estimated bytes of all events that ever moved to calves.
    pub calved_bytes: u64,
    /// `a` (Tip): the number of events that the last write appended.
    pub appended: u64,
    /// `e` and `c`: the events, oldest first.
    pub events: Vec<StoredEvent>,
    /// `u` (Tip): the unfolds, all of the Tip's version.
    pub unfolds: Vec<Unfold>,
}

/// A stream and its length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The stream.
    pub stream: StreamName,
    /// The index of the first event that is still there; equal to the version if all are gone.
    pub first: u64,
    /// The index after its last event.
    pub version: u64,
}

/// The length of a text in UTF-16 units, as the writers in JavaScript and .NET count it.
fn units(text: &str) -> usize {
    text.encode_utf16().count()
}

impl StoredEvent {
    /// The estimated size, equal for every writer. Tips calve by it, and `b` sums it up.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let ids = [&self.correlation_id, &self.causation_id].into_iter().flatten();
        let ids = ids.map(|id| units(id)).sum::<usize>();
        units(&self.event_type) + self.data.bytes.len() + self.meta.bytes.len() + ids + 40
    }
}

impl Unfold {
    /// The estimated size. Tips calve by it.
    #[must_use]
    pub fn bytes(&self) -> usize {
        units(&self.event_type) + self.data.bytes.len() + self.meta.bytes.len() + 50
    }
}

impl Batch {
    /// Whether it is the Tip.
    #[must_use]
    pub fn is_tip(&self) -> bool {
        self.key == TIP_KEY
    }

    /// The index of the first event, or of the next one if there is none.
    #[must_use]
    pub fn base(&self) -> u64 {
        self.version - self.events.len() as u64
    }

    /// The estimated bytes of the events.
    #[must_use]
    pub fn event_bytes(&self) -> usize {
        self.events.iter().map(StoredEvent::bytes).sum()
    }

    /// The stored item.
    #[must_use]
    pub fn to_item(&self) -> Item {
        let mut item = key(&self.stream, self.key);
        item.insert(N.to_owned(), number(self.version));
        item.insert(E.to_owned(), event_list(&self.events));
        item.insert(C.to_owned(), type_list(&self.events));
        item.insert(U.to_owned(), unfold_list(&self.unfolds));
        if self.is_tip() {
            item.insert(A.to_owned(), number(self.appended));
            item.insert(B.to_owned(), number(self.calved_bytes));
            if let Some(etag) = &self.etag {
                item.insert(ETAG.to_owned(), AttributeValue::S(etag.clone()));
            }
        }
        item
    }

    /// The batch that `item` holds.
    ///
    /// # Errors
    /// The item is not a batch.
    pub fn of_item(mut item: Item) -> Result<Self, ItemError> {
        let stream = match item.remove(P) {
            Some(AttributeValue::S(name)) => name,
            _ => return Err(attribute("", P, "a string")),
        };
        let key: i64 = required(&item, I, &stream)?;
        let version: u64 = required(&item, N, &stream)?;
        let types = list(item.remove(C), C, &stream)?;
        let events = list(item.remove(E), E, &stream)?;
        if types.len() != events.len() {
            return Err(ItemError::Types { stream, types: types.len(), events: events.len() });
        }
        if events.len() as u64 > version {
            return Err(ItemError::Version { stream, events: events.len(), version });
        }
        let parse = |(event_type, event)| parse_event(event_type, event, &stream);
        let events = types.into_iter().zip(events).map(parse).collect::<Result<_, _>>()?;
        let unfolds = list(item.remove(U), U, &stream)?;
        let unfolds = unfolds.into_iter().map(|unfold| parse_unfold(unfold, &stream));
        Ok(Self {
            key,
            version,
            etag: optional_text(&mut item, ETAG, &stream)?,
            calved_bytes: optional(&item, B, &stream)?.unwrap_or(0),
            appended: optional(&item, A, &stream)?.unwrap_or(0),
            unfolds: unfolds.collect::<Result<_, _>>()?,
            events,
            stream: named(stream)?,
        })
    }
}

impl Head {
    /// The head of an item's stream. The item needs only `p`, `n` and `c`.
    pub(crate) fn of_item(mut item: Item) -> Result<Self, ItemError> {
        let stream = required_text(&mut item, P, "")?;
        let version: u64 = required(&item, N, &stream)?;
        let events = list(item.remove(C), C, &stream)?.len() as u64;
        Ok(Self { stream: named(stream)?, first: version.saturating_sub(events), version })
    }
}

impl TimelineEvent {
    /// The event as a separate item. Its key is the stream and the index; the rest is as in a batch.
    #[must_use]
    pub fn to_item(&self, stream: &StreamName) -> Item {
        let mut item = event_map(&self.event);
        item.insert(P.to_owned(), AttributeValue::S(stream.to_string()));
        item.insert(I.to_owned(), number(self.index));
        item.insert(C.to_owned(), AttributeValue::S(self.event.event_type.clone()));
        item
    }

    /// Decodes an item of [`TimelineEvent::to_item`].
    ///
    /// # Errors
    /// The item is not an event.
    pub fn of_item(mut item: Item) -> Result<(StreamName, Self), ItemError> {
        let stream = required_text(&mut item, P, "")?;
        let index = required(&item, I, &stream)?;
        let event_type = item.remove(C).unwrap_or(AttributeValue::Null(true));
        let event = parse_event(event_type, AttributeValue::M(item), &stream)?;
        Ok((named(stream)?, Self { index, event }))
    }
}

/// The key of an item.
pub(crate) fn key(stream: &StreamName, key: i64) -> Item {
    Item::from([
        (P.to_owned(), AttributeValue::S(stream.to_string())),
        (I.to_owned(), AttributeValue::N(key.to_string())),
    ])
}

fn named(stream: String) -> Result<StreamName, ItemError> {
    StreamName::try_from(stream.clone()).map_err(|cause| ItemError::Name { stream, cause })
}

pub(crate) fn number(number: u64) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

/// `c`: the types. They are apart from the bodies, so that a read can leave the bodies out.
pub(crate) fn type_list(events: &[StoredEvent]) -> AttributeValue {
    let types = events.iter().map(|event| AttributeValue::S(event.event_type.clone()));
    AttributeValue::L(types.collect())
}

/// `e`: the events without their types.
pub(crate) fn event_list(events: &[StoredEvent]) -> AttributeValue {
    AttributeValue::L(events.iter().map(|event| AttributeValue::M(event_map(event))).collect())
}

fn event_map(event: &StoredEvent) -> Item {
    let mut map = Item::from([("t".to_owned(), AttributeValue::S(event.time.clone()))]);
    put_body(&mut map, ("d", "D"), &event.data);
    put_body(&mut map, ("m", "M"), &event.meta);
    for (name, id) in [("x", &event.correlation_id), ("y", &event.causation_id)] {
        if let Some(id) = id.as_ref().filter(|id| !id.is_empty()) {
            map.insert(name.to_owned(), AttributeValue::S(id.clone()));
        }
    }
    map
}

/// `u`: the unfolds.
pub(crate) fn unfold_list(unfolds: &[Unfold]) -> AttributeValue {
    let unfold = |unfold: &Unfold| {
        let mut map = Item::from([
            ("i".to_owned(), number(unfold.version)),
            ("t".to_owned(), AttributeValue::S(unfold.time.clone())),
            ("c".to_owned(), AttributeValue::S(unfold.event_type.clone())),
        ]);
        put_body(&mut map, ("d", "D"), &unfold.data);
        put_body(&mut map, ("m", "M"), &unfold.meta);
        AttributeValue::M(map)
    };
    AttributeValue::L(unfolds.iter().map(unfold).collect())
}

fn put_body(map: &mut Item, (bytes, encoding): (&str, &str), body: &Body) {
    if !body.is_empty() {
        map.insert(bytes.to_owned(), AttributeValue::B(Blob::new(body.bytes.clone())));
        map.insert(encoding.to_owned(), number(body.encoding));
    }
}

fn attribute(stream: &str, attribute: &'static str, expected: &'static str) -> ItemError {
    ItemError::Attribute { stream: stream.to_owned(), attribute, expected }
}

fn optional<T: std::str::FromStr>(
    item: &Item,
    name: &'static str,
    stream: &str,
) -> Result<Option<T>, ItemError> {
    let wrong = || attribute(stream, name, "an integer");
    let Some(value) = item.get(name) else { return Ok(None) };
    let number = value.as_n().map_err(|_| wrong())?;
    number.parse().map(Some).map_err(|_| wrong())
}

fn required<T: std::str::FromStr>(
    item: &Item,
    name: &'static str,
    stream: &str,
) -> Result<T, ItemError> {
    optional(item, name, stream)?.ok_or_else(|| attribute(stream, name, "an integer"))
}

fn optional_text(
    item: &mut Item,
    name: &'static str,
    stream: &str,
) -> Result<Option<String>, ItemError> {
    match item.remove(name) {
        None => Ok(None),
        Some(AttributeValue::S(text)) => Ok(Some(text)),
        Some(_) => Err(attribute(stream, name, "a string")),
    }
}

fn required_text(item: &mut Item, name: &'static str, stream: &str) -> Result<String, ItemError> {
    optional_text(item, name, stream)?.ok_or_else(|| attribute(stream, name, "a string"))
}

/// An empty list may be left out.
fn list(
    value: Option<AttributeValue>,
    name: &'static str,
    stream: &str,
) -> Result<Vec<AttributeValue>, ItemError> {
    match value {
        None => Ok(Vec::new()),
        Some(AttributeValue::L(list)) => Ok(list),
        Some(_) => Err(attribute(stream, name, "a list")),
    }
}

fn body(
    item: &mut Item,
    (bytes, encoding): (&'static str, &'static str),
    stream: &str,
) -> Result<Body, ItemError> {
    let number = optional(item, encoding, stream)?.unwrap_or(0);
    match item.remove(bytes) {
        None => Ok(Body::NONE),
        Some(AttributeValue::B(bytes)) => Ok(Body { encoding: number, bytes: bytes.into_inner() }),
        Some(_) => Err(attribute(stream, bytes, "binary")),
    }
}

fn parse_event(
    event_type: AttributeValue,
    event: AttributeValue,
    stream: &str,
) -> Result<StoredEvent, ItemError> {
    let AttributeValue::S(event_type) = event_type else {
        return Err(attribute(stream, "c", "a list of texts"));
    };
    let AttributeValue::M(mut event) = event else {
        return Err(attribute(stream, "e", "a list of maps"));
    };
    Ok(StoredEvent {
        event_type,
        time: required_text(&mut event, "t", stream)?,
        data: body(&mut event, ("d", "D"), stream)?,
        meta: body(&mut event, ("m", "M"), stream)?,
        correlation_id: optional_text(&mut event, "x", stream)?,
        causation_id: optional_text(&mut event, "y", stream)?,
    })
}

fn parse_unfold(unfold: AttributeValue, stream: &str) -> Result<Unfold, ItemError> {
    let AttributeValue::M(mut unfold) = unfold else {
        return Err(attribute(stream, "u", "a list of maps"));
    };
    Ok(Unfold {
        version: required(&unfold, "i", stream)?,
        time: required_text(&mut unfold, "t", stream)?,
        event_type: required_text(&mut unfold, "c", stream)?,
        data: body(&mut unfold, ("d", "D"), stream)?,
        meta: body(&mut unfold, ("m", "M"), stream)?,
    })
}
