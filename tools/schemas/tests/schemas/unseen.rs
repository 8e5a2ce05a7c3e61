//! Shows which limits of a type are in its shape. A page lists each kind of limit that is not.

use std::collections::BTreeMap;
use std::num::{NonZeroI8, NonZeroU8};

use ringfence_core::{List, Text, id_type};
use ringfence_schemas::{Shape, ShapeDifference};
use schemars::JsonSchema;
use serde::Deserialize;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/evolution.md");

/// Types that take only those values of another type for which a condition holds.
macro_rules! some {
    ($($name:ident of $text:literal, |$it:ident: $of:ty| $holds:expr;)*) => {$(
        #[derive(Deserialize, JsonSchema)]
        #[serde(try_from = $text)]
        struct $name;

        impl TryFrom<$of> for $name {
            type Error = &'static str;

            fn try_from($it: $of) -> Result<Self, Self::Error> {
                if $holds { Ok(Self) } else { Err("it does not hold") }
            }
        }
    )*};
}

some! {
    Even of "u8", |it: u8| it.is_multiple_of(2);
    InOrder of "Span", |it: Span| it.from <= it.to;
}

#[derive(Deserialize, JsonSchema)]
struct Span {
    from: u8,
    to: u8,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only the shape matters")]
struct Strict {
    from: u8,
    to: u8,
}

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only the shape matters")]
struct Until {
    from: u8,
    #[serde(alias = "until")]
    to: u8,
}

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only the shape matters")]
struct WithMore<T> {
    number: u8,
    #[serde(flatten)]
    more: BTreeMap<String, T>,
}

#[derive(Deserialize, JsonSchema)]
enum Open {
    Known,
    #[serde(other)]
    Other,
}

#[derive(Deserialize, JsonSchema)]
enum Closed {
    Known,
    Other,
}

#[derive(PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(extend("maxLength" = MAX))]
struct Short<const MAX: usize>(String);

/// Whether the shapes show a break for callers who send a `Was` where a `Now` is taken.
fn breaks<Was: JsonSchema, Now: JsonSchema>() -> bool {
    let differences = Shape::of::<Was>().differences(&Shape::of::<Now>());
    differences.iter().any(ShapeDifference::breaks_callers)
}

#[test]
fn the_page_lists_the_limits_that_a_shape_lacks() {
    let unseen = [
        ("what `try_from` refuses, and no word of the schema says", breaks::<u8, Even>()),
        ("a condition on several fields", breaks::<Span, InOrder>()),
        (
            "unknown fields of a value type, which `deny_unknown_fields` refuses",
            breaks::<Span, Strict>(),
        ),
        ("another name that is read, `alias`", breaks::<Until, Span>()),
        ("a variant for all other names, `other`", breaks::<Open, Closed>()),
        (
            "an object into which a map or an enum is flattened",
            breaks::<WithMore<u8>, WithMore<bool>>(),
        ),
        (
            "the length of the keys of a map",
            breaks::<BTreeMap<Short<9>, u8>, BTreeMap<Short<5>, u8>>(),
        ),
    ];
    let page = std::fs::read_to_string(PAGE).expect("the page");
    let (_, rest) = page.split_once("<!-- unseen -->").expect("the table begins");
    let (table, _) = rest.split_once("<!-- end of unseen -->").expect("the table ends");
    let rows = table.trim().lines().skip(2).map(|row| row.split('|').nth(1).unwrap_or_default());
    assert_eq!(unseen.map(|(kind, _)| kind).to_vec(), rows.map(str::trim).collect::<Vec<_>>());
    assert_eq!(unseen.map(|(_, is_seen)| is_seen), [false; 7]);
}

#[test]
fn similar_limits_are_in_a_shape() {
    let seen = [
        breaks::<Text<600_000>, Text<530_000>>(),
        breaks::<Short<9>, Short<5>>(),
        breaks::<String, OrderId>(),
        breaks::<List<u8, 9_000>, List<u8, 8_500>>(),
        breaks::<BTreeMap<String, u8>, BTreeMap<u8, u8>>(),
        breaks::<BTreeMap<String, u8>, BTreeMap<OrderId, u8>>(),
        breaks::<(u8, String), (bool, String)>(),
        breaks::<(u8, u8), (u8, u8, u8)>(),
        breaks::<u8, NonZeroU8>(),
        breaks::<i8, NonZeroI8>(),
        breaks::<Untagged<u8>, Untagged<bool>>(),
        breaks::<Tagged<u8>, Tagged<bool>>(),
        breaks::<f64, Share>(),
        breaks::<Tree<u8>, Tree<bool>>(),
    ];
    assert_eq!(seen, [true; 14]);
}

id_type!(OrderId, "names an order");

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only the shape matters")]
enum Untagged<T> {
    One(T),
    Many(Vec<T>),
}

#[derive(Deserialize, JsonSchema)]
#[serde(tag = "type")]
#[expect(dead_code, reason = "only the shape matters")]
enum Tagged<T> {
    One { number: u8, note: Option<T> },
}

#[derive(Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(extend("minimum" = 0, "maximum" = 1))]
#[expect(dead_code, reason = "only the shape matters")]
struct Share(f64);

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only the shape matters")]
struct Tree<T> {
    branches: Vec<Branch<T>>,
}

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only the shape matters")]
struct Branch<T> {
    leaf: T,
    tree: Option<Box<Tree<T>>>,
}
