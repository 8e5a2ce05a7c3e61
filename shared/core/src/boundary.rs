//! Names of boundaries: what an event is filed under, and what a fence counts.

use std::{fmt, fmt::Write as _, sync::Arc};

use crate::Tag;

/// Longest boundary id, in bytes after escaping: with `fence#` before it, it is a DynamoDB
/// partition key, which has at most 2,048 bytes.
pub const BOUNDARY_BYTES_MAX: usize = 2_048 - "fence#".len();

/// The escaped name of one boundary. The forms can't collide, whatever the values:
///
/// | boundary | id |
/// |---|---|
/// | one tag | `orderId:ord-1` |
/// | composite partition | `orderId+line:ord-1/3` |
/// | composite tag | `orderId:ord-1#productId:p-1`, sorted by key |
/// | events without tags | `dcb` |
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
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
            push_escaped(&mut id, value, Some(separator));
        }
        Self(id.into())
    }

    /// The composite tag: all of `tags`, sorted by key and value.
    pub fn composite(tags: &[Tag]) -> Self {
        let mut tags: Vec<&Tag> = tags.iter().collect();
        tags.sort_unstable();
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
        Self("dcb".into())
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
    push_escaped(id, value, None);
}

/// `value` with every character percent-encoded that separates the parts of an id: `% # : /` and
/// control characters. Injective, so no value can be read as another boundary.
pub fn escape(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    push_escaped(&mut escaped, value, None);
    escaped
}

fn push_escaped(id: &mut String, value: &str, separator: Option<char>) {
    for c in value.chars() {
        if matches!(c, '%' | '#' | ':' | '/') || c.is_control() || Some(c) == separator {
            for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                write!(id, "%{byte:02X}").expect("writing to a String does not fail");
            }
        } else {
            id.push(c);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_documented_forms() {
        let tags = [Tag::new("productId", "p#1"), Tag::new("orderId", "o:1")];
        assert_eq!(BoundaryId::tag("orderId", "ord-1").as_str(), "orderId:ord-1");
        assert_eq!(BoundaryId::composite(&tags).as_str(), "orderId:o%3A1#productId:p%231");
        assert_eq!(
            BoundaryId::composite_partition([("a", "x|/"), ("b", "y\0")].into_iter(), '|').as_str(),
            "a+b:x%7C%2F|y%00"
        );
        assert_eq!(BoundaryId::tagless().as_str(), "dcb");
    }

    fn hostile() -> impl Strategy<Value = String> {
        proptest::collection::vec(
            proptest::sample::select(vec!["a", "%", "#", ":", "/", "|", "\0", "%2", "🦀", "b:"]),
            0..5,
        )
        .prop_map(|parts| parts.concat())
    }

    fn tags() -> impl Strategy<Value = Vec<Tag>> {
        let tag = (proptest::sample::select(vec!["a", "b", "ab"]), hostile());
        proptest::collection::btree_map(tag.0, tag.1, 1..3)
            .prop_map(|tags| tags.into_iter().map(|(key, value)| Tag::new(key, value)).collect())
    }

    fn every_id(tags: &[Tag]) -> Vec<BoundaryId> {
        let pairs = tags.iter().map(|t| (&*t.key, t.value.as_str()));
        match tags {
            [tag] => vec![BoundaryId::tag(&tag.key, &tag.value)],
            _ => vec![BoundaryId::composite(tags), BoundaryId::composite_partition(pairs, '|')],
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn no_two_boundaries_share_an_id(left in tags(), right in tags()) {
            let (one, other) = (every_id(&left), every_id(&right));
            for (n, id) in one.iter().enumerate() {
                for (m, id2) in other.iter().enumerate() {
                    prop_assert_eq!(id == id2, n == m && left == right, "{} {}", id, id2);
                }
            }
        }
    }
}
