//! Values show that the comparison of two shapes is right.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use ringfence_schemas::{Member, Shape, ShapeDifference};
use serde_json::{Map, Value, json};

/// The most bytes, items and members of strings, lists and maps without a limit. Bounds are smaller than this.
const LONG: u64 = 6;

fn scalar() -> impl Strategy<Value = Shape> {
    let upper = |most: u64| prop_oneof![Just(None), (2..most).prop_map(Some)];
    prop_oneof![
        Just(Shape::Any),
        Just(Shape::Boolean),
        (prop::option::of(-2..=0_i8), prop::option::of(1..=3_i8)).prop_map(|(min, max)| {
            Shape::Number { min: min.map(f64::from), max: max.map(f64::from) }
        }),
        (-2..=0_i128, 1..=3_i128).prop_map(|(min, max)| Shape::Integer { min, max }),
        (0..2_u64, upper(LONG), prop::option::of("\\^[yz]\\*\\$"))
            .prop_map(|(min, max, pattern)| Shape::String { min, max, pattern, format: None }),
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
        Shape::Personal(shape) => Shape::Personal(Box::new(nullable(*shape))),
        other => Shape::Nullable(Box::new(other)),
    }
}

/// A personal scalar. An object whose members are optional would take a sealed value too.
fn personal(shape: Shape) -> Shape {
    match shape {
        Shape::Boolean | Shape::Integer { .. } | Shape::String { .. } | Shape::Choice(_) => {
            Shape::Personal(Box::new(shape))
        }
        other => other,
    }
}

/// One of several shapes of different kinds, so no value has two of them.
fn any_of(shapes: Vec<Shape>) -> Option<Shape> {
    let kind = |shape: &Shape| match shape {
        Shape::Boolean => Some(0),
        Shape::Integer { .. } | Shape::Number { .. } => Some(1),
        Shape::String { .. } | Shape::Choice(_) => Some(2),
        Shape::List { .. } | Shape::Tuple(_) => Some(3),
        Shape::Object(_) | Shape::Map { .. } => Some(4),
        Shape::Any
        | Shape::Null
        | Shape::Nullable(_)
        | Shape::Personal(_)
        | Shape::AnyOf(_)
        | Shape::OneOf { .. } => None,
    };
    let kinds: Option<BTreeSet<_>> = shapes.iter().map(kind).collect();
    (kinds?.len() == shapes.len()).then_some(Shape::AnyOf(shapes))
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
            1 => (inner.clone(), 0..2_u64, most.clone())
                .prop_map(|(item, min, max)| Shape::List { item: Box::new(item), min, max }),
            1 => prop::collection::vec(inner.clone(), 1..3).prop_map(Shape::Tuple),
            1 => (inner.clone(), 0..2_u64, most, prop::option::of("\\^[yz]\\+\\$"))
                .prop_map(|(value, min, max, keys)| {
                    Shape::Map { keys, value: Box::new(value), min, max }
                }),
            1 => prop::collection::vec(inner.clone(), 2..4).prop_filter_map("of a kind", any_of),
            1 => inner.clone().prop_map(nullable),
            1 => inner.clone().prop_map(personal),
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

/// A shape with one change somewhere. The numbers choose the change.
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
                0 if names.len() > 1 => drop(names.pop_first()),
                _ => drop(names.insert("dddd".to_owned())),
            }
            Shape::Choice(names)
        }
        Shape::String { min, max, pattern, format } => {
            let (mut min, mut max, mut pattern) = (*min, *max, pattern.clone());
            match (pick % 3, max) {
                (0, None) => max = Some(LONG - 1),
                (1, _) => pattern = pattern.is_none().then(|| "^z*$".to_owned()),
                (_, _) => min = 1,
            }
            Shape::String { min, max, pattern, format: format.clone() }
        }
        Shape::Integer { min, max } => {
            Shape::Integer { min: min - 1, max: max + i128::from(!pick.is_multiple_of(2)) }
        }
        Shape::List { item, min, max } => {
            Shape::List { item: inner(item, picks), min: *min, max: *max }
        }
        Shape::Map { keys, value, min, max } => Shape::Map {
            keys: keys.clone().filter(|_| pick.is_multiple_of(2)),
            value: inner(value, picks),
            min: *min,
            max: *max,
        },
        Shape::Tuple(items) => {
            Shape::Tuple(items.iter().map(|item| changed(item, &mut *picks, other)).collect())
        }
        Shape::Nullable(shape) if pick.is_multiple_of(2) => (**shape).clone(),
        Shape::Nullable(shape) => nullable(changed(shape, picks, other)),
        Shape::Personal(shape) if pick.is_multiple_of(2) => (**shape).clone(),
        Shape::Personal(shape) => personal(changed(shape, picks, other)),
        shape if pick.is_multiple_of(2) => nullable(shape.clone()),
        shape if pick.is_multiple_of(3) => personal(shape.clone()),
        _ => other.clone(),
    }
}

/// A shape, and a similar one or any other one.
fn pairs() -> impl Strategy<Value = (Shape, Shape)> {
    let picks = prop::collection::vec(0..60_usize, 4);
    (shapes(), shapes(), picks, any::<bool>()).prop_map(|(old, other, picks, is_like)| {
        let new = if is_like { changed(&old, &mut picks.into_iter(), &other) } else { other };
        (old, new)
    })
}

/// The letter that strings of a pattern consist of.
fn letter(pattern: &str) -> &str {
    pattern.get(1..2).expect("it has a letter")
}

/// Values of a shape that together reach each of its bounds, and have and lack each member.
fn values(shape: &Shape) -> Vec<Value> {
    let length = |length: u64| usize::try_from(length).expect("it is short");
    let lengths = |min: u64, max: Option<u64>| [min, max.unwrap_or(LONG)].map(length);
    match shape {
        Shape::Any => vec![json!(null), json!("any text at all"), json!({ "unheardOf": [1.5] })],
        Shape::Null => vec![Value::Null],
        Shape::Boolean => vec![json!(true), json!(false)],
        Shape::Integer { min, max } => vec![json!(min), json!(max)],
        Shape::Number { min, max } => {
            vec![json!(0.5), json!(min.unwrap_or(-1e9)), json!(max.unwrap_or(1e9))]
        }
        Shape::String { min, max, pattern, .. } => {
            let letters = pattern.as_ref().map_or("zyx", |pattern| letter(pattern));
            let lengths = lengths(*min, *max);
            let strings = letters.split("").filter(|letter| !letter.is_empty());
            strings.flat_map(|one| lengths.map(|length| one.repeat(length).into())).collect()
        }
        Shape::Choice(names) => names.iter().map(|name| json!(name)).collect(),
        Shape::List { item, min, max } => {
            let items = values(item);
            let list = |length| items.iter().map(move |item| vec![item.clone(); length]);
            lengths(*min, *max).into_iter().flat_map(list).map(Value::from).collect()
        }
        Shape::Tuple(items) => {
            let first: Vec<_> = items.iter().map(|item| values(item).remove(0)).collect();
            let with = |n: usize| {
                let first = &first;
                values(&items[n]).into_iter().map(move |value| {
                    let mut list = first.clone();
                    list[n] = value;
                    Value::from(list)
                })
            };
            (0..items.len()).flat_map(with).collect()
        }
        Shape::Map { keys, value, min, max } => {
            let letters = keys.as_ref().map_or("zyx", |keys| letter(keys));
            let map = |length: usize, letter: &str, value: &Value| {
                let keys = (1..=length).map(|n| letter.repeat(n));
                Value::Object(keys.map(|key| (key, value.clone())).collect())
            };
            let each = values(value);
            let lengths = lengths(*min, *max);
            let of = |letter| {
                let each = &each;
                lengths.into_iter().flat_map(move |length| {
                    each.iter().map(move |value| map(length, letter, value))
                })
            };
            letters.split("").filter(|letter| !letter.is_empty()).flat_map(of).collect()
        }
        Shape::AnyOf(shapes) => shapes.iter().flat_map(values).collect(),
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
        Shape::Personal(shape) => {
            let sealed = json!({ "$sealed": "", "of": "ada", "k": 1 });
            values(shape).into_iter().chain([sealed]).collect()
        }
    }
}

/// Whether the shapes have different kinds of objects or lists at some place. The comparison then says that they
/// differ, even if they have the same values.
fn are_of_two_kinds(old: &Shape, new: &Shape) -> bool {
    let two = |(old, new)| are_of_two_kinds(old, new);
    match (old, new) {
        // The comparison says that the value is not personal any more, although anything can be sealed.
        (Shape::Personal(_), Shape::Any) => true,
        (Shape::Personal(old), Shape::Personal(new)) => two((&**old, &**new)),
        (Shape::Nullable(old), new) => two((&**old, new)),
        (old, Shape::Nullable(new)) => two((old, &**new)),
        (Shape::List { item, .. }, Shape::List { item: new, .. }) => two((&**item, &**new)),
        (Shape::Tuple(old), Shape::Tuple(new)) => old.iter().zip(new).any(two),
        (Shape::Map { value: old, .. }, Shape::Map { value: new, .. }) => two((&**old, &**new)),
        (Shape::AnyOf(_), _) | (_, Shape::AnyOf(_)) => true,
        (Shape::List { .. }, Shape::Tuple(_)) | (Shape::Tuple(_), Shape::List { .. }) => true,
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
                matches!(shape, Shape::Object(_) | Shape::Map { .. } | Shape::OneOf { .. })
            };
            is_object(old) && is_object(new)
        }
    }
}

proptest! {
    #[test]
    fn a_breaking_change_has_a_witness_and_another_change_has_none((old, new) in pairs()) {
        let (differences, values_of_old) = (old.differences(&new), values(&old));
        for value in &values_of_old {
            prop_assert_eq!(old.admits(value), Ok(()));
        }
        let unread = values_of_old.iter().find(|value| new.reads(value).is_err());
        let refused = values_of_old.iter().find(|value| new.admits(value).is_err());
        let is_told_apart = !are_of_two_kinds(&old, &new);
        for (breaks, witness) in [
            (differences.iter().any(ShapeDifference::breaks_readers), unread),
            (differences.iter().any(ShapeDifference::breaks_callers), refused),
        ] {
            prop_assert!(witness.is_none() || breaks, "{witness:?} is a witness, and {differences:?}");
            prop_assert!(!breaks || witness.is_some() || !is_told_apart, "no witness of {differences:?}");
        }
        // Readers go first if a reader of the old shape can't read some value of the new one.
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
