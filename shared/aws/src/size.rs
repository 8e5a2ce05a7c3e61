//! DynamoDB's documented rules for the size of an item and the units of a request.
//!
//! Sources: "Best practices for storing large items", "DynamoDB item sizes and formats" and "DynamoDB read and write
//! operations" in the Amazon DynamoDB Developer Guide.

use aws_sdk_dynamodb::types::AttributeValue;
use ringfence_core::Consistency;
use ringfence_core::storable::{CONTAINER_BYTES, ELEMENT_BYTES, number_bytes};

use crate::Item;

/// One write unit writes this many bytes of an item.
const WRITE_UNIT_BYTES: usize = 1_024;
/// One read unit reads this many bytes with strong consistency.
const READ_UNIT_BYTES: usize = 4_096;

/// The size of an item in bytes: the names and values of its attributes.
#[must_use]
pub fn item_bytes(item: &Item) -> usize {
    item.iter().map(|(name, value)| name.len() + attribute_bytes(value)).sum()
}

/// The size of one value in bytes, without its name.
#[must_use]
pub fn attribute_bytes(value: &AttributeValue) -> usize {
    match value {
        AttributeValue::S(text) => text.len(),
        AttributeValue::N(number) => number_bytes(number),
        AttributeValue::B(bytes) => bytes.as_ref().len(),
        AttributeValue::Ss(texts) => texts.iter().map(String::len).sum(),
        AttributeValue::Ns(numbers) => numbers.iter().map(|number| number_bytes(number)).sum(),
        AttributeValue::Bs(all) => all.iter().map(|bytes| bytes.as_ref().len()).sum(),
        AttributeValue::L(list) => {
            let elements = list.iter().map(|value| ELEMENT_BYTES + attribute_bytes(value));
            CONTAINER_BYTES + elements.sum::<usize>()
        }
        AttributeValue::M(map) => CONTAINER_BYTES + map.len() * ELEMENT_BYTES + item_bytes(map),
        // Null and booleans. A type that this SDK does not know counts as 1 byte too.
        _ => 1,
    }
}

/// Units to write one item of `bytes`.
#[must_use]
pub fn write_units(bytes: usize) -> f64 {
    steps(bytes, WRITE_UNIT_BYTES)
}

/// Units to write one item of `bytes` in a transaction, or to check its condition.
#[must_use]
pub fn transact_write_units(bytes: usize) -> f64 {
    2.0 * write_units(bytes)
}

/// Units to read `bytes`: one item by its key, or one page of a query, whose items are added up before rounding.
#[must_use]
pub fn read_units(bytes: usize, consistency: Consistency) -> f64 {
    let strong = steps(bytes, READ_UNIT_BYTES);
    if consistency == Consistency::Strong { strong } else { strong / 2.0 }
}

/// Whole steps, at least one: a missing item and an empty page cost as much as a small one.
fn steps(bytes: usize, step: usize) -> f64 {
    let steps = bytes.div_ceil(step).max(1);
    f64::from(u32::try_from(steps).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodb::primitives::Blob;

    use super::*;

    fn number(text: &str) -> AttributeValue {
        AttributeValue::N(text.into())
    }

    #[test]
    fn values_have_their_documented_size() {
        let map = Item::from([("ab".to_owned(), AttributeValue::Bool(true))]);
        for (value, bytes) in [
            (AttributeValue::S("größe".into()), 7),
            (AttributeValue::S(String::new()), 0),
            (AttributeValue::B(Blob::new([0; 5])), 5),
            (AttributeValue::Null(true), 1),
            (AttributeValue::Bool(false), 1),
            (number("0"), 1),
            (number("7"), 2),
            (number("1200"), 2),
            (number("1234"), 3),
            (number("-1234"), 4),
            (number("0.00123"), 3),
            (number("1.5E10"), 2),
            (number(&"9".repeat(38)), 20),
            (AttributeValue::Ss(vec!["a".into(), "bc".into()]), 3),
            (AttributeValue::Ns(vec!["1".into(), "123".into()]), 5),
            (AttributeValue::Bs(vec![Blob::new([0; 2])]), 2),
            (AttributeValue::L(vec![]), 3),
            (AttributeValue::L(vec![AttributeValue::S("abc".into()), number("1")]), 3 + 4 + 3),
            (AttributeValue::M(Item::new()), 3),
            (AttributeValue::M(map), 3 + 1 + 2 + 1),
        ] {
            assert_eq!(attribute_bytes(&value), bytes, "{value:?}");
        }
    }

    #[test]
    fn an_item_counts_its_names() {
        let item = Item::from([("id".to_owned(), AttributeValue::S("abc".into()))]);
        assert_eq!(item_bytes(&item), 5);
    }

    #[test]
    fn units_go_in_whole_steps() {
        for (bytes, write, strong) in [
            (0, 1.0, 1.0),
            (1_024, 1.0, 1.0),
            (1_025, 2.0, 1.0),
            (4_096, 4.0, 1.0),
            (4_097, 5.0, 2.0),
        ] {
            assert!((write_units(bytes) - write).abs() < f64::EPSILON, "{bytes}");
            assert!((transact_write_units(bytes) - 2.0 * write).abs() < f64::EPSILON, "{bytes}");
            let eventual = read_units(bytes, Consistency::Eventual);
            assert!((eventual - strong / 2.0).abs() < f64::EPSILON, "{bytes}");
            assert!((read_units(bytes, Consistency::Strong) - strong).abs() < f64::EPSILON);
        }
    }
}
