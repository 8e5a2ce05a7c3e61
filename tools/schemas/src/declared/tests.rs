//! The shapes that types declare, and their schemas.

use std::collections::{BTreeMap, BTreeSet};
use std::num::{NonZeroI8, NonZeroU32};

use ringfence_core::{List, Text, id_type, prelude::*};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Shape;

mod written;

#[track_caller]
fn check<T: JsonSchema>(expected: Value) {
    let shape = Shape::of::<T>();
    assert_eq!(shape.schema(), expected, "{}", std::any::type_name::<T>());
    assert_eq!(Shape::from_schema(&expected), Ok(shape));
}

fn day() -> Value {
    json!({ "type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$", "format": "date" })
}

fn integer(min: i64, max: u64) -> Value {
    json!({ "type": "integer", "minimum": min, "maximum": max })
}

fn string() -> Value {
    json!({ "type": "string" })
}

fn id() -> Value {
    json!({ "type": "string", "minLength": 1, "maxLength": 64, "pattern": "^[A-Za-z0-9._-]+$" })
}

/// The schema of an object with only these members, of which some are `required`.
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
#[derive(Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(extend("minimum" = 10, "maximum" = 100))]
#[expect(dead_code, reason = "only the shape matters")]
struct Percent(u8);

/// A part of a whole.
#[derive(Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(extend("minimum" = 0, "maximum" = 1))]
#[expect(dead_code, reason = "only the shape matters")]
struct Share(f64);

#[derive(PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(extend("pattern" = "^[0-9]{4}-[0-9]{2}-[0-9]{2}$", "format" = "date"))]
struct Day(String);

#[test]
fn a_single_value_has_the_limits_of_its_type() {
    check::<u8>(integer(0, 255));
    check::<i8>(integer(-128, 127));
    check::<u16>(integer(0, 65_535));
    check::<i32>(integer(-2_147_483_648, 2_147_483_647));
    check::<i64>(integer(i64::MIN, i64::MAX as u64));
    check::<u64>(integer(0, u64::MAX));
    check::<NonZeroU32>(integer(1, 4_294_967_295));
    let below = json!({ "type": "integer", "minimum": -128, "maximum": -1 });
    check::<NonZeroI8>(json!({ "anyOf": [below, integer(1, 127)] }));
    check::<Percent>(integer(10, 100));
    check::<f32>(json!({ "type": "number" }));
    check::<Share>(json!({ "type": "number", "minimum": 0.0, "maximum": 1.0 }));
    check::<bool>(json!({ "type": "boolean" }));
    check::<()>(json!({ "type": "null" }));
    check::<char>(json!({ "type": "string", "minLength": 1, "maxLength": 1 }));
    check::<String>(string());
    check::<Day>(day());
    check::<OrderId>(id());
    check::<Text<200>>(json!({ "type": "string", "maxLength": 200 }));
    check::<Option<u8>>(json!({ "anyOf": [integer(0, 255), { "type": "null" }] }));
    check::<Box<Option<Value>>>(json!({}));
}

#[test]
fn lists_and_maps_have_one_shape_inside() {
    let list = |item: Value| json!({ "type": "array", "items": item });
    check::<Vec<u8>>(list(integer(0, 255)));
    check::<BTreeSet<Day>>(list(day()));
    check::<Vec<Vec<bool>>>(list(list(json!({ "type": "boolean" }))));
    check::<List<OrderId, 20>>(json!({
        "type": "array", "items": id(), "maxItems": 20,
    }));
    check::<[i8; 2]>(json!({
        "type": "array", "items": integer(-128, 127), "minItems": 2, "maxItems": 2,
    }));
    let items = [integer(0, 255), string()];
    let pair = json!({ "type": "array", "prefixItems": items, "minItems": 2, "maxItems": 2 });
    check::<(u8, String)>(pair);
    let map = |keys: &str, value: Value| {
        json!({
            "type": "object", "additionalProperties": value, "propertyNames": { "pattern": keys },
        })
    };
    check::<BTreeMap<OrderId, NonZeroU32>>(map("^[A-Za-z0-9._-]+$", integer(1, 4_294_967_295)));
    check::<BTreeMap<u32, Vec<Day>>>(map(r"^\d+$", list(day())));
    check::<BTreeMap<String, bool>>(
        json!({ "type": "object", "additionalProperties": { "type": "boolean" } }),
    );
    let ways = json!({ "by-air": integer(0, 255), "by-sea": integer(0, 255) });
    check::<BTreeMap<Way, u8>>(object(ways, &[]));
    check::<serde_json::Map<String, Value>>(
        json!({ "type": "object", "additionalProperties": {} }),
    );
}

fn seven() -> u8 {
    7
}

#[derive(Deserialize, JsonSchema)]
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

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only the shape matters")]
struct Inner {
    at: Vec<Point>,
}

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only the shape matters")]
struct Point {
    x: i16,
    #[serde(flatten)]
    more: More,
}

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only the shape matters")]
struct More {
    label: String,
}

/// A tree that contains trees.
#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only the shape matters")]
struct Tree {
    name: String,
    children: Vec<Self>,
    parent: Option<Box<Self>>,
}

#[test]
fn a_member_that_may_be_absent_is_optional() {
    let point =
        object(json!({ "x": integer(-32_768, 32_767), "label": string() }), &["label", "x"]);
    let points = json!({ "type": "array", "items": point });
    let comment = json!({ "anyOf": [{ "type": "string", "maxLength": 9 }, { "type": "null" }] });
    let line = json!({
        "orderId": id(),
        "notes": { "type": "array", "items": string() },
        "rating": integer(0, 255),
        "comment": comment,
        "inner": object(json!({ "at": points }), &["at"]),
    });
    check::<Line>(object(line, &["inner", "orderId"]));
    let tree =
        json!({ "name": string(), "children": { "type": "array", "items": {} }, "parent": {} });
    check::<Tree>(object(tree, &["children", "name"]));
}

#[ringfence::value]
#[derive(PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "kebab-case")]
enum Way {
    /// A comment changes no shape.
    ByAir,
    BySea,
}

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only the shape matters")]
enum Untagged {
    Nothing,
    Number(u8),
    Pair(u8, u8),
    Named { way: Way },
}

#[derive(Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all_fields = "camelCase", deny_unknown_fields)]
#[expect(dead_code, reason = "only the shape matters")]
enum Tagged {
    Nothing,
    Order { order_id: OrderId, lines: Vec<Part>, way: Way, note: Option<String> },
    Part(Part),
}

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only the shape matters")]
struct Part {
    weight: NonZeroU32,
    sizes: BTreeMap<String, [u8; 2]>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(tag = "type", content = "value")]
#[expect(dead_code, reason = "only the shape matters")]
enum Adjacent {
    Nothing,
    Part(Part),
}

/// It is like an enum with a tag, but the rest does not depend on it.
#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only the shape matters")]
struct Marked {
    way: Way,
    value: Value,
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only the shape matters")]
enum Either {
    Number(u8),
    Text(String),
}

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only the shape matters")]
enum OfNull {
    Nothing(()),
    Number(u8),
}

#[ringfence::value]
#[derive(Default)]
#[serde(default)]
struct Counted {
    units_sold: u8,
}

fn part() -> Value {
    let sizes = json!({
        "type": "object",
        "additionalProperties": {
            "type": "array", "items": integer(0, 255), "minItems": 2, "maxItems": 2,
        },
    });
    object(json!({ "weight": integer(1, 4_294_967_295), "sizes": sizes }), &["sizes", "weight"])
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
    check::<Either>(json!({ "anyOf": [integer(0, 255), string()] }));
    check::<Marked>(object(json!({ "way": way, "value": {} }), &["value", "way"]));
    check::<Counted>(object(json!({ "unitsSold": integer(0, 255) }), &[]));
    let [nothing, number] = [json!({ "type": "null" }), integer(0, 255)];
    check::<OfNull>(json!({ "anyOf": [
        object(json!({ "Nothing": nothing }), &["Nothing"]),
        object(json!({ "Number": number }), &["Number"]),
    ] }));
    let items = [integer(0, 255), integer(0, 255)];
    let pair = json!({ "type": "array", "prefixItems": items, "minItems": 2, "maxItems": 2 });
    check::<Untagged>(json!({ "oneOf": [
        object(json!({ "Named": object(json!({ "way": way }), &["way"]) }), &["Named"]),
        { "const": "Nothing" },
        object(json!({ "Number": integer(0, 255) }), &["Number"]),
        object(json!({ "Pair": pair }), &["Pair"]),
    ] }));
    let order = json!({
        "orderId": id(),
        "lines": { "type": "array", "items": part() },
        "way": way,
        "note": { "anyOf": [string(), { "type": "null" }] },
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
    let id = || id();
    let note = json!({ "anyOf": [{ "type": "string", "maxLength": 9 }, { "type": "null" }] });
    let lines = json!({ "type": "array", "items": id(), "maxItems": 3 });
    let cancel = object(json!({ "orderId": id() }), &["orderId"]);
    let noted = json!({ "orderId": id(), "note": note, "lines": lines });
    check::<ChangeOrder>(json!({ "oneOf": [
        tagged("type", "Cancel", cancel),
        tagged("type", "Note", object(noted, &["lines", "orderId"])),
    ] }));
    let note = json!({ "anyOf": [string(), { "type": "null" }] });
    check::<OrderNoted>(object(json!({ "orderId": id(), "note": note }), &["orderId"]));
}
