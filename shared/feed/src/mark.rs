//! How an entry recognises the body of its event.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use ringfence_aws::Item;
use ringfence_log::Source;
use sha2::{Digest, Sha256};

/// The bytes of a hash. Two events have the same hash with a probability of 1 in 18 trillion millions (2^64).
const HASH_BYTES: usize = 8;

/// The append that put the event, as 16 bytes. If its item names none, or may be overwritten, a hash of the item.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Mark(Vec<u8>);

impl Mark {
    /// The mark of an event's item.
    pub(crate) fn of(source: &dyn Source, item: &Item) -> Self {
        let append_id = source.append_id(item).and_then(|id| {
            let digits = id.replace('-', "");
            u128::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 32)
        });
        Self(match append_id {
            Some(id) => id.to_be_bytes().to_vec(),
            None => {
                let of_event = item.iter().filter(|(name, _)| !source.is_of_index(name));
                Sha256::digest(map(of_event))[..HASH_BYTES].to_vec()
            }
        })
    }

    pub(crate) fn attribute(&self) -> AttributeValue {
        AttributeValue::B(Blob::new(&*self.0))
    }

    pub(crate) fn of_attribute(value: &AttributeValue) -> Option<Self> {
        Some(Self(value.as_b().ok()?.as_ref().to_vec()))
    }
}

/// The bytes of attributes, in the order of their names.
fn map<'a>(attributes: impl Iterator<Item = (&'a String, &'a AttributeValue)>) -> Vec<u8> {
    let attributes: BTreeMap<_, _> = attributes.collect();
    let part = |(name, value): (&String, _)| [framed('K', name), value_bytes(value)].concat();
    attributes.into_iter().flat_map(part).collect()
}

/// The bytes of a set, which the store returns in any order.
fn set<P: AsRef<[u8]>>(parts: &[P]) -> Vec<u8> {
    let parts: BTreeSet<_> = parts.iter().map(|part| framed('P', part)).collect();
    parts.into_iter().flatten().collect()
}

fn framed(kind: char, bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let bytes = bytes.as_ref();
    [format!("{kind}{}:", bytes.len()).as_bytes(), bytes].concat()
}

fn value_bytes(value: &AttributeValue) -> Vec<u8> {
    match value {
        AttributeValue::S(text) => framed('S', text),
        AttributeValue::N(number) => framed('N', number),
        AttributeValue::B(bytes) => framed('B', bytes),
        AttributeValue::Bool(is) => framed('b', [u8::from(*is)]),
        AttributeValue::Ss(texts) => framed('s', set(texts)),
        AttributeValue::Ns(numbers) => framed('n', set(numbers)),
        AttributeValue::Bs(all) => framed('y', set(all)),
        AttributeValue::M(attributes) => framed('M', map(attributes.iter())),
        AttributeValue::L(values) => {
            framed('L', values.iter().flat_map(value_bytes).collect::<Vec<_>>())
        }
        _ => framed('0', []),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_depends_on_the_values_alone_and_stays_as_it_is() {
        let text = |text: &str| AttributeValue::S(text.to_owned());
        let number = |number: &str| AttributeValue::N(number.to_owned());
        let of = |parts: [AttributeValue; 2]| {
            let [first, second] = parts;
            let inner = [("a", first), ("b", second)];
            let inner = inner.map(|(name, value)| (name.to_owned(), value)).into();
            let set = AttributeValue::Ss(vec!["y".to_owned(), "x".to_owned()]);
            let values = [("data", AttributeValue::M(inner)), ("set", set)];
            map(values.map(|(name, value)| (name.to_owned(), value)).iter().map(|(n, v)| (n, v)))
        };
        let first = of([text("1"), number("1")]);
        let expected = "K4:dataM16:K1:aS1:1K1:bN1:1K3:sets8:P1:xP1:y";
        assert_eq!(String::from_utf8(first.clone()).as_deref(), Ok(expected));
        assert_ne!(first, of([number("1"), number("1")]));
        assert_ne!(first, of([text(""), number("11")]));
    }
}
