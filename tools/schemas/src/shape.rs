//! What JSON a type takes and makes.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::{Map, Value, json};

/// What JSON a type takes and makes. Written down, it is a schema of JSON Schema 2020-12, of the few words that these
/// shapes need.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Shape {
    /// Any JSON.
    #[default]
    Any,
    /// Null.
    Null,
    /// True or false.
    Truth,
    /// A whole number within these bounds.
    Whole {
        /// The smallest.
        min: i64,
        /// The largest.
        max: u64,
    },
    /// A number.
    Number,
    /// A text.
    Text {
        /// The least number of bytes.
        min: u64,
        /// The largest number of bytes; `None` if none is known. A type of an application's own may count characters:
        /// letters of one byte can't tell which.
        max: Option<u64>,
    },
    /// One of these texts.
    Choice(Vec<String>),
    /// Values of one shape.
    List {
        /// Their shape.
        item: Box<Self>,
        /// How few there can be.
        min: u64,
        /// How many there can be; `None` if no limit is known.
        max: Option<u64>,
    },
    /// An object whose keys are data, with values of one shape.
    Map(Box<Self>),
    /// An object with these members, by name, and no other.
    Object(BTreeMap<String, Member>),
    /// An object whose member `tag` says which of these objects the rest is. Without a tag, an object of one member,
    /// whose name says what its value is; if that is null, there is the name alone, as a text.
    OneOf {
        /// The member that says it.
        tag: Option<String>,
        /// The shapes of the rest, by what the tag says.
        members: BTreeMap<String, Self>,
    },
    /// This or null.
    Nullable(Box<Self>),
}

/// A member of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// Whether it may be absent.
    pub is_optional: bool,
    /// What it holds.
    pub shape: Shape,
}

/// A schema that is not one of those that a [`Shape`] is written as.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {why}")]
pub struct ShapeError {
    /// Where in the schema, as a JSON pointer.
    pub place: String,
    /// What is wrong there.
    pub why: String,
}

impl Shape {
    /// As a schema of JSON Schema 2020-12.
    #[must_use]
    pub fn schema(&self) -> Value {
        let bounded = |mut schema: Value, least: &str, min: u64, most: &str, max: Option<u64>| {
            if min > 0 {
                schema[least] = min.into();
            }
            if let Some(max) = max {
                schema[most] = max.into();
            }
            schema
        };
        match self {
            Self::Any => json!({}),
            Self::Null => json!({ "type": "null" }),
            Self::Truth => json!({ "type": "boolean" }),
            Self::Whole { min, max } => {
                json!({ "type": "integer", "minimum": min, "maximum": max })
            }
            Self::Number => json!({ "type": "number" }),
            Self::Text { min, max } => {
                bounded(json!({ "type": "string" }), "minLength", *min, "maxLength", *max)
            }
            Self::Choice(names) => json!({ "type": "string", "enum": names }),
            Self::List { item, min, max } => {
                let schema = json!({ "type": "array", "items": item.schema() });
                bounded(schema, "minItems", *min, "maxItems", *max)
            }
            Self::Map(value) => json!({ "type": "object", "additionalProperties": value.schema() }),
            Self::Object(members) => object(members),
            Self::OneOf { tag, members } => {
                let one = |(name, rest): (&String, &Self)| one_of(tag.as_deref(), name, rest);
                json!({ "oneOf": members.iter().map(one).collect::<Vec<_>>() })
            }
            Self::Nullable(shape) => json!({ "anyOf": [shape.schema(), { "type": "null" }] }),
        }
    }
}

fn object(members: &BTreeMap<String, Member>) -> Value {
    let properties: Map<_, _> =
        members.iter().map(|(name, member)| (name.clone(), member.shape.schema())).collect();
    let required: Vec<_> = members.iter().filter(|(_, member)| !member.is_optional).collect();
    let required: Vec<_> = required.into_iter().map(|(name, _)| name).collect();
    let mut schema = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema["additionalProperties"] = false.into();
    schema
}

/// One of the objects of a [`Shape::OneOf`].
fn one_of(tag: Option<&str>, name: &str, rest: &Shape) -> Value {
    match (tag, rest) {
        (Some(tag), Shape::Object(members)) => {
            let mut schema = object(members);
            schema["properties"][tag] = json!({ "const": name });
            let rest = schema["required"].as_array().into_iter().flatten().cloned();
            schema["required"] = [json!(tag)].into_iter().chain(rest).collect();
            schema
        }
        (Some(tag), _) => {
            json!({ "type": "object", "properties": { tag: { "const": name } }, "required": [tag] })
        }
        (None, Shape::Null) => json!({ "const": name }),
        (None, _) => object(&BTreeMap::from([(
            name.to_owned(),
            Member { is_optional: false, shape: rest.clone() },
        )])),
    }
}

impl Serialize for Shape {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.schema().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Shape {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let schema = Value::deserialize(deserializer)?;
        Self::from_schema(&schema).map_err(D::Error::custom)
    }
}

impl Shape {
    /// The shape that is written as this schema.
    ///
    /// # Errors
    /// The schema has a word that no shape is written with.
    pub fn from_schema(schema: &Value) -> Result<Self, ShapeError> {
        parse(schema, String::new())
    }
}

fn parse(schema: &Value, place: String) -> Result<Shape, ShapeError> {
    let error = |why: &str| ShapeError { place: place.clone(), why: why.to_owned() };
    let words = schema.as_object().ok_or_else(|| error("not a schema"))?;
    let inside = |word: &str| {
        let inner = words.get(word).ok_or_else(|| error(&format!("`{word}` is missing")))?;
        parse(inner, format!("{place}/{word}"))
    };
    let number = |word: &str| words.get(word).and_then(Value::as_u64);
    let min = |word: &str| number(word).unwrap_or(0);
    if words.is_empty() {
        return Ok(Shape::Any);
    }
    if let Some(schemas) = words.get("oneOf").and_then(Value::as_array) {
        return parse_one_of(schemas, &format!("{place}/oneOf"));
    }
    if let Some([schema, _]) = words.get("anyOf").and_then(Value::as_array).map(|all| &all[..]) {
        return Ok(Shape::Nullable(Box::new(parse(schema, format!("{place}/anyOf/0"))?)));
    }
    Ok(match words.get("type").and_then(Value::as_str) {
        Some("null") => Shape::Null,
        Some("boolean") => Shape::Truth,
        Some("number") => Shape::Number,
        Some("integer") => Shape::Whole {
            min: words.get("minimum").and_then(Value::as_i64).unwrap_or(i64::MIN),
            max: number("maximum").unwrap_or(u64::MAX),
        },
        Some("string") => match words.get("enum") {
            Some(names) => Shape::Choice(
                Vec::deserialize(names).map_err(|_| error("`enum` is not a list of texts"))?,
            ),
            None => Shape::Text { min: min("minLength"), max: number("maxLength") },
        },
        Some("array") => Shape::List {
            item: Box::new(inside("items")?),
            min: min("minItems"),
            max: number("maxItems"),
        },
        Some("object") if words.contains_key("properties") => {
            Shape::Object(parse_members(words, &place)?)
        }
        Some("object") => Shape::Map(Box::new(inside("additionalProperties")?)),
        _ => return Err(error("no shape is written so")),
    })
}

fn parse_members(
    words: &Map<String, Value>,
    place: &str,
) -> Result<BTreeMap<String, Member>, ShapeError> {
    let required: Vec<_> = words.get("required").and_then(Value::as_array).into_iter().collect();
    let is_required = |name: &String| required.iter().any(|names| names.contains(&json!(name)));
    let properties = words.get("properties").and_then(Value::as_object).into_iter().flatten();
    let member = |(name, schema): (&String, &Value)| {
        let shape = parse(schema, format!("{place}/properties/{name}"))?;
        Ok((name.clone(), Member { is_optional: !is_required(name), shape }))
    };
    properties.map(member).collect()
}

fn parse_one_of(schemas: &[Value], place: &str) -> Result<Shape, ShapeError> {
    let mut tag = None;
    let mut members = BTreeMap::new();
    for (n, schema) in schemas.iter().enumerate() {
        let place = format!("{place}/{n}");
        let error = |why: &str| ShapeError { place: place.clone(), why: why.to_owned() };
        let words = schema.as_object().ok_or_else(|| error("not a schema"))?;
        if let Some(Value::String(name)) = words.get("const") {
            members.insert(name.clone(), Shape::Null);
            continue;
        }
        let properties = words.get("properties").and_then(Value::as_object);
        let properties = properties.ok_or_else(|| error("`properties` is missing"))?;
        let says = properties.iter().find_map(|(name, schema)| Some((name, schema.get("const")?)));
        if let Some((key, Value::String(name))) = says {
            let rest = if words.contains_key("additionalProperties") {
                let mut words = words.clone();
                words["properties"].as_object_mut().map(|properties| properties.remove(key));
                Shape::Object(parse_members(&words, &place)?)
            } else {
                Shape::Any
            };
            tag = Some(key.clone());
            members.insert(name.clone(), rest);
        } else {
            let [(name, member)] =
                &parse_members(words, &place)?.into_iter().collect::<Vec<_>>()[..]
            else {
                return Err(error("neither a tag nor one member"));
            };
            members.insert(name.clone(), member.shape.clone());
        }
    }
    Ok(Shape::OneOf { tag, members })
}

#[cfg(test)]
mod tests {
    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;

    use super::*;

    fn shapes() -> impl Strategy<Value = Shape> {
        let name = || "[a-z]{1,3}";
        let single = prop_oneof![
            prop_oneof![
                Just(Shape::Any),
                Just(Shape::Null),
                Just(Shape::Truth),
                Just(Shape::Number)
            ],
            (any::<i64>(), any::<u64>()).prop_map(|(min, max)| Shape::Whole { min, max }),
            (any::<u64>(), any::<Option<u64>>()).prop_map(|(min, max)| Shape::Text { min, max }),
            vec(name(), 0..3).prop_map(Shape::Choice),
        ];
        single.prop_recursive(3, 12, 3, move |inner| {
            let member = (any::<bool>(), inner.clone())
                .prop_map(|(is_optional, shape)| Member { is_optional, shape });
            let object = btree_map(name(), member, 0..3).prop_map(Shape::Object);
            let of_tag = prop_oneof![object.clone(), Just(Shape::Any)];
            let list = (inner.clone(), any::<u64>(), any::<Option<u64>>());
            prop_oneof![
                list.prop_map(|(item, min, max)| Shape::List { item: Box::new(item), min, max }),
                inner.clone().prop_map(|value| Shape::Map(Box::new(value))),
                inner.clone().prop_map(|shape| Shape::Nullable(Box::new(shape))),
                btree_map(name(), inner, 0..3)
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
    fn a_schema_that_no_shape_is_written_as_is_named_with_its_place() {
        for (schema, place, why) in [
            (json!(1), "", "not a schema"),
            (json!({ "type": "array" }), "", "`items` is missing"),
            (
                json!({ "type": "array", "items": { "type": 1 } }),
                "/items",
                "no shape is written so",
            ),
            (
                json!({ "type": "object", "properties": { "a": { "$ref": "#" } } }),
                "/properties/a",
                "no shape is written so",
            ),
            (
                json!({ "oneOf": [{ "properties": {} }] }),
                "/oneOf/0",
                "neither a tag nor one member",
            ),
        ] {
            let error = ShapeError { place: place.to_owned(), why: why.to_owned() };
            assert_eq!(Shape::from_schema(&schema), Err(error));
        }
    }
}
