//! Names of streams: `<category>-<id>`.

use std::{fmt, sync::Arc};

/// A partition key of DynamoDB, in bytes.
const NAME_BYTES_MAX: usize = 2_048;

/// `<category>-<id>`. The category has no hyphen; the id may have some. Parts of a composite id are
/// joined by `_`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamName(Arc<str>);

/// The reason that a text can't name a stream.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StreamNameError {
    /// A category has at least one character and no hyphen.
    #[error("category {0:?} is empty or has a hyphen")]
    Category(String),
    /// There is nothing after the category.
    #[error("stream name {0:?} has no id; write <category>-<id>")]
    NoId(String),
    /// DynamoDB would refuse the key.
    #[error("the stream name has {0} bytes, limit {NAME_BYTES_MAX}; use a shorter id")]
    TooLong(usize),
}

impl StreamName {
    /// The name of `id` in `category`.
    ///
    /// # Errors
    /// One of the two is empty, the category has a hyphen, or both are too long together.
    pub fn new(category: &str, id: &str) -> Result<Self, StreamNameError> {
        if category.is_empty() || category.contains('-') {
            return Err(StreamNameError::Category(category.to_owned()));
        }
        Self::try_from(format!("{category}-{id}"))
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text before the first hyphen.
    #[must_use]
    pub fn category(&self) -> &str {
        self.0.split_once('-').map_or("", |(category, _)| category)
    }

    /// The text after the first hyphen.
    #[must_use]
    pub fn id(&self) -> &str {
        self.0.split_once('-').map_or("", |(_, id)| id)
    }

    /// Whether a system keeps internal state in the stream, such as checkpoints. Such a stream is not for readers of
    /// events.
    #[must_use]
    pub fn is_internal(&self) -> bool {
        self.0.starts_with('$')
    }
}

impl TryFrom<String> for StreamName {
    type Error = StreamNameError;

    fn try_from(text: String) -> Result<Self, StreamNameError> {
        match text.split_once('-') {
            Some(("", _)) => Err(StreamNameError::Category(String::new())),
            None | Some((_, "")) => Err(StreamNameError::NoId(text)),
            Some(_) if text.len() > NAME_BYTES_MAX => Err(StreamNameError::TooLong(text.len())),
            Some(_) => Ok(Self(text.into())),
        }
    }
}

impl fmt::Display for StreamName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for StreamName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_category_and_an_id() {
        let name = StreamName::new("Cart", "a-b_c").expect("a name");
        assert_eq!((name.as_str(), name.category(), name.id()), ("Cart-a-b_c", "Cart", "a-b_c"));
        assert!(!name.is_internal());
        assert!(StreamName::new("$Index", "0").expect("a name").is_internal());
    }

    #[test]
    fn a_text_that_cannot_name_a_stream_is_refused() {
        use StreamNameError::{Category, NoId, TooLong};
        assert_eq!(StreamName::new("", "x"), Err(Category(String::new())));
        assert_eq!(StreamName::new("a-b", "x"), Err(Category("a-b".to_owned())));
        assert_eq!(StreamName::new("Cart", ""), Err(NoId("Cart-".to_owned())));
        assert_eq!(StreamName::try_from("Cart".to_owned()), Err(NoId("Cart".to_owned())));
        assert_eq!(StreamName::try_from("-x".to_owned()), Err(Category(String::new())));
        let long = "x".repeat(NAME_BYTES_MAX);
        assert_eq!(StreamName::new("C", &long), Err(TooLong(NAME_BYTES_MAX + 2)));
    }
}
