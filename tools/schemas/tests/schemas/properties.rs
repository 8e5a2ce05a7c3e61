//! What the comparison of two shapes says is so: values show it.

use std::collections::BTreeMap;

use proptest::prelude::*;
use ringfence_schemas::{Member, Shape, ShapeDifference};
use serde_json::{Map, Value, json};

/// Texts and lists of which no longest is known have at most this many characters and items here; bounds are below.
const LONG: u64 = 6;

fn scalar() -> impl Strategy<Value = Shape> {
    let upper = |most: u64| prop_oneof![Just(None), (2..most).prop_map(Some)];
    prop_oneof![
        Just(Shape::Any),
        Just(Shape::Truth),
        Just(Shape::Number),
        (-2..=0_i64, 1..=3_u64).prop_map(|(min, max)| Shape::Whole { min, max }),
        (0..2_u64, upper(LONG)).prop_map(|(min, max)| Shape::Text { min, max }),
        prop::sample::subsequence(vec!["a", "bb", "ccc"], 1..=3)
            .prop_map(|names| Shape::Choice(names.into_iter().map(str::to_owned).collect())),
    ]
}

fn named<T>(names: Vec<&str>, values: impl IntoIterator<Item = T>) -> BTreeMap<String, T> {
    names.into_iter().map(str::to_owned).zip(values).collect()
}

/// Null is added once.
fn nullable(shape: Shape) -> Shape {
    match shape {
        Shape::Nullable(_) => shape,
        other => Shape::Nullable(Box::new(other)),
    }
}

fn required(shape: Shape) -> Member {
    Member { is_optional: false, shape }
}

fn shapes() -> impl Strategy<Value = Shape> {
    scalar().prop_recursive(2, 12, 3, |inner| {
        let names = || prop::sample::subsequence(vec!["m", "n", "o"], 1..=3);
        let three = || prop::collection::vec(inner.clone(), 3);
        let members = (three(), prop::collection::vec(any::<bool>(), 3)).prop_map(|(shapes, optional)| {
            let member = |(shape, is_optional)| Member { is_optional, shape };
            shapes.into_iter().zip(optional).map(member).collect::<Vec<_>>()
        });
        let of_one = |shape| Shape::Object(named(vec!["x"], [required(shape)]));
        let most = prop_oneof![Just(None), (2..4_u64).prop_map(Some)];
        prop_oneof![
            3 => (names(), members).prop_map(|(names, members)| Shape::Object(named(names, members))),
            1 => (inner.clone(), 0..2_u64, most)
                .prop_map(|(item, min, max)| Shape::List { item: Box::new(item), min, max }),
            1 => inner.clone().prop_map(|value| Shape::Map(Box::new(value))),
            1 => inner.clone().prop_map(nullable),
            1 => (names(), three()).prop_map(move |(names, shapes)| Shape::OneOf {
                tag: Some("tag".to_owned()),
                members: named(names, shapes.into_iter().map(of_one)),
            }),
            1 => (names(), three(), any::<bool>()).prop_map(|(names, shapes, has_unit)| {
                let mut members = named(names, shapes);
                members.extend(has_unit.then(|| ("u".to_owned(), Shape::Null)));
                Shape::OneOf { tag: None, members }
            }),
        ]
    })
}

/// A shape with one change somewhere, which the numbers choose.
fn changed(shape: &Shape, picks: &mut impl Iterator<Item = usize>, other: &Shape) -> Shape {
    let pick = picks.next().unwrap_or_default();
    let inner = |shape: &Shape, picks| Box::new(changed(shape, picks, other));
    match shape {
        Shape::Object(members) => {
            let mut members = members.clone();
            let name = members.keys().cycle().nth(pick).cloned().unwrap_or_default();
            match (pick % 5, members.get_mut(&name)) {
                (0, _) => {
                    let member =
                        Member { is_optional: pick.is_multiple_of(2), shape: other.clone() };
                    members.insert("p".to_owned(), member);
                }
                (1, Some(_)) => drop(members.remove(&name)),
                (2, Some(member)) => member.is_optional = !member.is_optional,
                (_, Some(member)) => member.shape = changed(&member.shape, picks, other),
                (_, None) => {}
            }
            Shape::Object(members)
        }
        Shape::OneOf { tag, members } => {
            let mut members = members.clone();
            let name = members.keys().cycle().nth(pick).cloned().unwrap_or_default();
            match pick % 3 {
                0 => drop(members.insert("p".to_owned(), members[&name].clone())),
                1 if members.len() > 1 => drop(members.remove(&name)),
                _ => drop(members.insert(name.clone(), changed(&members[&name], picks, other))),
            }
            Shape::OneOf { tag: tag.clone(), members }
        }
        Shape::Choice(names) => {
            let mut names = names.clone();
            match pick % 2 {
                0 if names.len() > 1 => drop(names.remove(pick % names.len())),
                _ => names.push("dddd".to_owned()),
            }
            Shape::Choice(names)
        }
        Shape::Text { min, max: None } => Shape::Text { min: *min, max: Some(LONG - 1) },
        Shape::Text { max, .. } => Shape::Text { min: 1, max: *max },
        Shape::Whole { min, max } => {
            Shape::Whole { min: min - 1, max: max + u64::from(!pick.is_multiple_of(2)) }
        }
        Shape::List { item, min, max } => {
            Shape::List { item: inner(item, picks), min: *min, max: *max }
        }
        Shape::Map(value) => Shape::Map(inner(value, picks)),
        Shape::Nullable(shape) if pick.is_multiple_of(2) => (**shape).clone(),
        Shape::Nullable(shape) => nullable(changed(shape, picks, other)),
        shape if pick.is_multiple_of(2) => nullable(shape.clone()),
        _ => other.clone(),
    }
}

/// A shape, and one like it or any other.
fn pairs() -> impl Strategy<Value = (Shape, Shape)> {
    let picks = prop::collection::vec(0..60_usize, 4);
    (shapes(), shapes(), picks, any::<bool>()).prop_map(|(old, other, picks, is_like)| {
        let new = if is_like { changed(&old, &mut picks.into_iter(), &other) } else { other };
        (old, new)
    })
}

/// Values of a shape: between them they come to each of its bounds, and have each member and lack it.
fn values(shape: &Shape) -> Vec<Value> {
    let length = |length: u64| usize::try_from(length).expect("it is short");
    let lengths = |min: u64, max: Option<u64>| [min, max.unwrap_or(LONG)].map(length);
    match shape {
        Shape::Any => vec![json!(null), json!("any text at all"), json!({ "unheardOf": [1.5] })],
        Shape::Null => vec![Value::Null],
        Shape::Truth => vec![json!(true), json!(false)],
        Shape::Whole { min, max } => vec![json!(min), json!(max)],
        Shape::Number => vec![json!(0.5), json!(-1e9)],
        Shape::Text { min, max } => {
            lengths(*min, *max).map(|length| "z".repeat(length).into()).into()
        }
        Shape::Choice(names) => names.iter().map(|name| json!(name)).collect(),
        Shape::List { item, min, max } => {
            let items = values(item);
            let list = |length| items.iter().map(move |item| vec![item.clone(); length]);
            lengths(*min, *max).into_iter().flat_map(list).map(Value::from).collect()
        }
        Shape::Map(value) => {
            let maps = values(value).into_iter().map(|value| json!({ "unheardOf": value }));
            maps.chain([json!({})]).collect()
        }
        Shape::Object(members) => {
            let all = |skips: &dyn Fn(&Member) -> bool, of: &dyn Fn(&str) -> Option<Value>| {
                let kept = members.iter().filter(|(_, member)| !skips(member));
                let value = |(name, member): (&String, &Member)| {
                    (name.clone(), of(name).unwrap_or_else(|| values(&member.shape).remove(0)))
                };
                Value::Object(kept.map(value).collect::<Map<_, _>>())
            };
            let each = members.iter().flat_map(|(name, member)| {
                values(&member.shape).into_iter().map(move |value| (name, value))
            });
            let with = each.map(|(name, value)| {
                all(&|_| false, &|other| (other == name).then(|| value.clone()))
            });
            let few = all(&|member| member.is_optional, &|_| None);
            with.collect::<Vec<_>>().into_iter().chain([few]).collect()
        }
        Shape::OneOf { tag, members } => {
            let of = |name: &String, value: Value| match (tag, value) {
                (Some(tag), Value::Object(mut rest)) => {
                    rest.insert(tag.clone(), json!(name));
                    Value::Object(rest)
                }
                (_, value) => json!({ name: value }),
            };
            let value_of = |name: &String, shape: &Shape| match (tag, shape) {
                (None, Shape::Null) => vec![json!(name)],
                _ => values(shape).into_iter().map(|value| of(name, value)).collect(),
            };
            let each = members.iter().flat_map(|(name, shape)| value_of(name, shape));
            each.collect()
        }
        Shape::Nullable(shape) => values(shape).into_iter().chain([Value::Null]).collect(),
    }
}

/// Whether somewhere the one is an object of some kind and the other of another kind: they may still have all values in
/// common, and are said to differ.
fn are_objects_of_two_kinds(old: &Shape, new: &Shape) -> bool {
    let two = |(old, new)| are_objects_of_two_kinds(old, new);
    match (old, new) {
        (Shape::Nullable(old), new) => two((&**old, new)),
        (old, Shape::Nullable(new)) => two((old, &**new)),
        (Shape::List { item, .. }, Shape::List { item: new, .. }) => two((&**item, &**new)),
        (Shape::Map(old), Shape::Map(new)) => two((&**old, &**new)),
        (Shape::Object(old), Shape::Object(new)) => {
            let both =
                old.iter().filter_map(|(name, old)| Some((&old.shape, &new.get(name)?.shape)));
            both.into_iter().any(two)
        }
        (Shape::OneOf { tag, members }, Shape::OneOf { tag: other, members: new }) => {
            let both = members.iter().filter_map(|(name, old)| Some((old, new.get(name)?)));
            tag != other || both.into_iter().any(two)
        }
        (old, new) => {
            let is_object = |shape: &Shape| {
                matches!(shape, Shape::Object(_) | Shape::Map(_) | Shape::OneOf { .. })
            };
            is_object(old) && is_object(new)
        }
    }
}

proptest! {
    #[test]
    fn what_breaks_has_a_witness_and_what_does_not_break_has_none((old, new) in pairs()) {
        let (differences, values_of_old) = (old.differences(&new), values(&old));
        for value in &values_of_old {
            prop_assert_eq!(old.admits(value), Ok(()));
        }
        let unread = values_of_old.iter().find(|value| new.reads(value).is_err());
        let refused = values_of_old.iter().find(|value| new.admits(value).is_err());
        let is_told_apart = !are_objects_of_two_kinds(&old, &new);
        for (breaks, witness) in [
            (differences.iter().any(ShapeDifference::breaks_readers), unread),
            (differences.iter().any(ShapeDifference::breaks_callers), refused),
        ] {
            prop_assert!(witness.is_none() || breaks, "{witness:?} is a witness, and {differences:?}");
            prop_assert!(!breaks || witness.is_some() || !is_told_apart, "no witness of {differences:?}");
        }
        // Readers first: values of the new shape that a reader of the old one can't read.
        let first = values(&new).into_iter().find(|value| old.reads(value).is_err());
        let breaks = differences.iter().any(ShapeDifference::breaks_readers);
        let are_first = differences.iter().any(ShapeDifference::wants_readers_first);
        if !breaks {
            prop_assert_eq!(first.is_some(), are_first, "{:?} of {:?}", first, differences);
            let grown = old.grown(&new);
            for value in values_of_old.iter().chain(&values(&new)) {
                prop_assert_eq!(grown.admits(value), Ok(()));
            }
            let again = grown.differences(&new);
            prop_assert_eq!(grown.grown(&new), grown.clone(), "it has grown once");
            prop_assert!(!again.iter().any(ShapeDifference::breaks_readers), "{again:?}");
        }
    }
}
