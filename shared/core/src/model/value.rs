//! Ids, texts and lists: the value types that every context needs.

use std::fmt::{self, Display, Formatter};
use std::{ops::Deref, str::FromStr};

use ringfence_derive::value;
use serde::Deserialize;

/// Longest id, in bytes. UUIDs and human-made numbers need less. It is far below the 2,048 bytes of a DynamoDB key,
/// so that composites of ids fit.
pub const ID_BYTES_MAX: usize = 64;

/// A validated id: 1 to 64 characters of `A-Z a-z 0-9 . _ -`. Contexts wrap it with [`id_type!`](crate::id_type), so
/// that an order id can't be taken for a product id.
#[value]
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[serde(try_from = "String")]
#[schemars(extend("minLength" = 1, "maxLength" = ID_BYTES_MAX, "pattern" = "^[A-Za-z0-9._-]+$"))]
pub struct Id(String);

/// As its text, because the type around it has a name.
impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// The reason why a text is not an id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "an id has 1 to {ID_BYTES_MAX} characters of A-Z a-z 0-9 . _ -, this one {}", found(.0)
)]
pub struct IdError(String);

fn found(id: &str) -> String {
    match id.chars().find(|c| !is_id_char(*c)) {
        _ if id.is_empty() => "is empty".to_owned(),
        _ if id.len() > ID_BYTES_MAX => format!("has {} bytes", id.len()),
        Some(c) => format!("contains {c:?}"),
        None => "is valid".to_owned(),
    }
}

fn is_id_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')
}

impl TryFrom<String> for Id {
    type Error = IdError;

    fn try_from(id: String) -> Result<Self, IdError> {
        if (1..=ID_BYTES_MAX).contains(&id.len()) && id.chars().all(is_id_char) {
            Ok(Self(id))
        } else {
            Err(IdError(id))
        }
    }
}

impl Id {
    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Declares an id type of a context: `id_type!(OrderId, "names an order");`
#[macro_export]
macro_rules! id_type {
    ($name:ident, $what:literal) => {
        #[doc = concat!("Id that ", $what, ".")]
        #[$crate::value]
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[serde(transparent)]
        pub struct $name($crate::Id);

        impl ::std::str::FromStr for $name {
            type Err = $crate::IdError;

            fn from_str(id: &str) -> Result<Self, Self::Err> {
                $crate::Id::try_from(id.to_owned()).map(Self)
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.0.as_str())
            }
        }

        impl $crate::TagValue for $name {
            fn tag_value(&self) -> ::std::borrow::Cow<'_, str> {
                ::std::borrow::Cow::Borrowed(self.0.as_str())
            }
        }
    };
}

/// A text of at most `BYTES_MAX` bytes, for the fields of commands. A longer text is refused; the error names the
/// field and the limit. The fields of events are plain strings, so that stored events can be read even if commands
/// get other limits.
#[value]
#[derive(Clone, Debug, PartialEq, Eq)]
#[serde(try_from = "String")]
#[schemars(extend("maxLength" = BYTES_MAX))]
pub struct Text<const BYTES_MAX: usize>(String);

/// A text that is too long.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must have at most {limit} bytes, has {found}")]
pub struct TextError {
    /// The limit in bytes.
    pub limit: usize,
    /// The actual number of bytes.
    pub found: usize,
}

impl<const BYTES_MAX: usize> TryFrom<String> for Text<BYTES_MAX> {
    type Error = TextError;

    fn try_from(text: String) -> Result<Self, TextError> {
        match text.len() {
            found if found > BYTES_MAX => Err(TextError { limit: BYTES_MAX, found }),
            _ => Ok(Self(text)),
        }
    }
}

impl<const BYTES_MAX: usize> FromStr for Text<BYTES_MAX> {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        text.to_owned().try_into()
    }
}

impl<const BYTES_MAX: usize> Text<BYTES_MAX> {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<const BYTES_MAX: usize> Display for Text<BYTES_MAX> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<const BYTES_MAX: usize> From<Text<BYTES_MAX>> for String {
    fn from(text: Text<BYTES_MAX>) -> Self {
        text.0
    }
}

/// A list of at most `MAX` values, for the fields of commands. A longer list is refused; the error names the field
/// and the limit. A list of tag values gives a tag for each value, like a `Vec`.
#[value]
#[derive(Clone, Debug, PartialEq, Eq)]
#[serde(try_from = "Vec<T>")]
#[schemars(extend("maxItems" = MAX))]
#[serde(bound(deserialize = "T: Deserialize<'de>"))]
pub struct List<T, const MAX: usize>(Vec<T>);

/// A list that is too long.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must have at most {limit} entries, has {found}")]
pub struct ListError {
    /// The limit.
    pub limit: usize,
    /// The actual number of entries.
    pub found: usize,
}

impl<T, const MAX: usize> Default for List<T, MAX> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T, const MAX: usize> TryFrom<Vec<T>> for List<T, MAX> {
    type Error = ListError;

    fn try_from(list: Vec<T>) -> Result<Self, ListError> {
        match list.len() {
            found if found > MAX => Err(ListError { limit: MAX, found }),
            _ => Ok(Self(list)),
        }
    }
}

impl<T, const MAX: usize> From<List<T, MAX>> for Vec<T> {
    fn from(list: List<T, MAX>) -> Self {
        list.0
    }
}

impl<T, const MAX: usize> Deref for List<T, MAX> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<'a, T, const MAX: usize> IntoIterator for &'a List<T, MAX> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_bounded_by_its_type() {
        assert_eq!(List::<u8, 2>::try_from(vec![1, 2]).map(Vec::from), Ok(vec![1, 2]));
        let error = serde_json::from_str::<List<u8, 2>>("[1, 2, 3]").unwrap_err().to_string();
        assert_eq!(error, "must have at most 2 entries, has 3");
        assert!(serde_json::from_str::<List<u8, 2>>("{}").is_err());
        assert_eq!(serde_json::to_string(&List::<u8, 2>(vec![1])).unwrap(), "[1]");
    }

    #[test]
    fn a_text_is_bounded_by_its_type() {
        assert_eq!("säge".parse::<Text<5>>().map(String::from), Ok("säge".to_owned()));
        let error = serde_json::from_str::<Text<4>>("\"säge\"").unwrap_err().to_string();
        assert_eq!(error, "must have at most 4 bytes, has 5");
    }

    #[test]
    fn an_id_is_bounded_and_plain() {
        let check = |id: &str, valid: bool| {
            assert_eq!(Id::try_from(id.to_owned()).is_ok(), valid, "{id:?}");
        };
        check("a", true);
        check("Order_1.2-3", true);
        check(&"x".repeat(ID_BYTES_MAX), true);
        check(&"x".repeat(ID_BYTES_MAX + 1), false);
        for hostile in ["", "a#b", "a:b", "a/b", "a\0b", "a b", "é", "🦀"] {
            check(hostile, false);
        }
    }

    #[test]
    fn the_error_says_what_is_wrong() {
        let error = Id::try_from("a#b".to_owned()).unwrap_err().to_string();
        assert_eq!(
            error,
            "an id has 1 to 64 characters of A-Z a-z 0-9 . _ -, this one contains '#'"
        );
    }
}
