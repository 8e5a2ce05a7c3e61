//! Written shapes are read again, and other schemas are refused.

use proptest::collection::{btree_map, btree_set, vec};
use proptest::prelude::*;
use serde_json::json;

use crate::{Member, Shape, ShapeError};

/// Shapes in the form that reading gives: a choice is not a [`Shape::OneOf`], and null is in a shape at most once.
fn shapes() -> impl Strategy<Value = Shape> {
    let name = || "[a-z]{1,3}";
    let pattern = || prop_oneof![Just(None), Just(Some("^[a-z]$".to_owned()))];
    let bounds = || (any::<u64>(), any::<Option<u64>>());
    let fraction = || any::<Option<i16>>().prop_map(|n| n.map(|n| f64::from(n) / 4.0));
    let single = prop_oneof![
        prop_oneof![Just(Shape::Any), Just(Shape::Null), Just(Shape::Boolean)],
        (any::<i64>(), any::<u64>())
            .prop_map(|(min, max)| Shape::Integer { min: min.into(), max: max.into() }),
        (fraction(), fraction()).prop_map(|(min, max)| Shape::Number { min, max }),
        (bounds(), pattern(), any::<bool>()).prop_map(|((min, max), pattern, is_date)| {
            let format = is_date.then(|| "date".to_owned());
            Shape::String { min, max, pattern, format }
        }),
        btree_set(name(), 0..3).prop_map(Shape::Choice),
    ];
    single.prop_recursive(3, 12, 3, move |inner| {
        let member = (any::<bool>(), inner.clone())
            .prop_map(|(is_optional, shape)| Member { is_optional, shape });
        let object = btree_map(name(), member, 0..3).prop_map(Shape::Object);
        let of_tag = prop_oneof![object.clone(), Just(Shape::Any)];
        let is_value = |shape: &Shape| {
            !matches!(shape, Shape::Any | Shape::Null | Shape::Nullable(_) | Shape::AnyOf(_))
        };
        prop_oneof![
            (inner.clone(), bounds()).prop_map(|(item, (min, max))| Shape::List {
                item: Box::new(item),
                min,
                max
            }),
            vec(inner.clone(), 0..3).prop_map(Shape::Tuple),
            (inner.clone(), bounds(), pattern()).prop_map(|(value, (min, max), keys)| Shape::Map {
                keys,
                value: Box::new(value),
                min,
                max,
            }),
            inner
                .clone()
                .prop_filter("it can be null once", move |shape| is_value(shape))
                .prop_map(|shape| Shape::Nullable(Box::new(shape))),
            vec(inner.clone(), 2..4)
                .prop_filter("they differ", move |shapes| {
                    shapes.iter().all(is_value)
                        && (1..shapes.len()).all(|n| !shapes[..n].contains(&shapes[n]))
                })
                .prop_map(Shape::AnyOf),
            btree_map(name(), inner, 1..3)
                .prop_filter("it is no choice", |members| {
                    members.values().any(|shape| *shape != Shape::Null)
                })
                .prop_map(|members| Shape::OneOf { tag: None, members }),
            btree_map(name(), of_tag, 1..3)
                .prop_map(|members| Shape::OneOf { tag: Some("_tag".to_owned()), members }),
            object,
        ]
    })
}

proptest! {
    #[test]
    fn a_shape_is_read_as_it_was_written(shape in shapes()) {
        prop_assert_eq!(Shape::from_schema(&shape.schema()), Ok(shape));
    }
}

#[test]
fn a_schema_without_a_shape_is_named_with_its_place() {
    for (schema, place, why) in [
        (json!(1), "", "not a schema"),
        (json!({ "type": "array" }), "", "`items` is missing"),
        (json!({ "type": "array", "items": { "type": 1 } }), "/items", "no shape is written so"),
        (
            json!({ "type": "object", "properties": { "a": { "type": "integer", "multipleOf": 5 } } }),
            "/properties/a",
            "no shape has the word `multipleOf` here",
        ),
        (
            json!({ "oneOf": [{ "type": "string", "enum": [1] }] }),
            "/oneOf/0",
            "a choice is between strings",
        ),
    ] {
        let error = ShapeError { place: place.to_owned(), why: why.to_owned() };
        assert_eq!(Shape::from_schema(&schema), Err(error));
    }
    let wrong = Shape::from_schema(&json!({ "type": "string", "pattern": "(" })).unwrap_err();
    assert!(wrong.why.starts_with("`(` is no pattern"), "{wrong}");
}
