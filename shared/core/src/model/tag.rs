//! A tag names one thing that an event is about.

use std::borrow::Cow;

use ringfence_derive::value;

/// A name in a schema: an event type, a tag key, a context. In derived types it is part of the program. A schema that
/// is created at run time owns its names.
pub type Name = Cow<'static, str>;

/// `key:value`. Keys match `[a-z][A-Za-z0-9]*` (the [`Catalog`](crate::Catalog) refuses others);
/// a value is any text. An empty value is kept, but makes no boundary.
#[value]
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag {
    /// The kind of thing: `orderId`.
    pub key: Name,
    /// The id of the thing: `ord-123`, unescaped.
    pub value: String,
}

impl Tag {
    /// The tag `key:value`.
    pub fn new(key: impl Into<Name>, value: impl Into<String>) -> Self {
        Self { key: key.into(), value: value.into() }
    }
}

/// The tags in their order, without repeats.
pub(crate) fn distinct(mut tags: Vec<Tag>) -> Vec<Tag> {
    for n in (1..tags.len()).rev() {
        if tags[..n].contains(&tags[n]) {
            tags.remove(n);
        }
    }
    tags
}

/// Whether `key` can be a tag key: `[a-z][A-Za-z0-9]*`. So a key contains no character that separates keys from
/// values or marks a fence, a command or a type.
pub(crate) fn is_key(key: &str) -> bool {
    key.starts_with(|c: char| c.is_ascii_lowercase())
        && key.chars().all(|c| c.is_ascii_alphanumeric())
}

/// A type that can be a tag's value.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be a tag's value",
    label = "a tag's value needs a text",
    note = "use an id type, as by `id_type!(OrderId, \"…\")`; mark a field that is not a tag `#[tag(skip)]`"
)]
pub trait TagValue {
    /// The value as text. Different things must have different texts.
    fn tag_value(&self) -> Cow<'_, str>;
}

impl TagValue for str {
    fn tag_value(&self) -> Cow<'_, str> {
        Cow::Borrowed(self)
    }
}

impl TagValue for String {
    fn tag_value(&self) -> Cow<'_, str> {
        Cow::Borrowed(self)
    }
}

impl<T: TagValue + ?Sized> TagValue for &T {
    fn tag_value(&self) -> Cow<'_, str> {
        (*self).tag_value()
    }
}

macro_rules! display_tag_values {
    ($($number:ty)*) => {$(
        impl TagValue for $number {
            fn tag_value(&self) -> Cow<'_, str> {
                Cow::Owned(self.to_string())
            }
        }
    )*};
}

display_tag_values!(u8 u16 u32 u64 i8 i16 i32 i64 bool uuid::Uuid);
