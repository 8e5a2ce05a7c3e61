//! Types and the shapes that are found of them.

use std::collections::{BTreeMap, BTreeSet};
use std::num::{NonZeroI8, NonZeroU32};

use ringfence_core::{Command, Event, List, Text, id_type};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::Shape;

#[track_caller]
fn check<T: DeserializeOwned>(expected: Value) {
    let shape = Shape::of::<T>();
    assert_eq!(shape.schema(), expected, "{}", std::any::type_name::<T>());
    assert_eq!(Shape::from_schema(&expected), Ok(shape));
}

fn whole(min: i64, max: u64) -> Value {
    json!({ "type": "integer", "minimum": min, "maximum": max })
}

fn text() -> Value {
    json!({ "type": "string" })
}

/// An object without other members; those that are `required` have to be there.
fn object(members: Value, required: &[&str]) -> Value {
    let mut schema =
        json!({ "type": "object", "properties": members, "additionalProperties": false });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

id_type!(OrderId, "names an order");

/// A number of hundredths.
#[derive(Deserialize)]
#[serde(try_from = "u8")]
struct Percent;

impl TryFrom<u8> for Percent {
    type Error = String;

    fn try_from(number: u8) -> Result<Self, String> {
        if (10..=100).contains(&number) { Ok(Self) } else { Err("10 to 100".to_owned()) }
    }
}

/// A text that is no text of letters.
#[derive(PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
struct Day;

impl TryFrom<String> for Day {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text.len() == 10 && text.contains('-') { Ok(Self) } else { Err("a day".to_owned()) }
    }
}

#[test]
fn a_single_value_has_the_limits_of_its_type() {
    check::<u8>(whole(0, 255));
    check::<i8>(whole(-128, 127));
    check::<u16>(whole(0, 65_535));
    check::<i32>(whole(-2_147_483_648, 2_147_483_647));
    check::<i64>(whole(i64::MIN, i64::MAX as u64));
    check::<u64>(whole(0, u64::MAX));
    check::<u128>(whole(0, u64::MAX));
    check::<NonZeroU32>(whole(1, 4_294_967_295));
    check::<NonZeroI8>(whole(-128, 127));
    check::<Percent>(whole(10, 100));
    check::<f32>(json!({ "type": "number" }));
    check::<bool>(json!({ "type": "boolean" }));
    check::<()>(json!({ "type": "null" }));
    check::<char>(json!({ "type": "string", "minLength": 1, "maxLength": 1 }));
    check::<String>(text());
    check::<Day>(text());
    check::<OrderId>(json!({ "type": "string", "minLength": 1, "maxLength": 64 }));
    check::<Text<200>>(json!({ "type": "string", "maxLength": 200 }));
    check::<Option<u8>>(json!({ "anyOf": [whole(0, 255), { "type": "null" }] }));
    check::<Box<Option<Value>>>(json!({}));
}

#[test]
fn lists_and_maps_have_one_shape_inside() {
    let list = |item: Value| json!({ "type": "array", "items": item });
    check::<Vec<u8>>(list(whole(0, 255)));
    check::<BTreeSet<Day>>(list(text()));
    check::<Vec<Vec<bool>>>(list(list(json!({ "type": "boolean" }))));
    check::<List<OrderId, 20>>(json!({
        "type": "array", "items": { "type": "string", "minLength": 1, "maxLength": 64 }, "maxItems": 20,
    }));
    check::<[i8; 2]>(json!({
        "type": "array", "items": whole(-128, 127), "minItems": 2, "maxItems": 2,
    }));
    check::<(u8, String)>(json!({ "type": "array", "items": {}, "minItems": 2, "maxItems": 2 }));
    check::<BTreeMap<OrderId, NonZeroU32>>(json!({
        "type": "object", "additionalProperties": whole(1, 4_294_967_295),
    }));
    check::<BTreeMap<u32, Vec<Day>>>(json!({
        "type": "object", "additionalProperties": list(text()),
    }));
    let ways = json!({ "by-air": whole(0, 255), "by-sea": whole(0, 255) });
    check::<BTreeMap<Way, u8>>(object(ways, &[]));
    check::<serde_json::Map<String, Value>>(
        json!({ "type": "object", "additionalProperties": {} }),
    );
}

fn seven() -> u8 {
    7
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only the shape matters")]
struct Line {
    order_id: OrderId,
    #[serde(default)]
    notes: Vec<String>,
    #[serde(default = "seven", alias = "stars")]
    rating: u8,
    comment: Option<Text<9>>,
    inner: Box<Inner>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "only the shape matters")]
struct Inner {
    at: Vec<Point>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "only the shape matters")]
struct Point {
    x: i16,
    #[serde(flatten)]
    more: More,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "only the shape matters")]
struct More {
    label: String,
}

/// A tree, which is in itself.
#[derive(Deserialize)]
#[expect(dead_code, reason = "only the shape matters")]
struct Tree {
    name: String,
    children: Vec<Self>,
    parent: Option<Box<Self>>,
}

#[test]
fn a_member_that_may_be_absent_is_optional() {
    let point = object(json!({ "x": whole(-32_768, 32_767), "label": text() }), &["label", "x"]);
    let points = json!({ "type": "array", "items": point });
    let comment = json!({ "anyOf": [{ "type": "string", "maxLength": 9 }, { "type": "null" }] });
    let line = json!({
        "orderId": { "type": "string", "minLength": 1, "maxLength": 64 },
        "notes": { "type": "array", "items": text() },
        "rating": whole(0, 255),
        "comment": comment,
        "inner": object(json!({ "at": points }), &["at"]),
    });
    check::<Line>(object(line, &["inner", "orderId"]));
    let tree =
        json!({ "name": text(), "children": { "type": "array", "items": {} }, "parent": {} });
    check::<Tree>(object(tree, &["children", "name"]));
}

#[derive(PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Way {
    ByAir,
    BySea,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "only the shape matters")]
enum Untagged {
    Nothing,
    Number(u8),
    Pair(u8, u8),
    Named { way: Way },
}

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all_fields = "camelCase", deny_unknown_fields)]
#[expect(dead_code, reason = "only the shape matters")]
enum Tagged {
    Nothing,
    Order { order_id: OrderId, lines: Vec<Part>, way: Way, note: Option<String> },
    Part(Part),
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "only the shape matters")]
struct Part {
    weight: NonZeroU32,
    sizes: BTreeMap<String, [u8; 2]>,
}

#[derive(Deserialize)]
#[serde(tag = "type", content = "value")]
#[expect(dead_code, reason = "only the shape matters")]
enum Adjacent {
    Nothing,
    Part(Part),
}

/// It is like an enum with a tag, but the rest does not depend on it.
#[derive(Deserialize)]
#[expect(dead_code, reason = "only the shape matters")]
struct Marked {
    way: Way,
    value: Value,
}

#[derive(Deserialize)]
#[serde(untagged)]
#[expect(dead_code, reason = "only the shape matters")]
enum Either {
    Number(u8),
    Text(String),
}

#[derive(Deserialize)]
enum Open {
    Known,
    #[serde(other)]
    Other,
}

fn part() -> Value {
    let sizes = json!({
        "type": "object",
        "additionalProperties": {
            "type": "array", "items": whole(0, 255), "minItems": 2, "maxItems": 2,
        },
    });
    object(json!({ "weight": whole(1, 4_294_967_295), "sizes": sizes }), &["sizes", "weight"])
}

/// A schema of an object with a tag, which comes first.
fn tagged(tag: &str, name: &str, mut schema: Value) -> Value {
    schema["properties"][tag] = json!({ "const": name });
    let rest = schema["required"].as_array().cloned().unwrap_or_default();
    schema["required"] = [json!(tag)].into_iter().chain(rest).collect();
    schema
}

#[test]
fn an_enum_is_a_choice_or_one_of_several_objects() {
    let way = json!({ "type": "string", "enum": ["by-air", "by-sea"] });
    check::<Way>(way.clone());
    check::<Open>(text());
    check::<Either>(json!({}));
    check::<Marked>(object(json!({ "way": way, "value": {} }), &["value", "way"]));
    let pair = json!({ "type": "array", "items": whole(0, 255), "minItems": 2, "maxItems": 2 });
    check::<Untagged>(json!({ "oneOf": [
        object(json!({ "Named": object(json!({ "way": way }), &["way"]) }), &["Named"]),
        { "const": "Nothing" },
        object(json!({ "Number": whole(0, 255) }), &["Number"]),
        object(json!({ "Pair": pair }), &["Pair"]),
    ] }));
    let order = json!({
        "orderId": { "type": "string", "minLength": 1, "maxLength": 64 },
        "lines": { "type": "array", "items": part() },
        "way": way,
        "note": { "anyOf": [text(), { "type": "null" }] },
    });
    check::<Tagged>(json!({ "oneOf": [
        tagged("kind", "Nothing", object(json!({}), &[])),
        tagged("kind", "Order", object(order, &["lines", "orderId", "way"])),
        tagged("kind", "Part", part()),
    ] }));
    check::<Adjacent>(json!({ "oneOf": [
        tagged("type", "Nothing", object(json!({}), &[])),
        tagged("type", "Part", object(json!({ "value": part() }), &["value"])),
    ] }));
}

/// Changes an order.
#[derive(Clone, Debug, PartialEq, Command)]
enum ChangeOrder {
    Cancel {
        #[tag(partition)]
        order_id: OrderId,
    },
    Note {
        #[tag(partition)]
        order_id: OrderId,
        note: Option<Text<9>>,
        lines: List<OrderId, 3>,
    },
}

#[derive(Clone, Debug, PartialEq, Event)]
struct OrderNoted {
    #[tag(partition)]
    order_id: OrderId,
    note: Option<String>,
}

#[test]
fn commands_and_events_have_shapes() {
    let id = || json!({ "type": "string", "minLength": 1, "maxLength": 64 });
    let note = json!({ "anyOf": [{ "type": "string", "maxLength": 9 }, { "type": "null" }] });
    let lines = json!({ "type": "array", "items": id(), "maxItems": 3 });
    let cancel = object(json!({ "orderId": id() }), &["orderId"]);
    let noted = json!({ "orderId": id(), "note": note, "lines": lines });
    check::<ChangeOrder>(json!({ "oneOf": [
        tagged("type", "Cancel", cancel),
        tagged("type", "Note", object(noted, &["lines", "orderId"])),
    ] }));
    let note = json!({ "anyOf": [text(), { "type": "null" }] });
    check::<OrderNoted>(object(json!({ "orderId": id(), "note": note }), &["orderId"]));
}
