//! What of a type is in its shape, and what is not. The page lists each kind that is not.

use std::collections::{BTreeMap, BTreeSet};
use std::num::{NonZeroI8, NonZeroU8};

use ringfence_core::{List, Text};
use ringfence_schemas::{Shape, ShapeDifference};
use serde::{Deserialize, de::DeserializeOwned};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/evolution.md");

/// Types that take of another type the values for which a condition holds.
macro_rules! some {
    ($($name:ident of $text:literal, |$it:ident: $of:ty| $holds:expr;)*) => {$(
        #[derive(Deserialize)]
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
    Day of "String", |it: String| it.len() == 10 && it.contains('-');
    Time of "String", |it: String| it.len() == 8 && it.contains(':');
    Five of "BTreeSet<u8>", |it: BTreeSet<u8>| it.len() <= 5;
    Three of "BTreeSet<u8>", |it: BTreeSet<u8>| it.len() <= 3;
    FiveEntries of "BTreeMap<String, u8>", |it: BTreeMap<String, u8>| it.len() <= 5;
    ThreeEntries of "BTreeMap<String, u8>", |it: BTreeMap<String, u8>| it.len() <= 3;
    Percentage of "f64", |it: f64| (0.0..=100.0).contains(&it);
    Share of "f64", |it: f64| (0.0..=1.0).contains(&it);
    InOrder of "Span", |it: Span| it.from <= it.to;
}

#[derive(Deserialize)]
struct Span {
    from: u8,
    to: u8,
}

#[derive(Deserialize)]
#[serde(untagged)]
#[expect(dead_code, reason = "only the shape matters")]
enum Untagged<T> {
    One(T),
    Many(Vec<T>),
}

#[derive(Deserialize)]
#[serde(tag = "type")]
#[expect(dead_code, reason = "only the shape matters")]
enum Tagged<T> {
    One { number: u8, note: Option<T> },
}

type Three3<T> = Vec<Vec<Vec<T>>>;
type Twelve<T> = Three3<Three3<Three3<Three3<T>>>>;

/// What breaks the callers who send a `Was`, if a `Now` is taken instead.
fn breaks<Was: DeserializeOwned, Now: DeserializeOwned>() -> bool {
    let differences = Shape::of::<Was>().differences(&Shape::of::<Now>());
    differences.iter().any(ShapeDifference::breaks_callers)
}

#[test]
fn the_page_lists_what_is_not_in_a_shape() {
    let unseen = [
        ("an untagged enum", breaks::<Untagged<u8>, Untagged<bool>>()),
        ("the optional members of an enum with a tag", breaks::<Tagged<u8>, Tagged<bool>>()),
        ("the form of a string, such as a date", breaks::<Day, Time>()),
        ("a limit of a string above 512 KB", breaks::<Text<600_000>, Text<530_000>>()),
        ("a limit of a list above 8,192 elements", breaks::<List<u8, 9_000>, List<u8, 8_500>>()),
        ("a limit of a list whose elements all differ", breaks::<Five, Three>()),
        ("the keys of a map", breaks::<BTreeMap<String, u8>, BTreeMap<u8, u8>>()),
        ("a limit of a map", breaks::<FiveEntries, ThreeEntries>()),
        ("the elements of a tuple of several types", breaks::<(u8, String), (bool, String)>()),
        ("the limits of a fraction", breaks::<Percentage, Share>()),
        ("a number that is left out between the limits", breaks::<i8, NonZeroI8>()),
        ("a condition on several fields", breaks::<Span, InOrder>()),
        ("what lies deeper than 12 levels", breaks::<Twelve<u8>, Twelve<bool>>()),
    ];
    let page = std::fs::read_to_string(PAGE).expect("the page");
    let (_, rest) = page.split_once("<!-- unseen -->").expect("the table begins");
    let (table, _) = rest.split_once("<!-- end of unseen -->").expect("the table ends");
    let rows = table.trim().lines().skip(2).map(|row| row.split('|').nth(1).unwrap_or_default());
    assert_eq!(unseen.map(|(kind, _)| kind).to_vec(), rows.map(str::trim).collect::<Vec<_>>());
    assert_eq!(unseen.map(|(_, is_seen)| is_seen), [false; 13]);
}

#[test]
fn what_is_like_it_is_in_a_shape() {
    let seen = [
        breaks::<Text<500_000>, Text<400_000>>(),
        breaks::<List<u8, 5_000>, List<u8, 2_000>>(),
        breaks::<BTreeMap<String, u8>, BTreeMap<String, bool>>(),
        breaks::<(u8, u8), (bool, bool)>(),
        breaks::<(u8, u8), (u8, u8, u8)>(),
        breaks::<u8, NonZeroU8>(),
        breaks::<Three3<u8>, Three3<bool>>(),
    ];
    assert_eq!(seen, [true; 7]);
}
