//! Names of boundaries. Events are filed under boundaries, and fences count the events of boundaries.

use std::{borrow::Cow, fmt, str::FromStr, sync::Arc};

use percent_encoding::{percent_decode_str, percent_encode_byte};
use serde::{Deserialize, Serialize, de::Error as _};

use crate::{Tag, limits::KEY_BYTES_MAX, model::tag::is_key};

/// Longest boundary id, in bytes after escaping. With the prefix `fence#`, or `$Progress-0#` in the index, the id is
/// a partition key.
pub const BOUNDARY_BYTES_MAX: usize = KEY_BYTES_MAX - "$Progress-0#".len();

/// The partition of events without tags.
const TAGLESS: &str = "dcb";
/// Replaces a tag's key in the boundary of all events of a type.
const TYPE_KEY: &str = "$type";
/// Characters that can join the values of a composite partition. The values escape all of them. So two types that
/// join the same keys with different separators never share an id.
const SEPARATORS: &[char] = &['/', '|', '~', ','];

/// The escaped name of one boundary. The forms never collide, for any values:
///
/// | boundary | id |
/// |---|---|
/// | one tag | `orderId:ord-1` |
/// | composite partition | `orderId+line:ord-1/3` |
/// | composite tag | `orderId:ord-1#productId:p-1`, sorted by key |
/// | events without tags | `dcb` |
/// | all events of a type | `$type:InvoiceCreated` |
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct BoundaryId(Arc<str>);

impl BoundaryId {
    /// The boundary of one tag.
    pub fn tag(key: &str, value: &str) -> Self {
        let mut id = String::with_capacity(key.len() + 1 + value.len());
        push_tag(&mut id, key, value);
        Self(id.into())
    }

    /// The partition of several tags in declared order, their values joined by `separator`.
    pub fn composite_partition<'a>(
        tags: impl Iterator<Item = (&'a str, &'a str)> + Clone,
        separator: char,
    ) -> Self {
        let mut id = String::new();
        for (n, (key, _)) in tags.clone().enumerate() {
            if n > 0 {
                id.push('+');
            }
            id.push_str(key);
        }
        id.push(':');
        for (n, (_, value)) in tags.enumerate() {
            if n > 0 {
                id.push(separator);
            }
            push_escaped(&mut id, value, SEPARATORS);
        }
        Self(id.into())
    }

    /// The composite tag: all of `tags`, sorted by key and value, without repeats.
    pub fn composite(tags: &[Tag]) -> Self {
        let mut tags: Vec<&Tag> = tags.iter().collect();
        tags.sort_unstable();
        tags.dedup();
        let mut id = String::new();
        for (n, tag) in tags.into_iter().enumerate() {
            if n > 0 {
                id.push('#');
            }
            push_tag(&mut id, &tag.key, &tag.value);
        }
        Self(id.into())
    }

    /// The partition of events without tags.
    pub fn tagless() -> Self {
        Self(TAGLESS.into())
    }

    /// All events of a type: no tag can have the key `$type`.
    pub fn event_type(name: &str) -> Self {
        Self::tag(TYPE_KEY, name)
    }

    /// Decodes the id; `None` if the text is not the id of a boundary.
    pub fn decode(&self) -> Option<Boundary> {
        let boundary = decode(self.as_str())?;
        // The text is an id only if encoding gives the same text again.
        (boundary.id() == *self).then_some(boundary)
    }

    /// Whether it can be a partition of the DCB log. Of the partitions of all logs, only the DCB log's are `dcb`, or
    /// have a `:` and no `#`.
    #[must_use]
    pub fn is_of_dcb_log(&self) -> bool {
        *self.0 == *TAGLESS || (self.0.contains(':') && !self.0.contains('#'))
    }

    /// The id of the stream for this partition, without the store or the category before it; `None` for a partition
    /// of the DCB log.
    #[must_use]
    pub fn stream_id(&self) -> Option<String> {
        if let Some((_, id)) = self.0.split_once('#') {
            return Some(id.to_owned());
        }
        if self.is_of_dcb_log() {
            return None;
        }
        unescape(self.0.split_once('-')?.1)
    }

    /// The id of the stream, as a value of this type.
    ///
    /// # Errors
    /// It is not a partition of a stream, or the id is not valid for the type.
    pub(crate) fn id_of_stream<T: FromStr<Err: fmt::Display>>(
        &self,
    ) -> Result<T, serde_json::Error> {
        let id = self
            .stream_id()
            .ok_or_else(|| serde_json::Error::custom("the event is not in a stream"))?;
        id.parse().map_err(serde_json::Error::custom)
    }

    /// The boundary whose escaped id a log stored.
    pub fn stored(id: impl Into<Arc<str>>) -> Self {
        Self(id.into())
    }

    /// The id as text, escaped.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for BoundaryId {
    fn from(id: String) -> Self {
        Self::stored(id)
    }
}

impl From<BoundaryId> for String {
    fn from(id: BoundaryId) -> Self {
        id.as_str().to_owned()
    }
}

impl fmt::Display for BoundaryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for BoundaryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn push_tag(id: &mut String, key: &str, value: &str) {
    id.push_str(key);
    id.push(':');
    push_escaped(id, value, &[]);
}

/// Percent-encodes every character of `value` that separates the parts of an id: `% # : /` and control characters.
/// The encoding is injective, so a value can't be read as another boundary.
pub fn escape(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    push_escaped(&mut escaped, value, &[]);
    escaped
}

fn push_escaped(id: &mut String, value: &str, separators: &[char]) {
    for c in value.chars() {
        if matches!(c, '%' | '#' | ':' | '/') || c.is_control() || separators.contains(&c) {
            id.extend(c.encode_utf8(&mut [0; 4]).bytes().map(percent_encode_byte));
        } else {
            id.push(c);
        }
    }
}

/// The decoded id of a boundary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Boundary {
    /// Every event that carries the tag, or that the tag partitions.
    Tag(Tag),
    /// The partition of several tags, in declared order, and the separator of their values.
    CompositePartition(Vec<Tag>, char),
    /// The events that have exactly this set of tags, sorted.
    Composite(Vec<Tag>),
    /// The events without tags.
    Tagless,
    /// All events of a type.
    EventType(String),
}

impl Boundary {
    /// The id of the boundary.
    pub fn id(&self) -> BoundaryId {
        match self {
            Self::Tag(tag) => BoundaryId::tag(&tag.key, &tag.value),
            Self::CompositePartition(tags, separator) => {
                let pairs = tags.iter().map(|tag| (&*tag.key, tag.value.as_str()));
                BoundaryId::composite_partition(pairs, *separator)
            }
            Self::Composite(tags) => BoundaryId::composite(tags),
            Self::Tagless => BoundaryId::tagless(),
            Self::EventType(name) => BoundaryId::event_type(name),
        }
    }
}

fn decode(id: &str) -> Option<Boundary> {
    if id == TAGLESS {
        return Some(Boundary::Tagless);
    }
    if id.contains('#') {
        return id.split('#').map(decode_tag).collect::<Option<_>>().map(Boundary::Composite);
    }
    let (keys, values) = id.split_once(':')?;
    if keys == TYPE_KEY {
        return unescape(values).map(Boundary::EventType);
    }
    if !keys.contains('+') {
        return decode_tag(id).map(Boundary::Tag);
    }
    let separator = values.chars().find(|c| SEPARATORS.contains(c))?;
    if keys.split('+').count() != values.split(separator).count() {
        return None;
    }
    let pairs = keys.split('+').zip(values.split(separator));
    let tags: Option<Vec<Tag>> = pairs.map(|(key, value)| tag(key, value)).collect();
    Some(Boundary::CompositePartition(tags?, separator))
}

fn decode_tag(id: &str) -> Option<Tag> {
    let (key, value) = id.split_once(':')?;
    tag(key, value)
}

fn tag(key: &str, escaped: &str) -> Option<Tag> {
    if is_key(key) { Some(Tag::new(key.to_owned(), unescape(escaped)?)) } else { None }
}

/// The inverse of [`escape`]; `None` if the bytes are not valid text.
pub fn unescape(escaped: &str) -> Option<String> {
    percent_decode_str(escaped).decode_utf8().ok().map(Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_forms() {
        let tags = [Tag::new("productId", "p#1"), Tag::new("orderId", "o:1")];
        assert_eq!(BoundaryId::tag("orderId", "ord-1").as_str(), "orderId:ord-1");
        assert_eq!(BoundaryId::composite(&tags).as_str(), "orderId:o%3A1#productId:p%231");
        assert_eq!(
            BoundaryId::composite_partition([("a", "x|/,"), ("b", "y\0")].into_iter(), '|')
                .as_str(),
            "a+b:x%7C%2F%2C|y%00"
        );
        assert_eq!(BoundaryId::tagless().as_str(), "dcb");
        assert_eq!(BoundaryId::event_type("InvoiceCreated").as_str(), "$type:InvoiceCreated");
    }

    #[test]
    fn a_text_that_names_no_boundary_is_not_decoded() {
        for id in [
            "",
            "dcB",
            "a",
            ":x",
            "A:x",
            "a:x:y",
            "a:%",
            "a:%2",
            "a:%+1",
            "a:%41",
            "a:%2f",
            "a:x/y",
            "b:1#a:1",
            "a:1#",
            "a+b:x",
            "a+b:x|y|z",
            "a+b:x|y,z",
            "+:|",
            "$kind:A",
            "%FF",
        ] {
            assert_eq!(BoundaryId::stored(id).decode(), None, "{id}");
        }
    }
}
