//! The JSON that a type takes and makes.

use std::collections::{BTreeMap, BTreeSet};

use ringfence_core::personal::KEYWORD;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::{Map, Value, json};

/// The JSON that a type takes and makes. A lock has it as a schema of JSON Schema 2020-12, with only the words that
/// shapes need.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Shape {
    /// Any JSON.
    #[default]
    Any,
    /// Null.
    Null,
    /// A boolean.
    Boolean,
    /// An integer within these bounds.
    Integer {
        /// The smallest: at least `i64::MIN`.
        min: i128,
        /// The largest: at most `u64::MAX`.
        max: i128,
    },
    /// A number.
    Number {
        /// The smallest; `None` without a limit.
        min: Option<f64>,
        /// The largest; `None` without a limit.
        max: Option<f64>,
    },
    /// A string.
    String {
        /// The least number of bytes.
        min: u64,
        /// The largest number of bytes; `None` without a limit.
        max: Option<u64>,
        /// The regular expression that it matches.
        pattern: Option<String>,
        /// The name of its format, such as `date-time`. Formats are compared, but strings are not checked against them.
        format: Option<String>,
    },
    /// One of these strings.
    Choice(BTreeSet<String>),
    /// Values of one shape.
    List {
        /// Their shape.
        item: Box<Self>,
        /// How few there can be.
        min: u64,
        /// How many there can be; `None` without a limit.
        max: Option<u64>,
    },
    /// A list of exactly these values.
    Tuple(Vec<Self>),
    /// An object whose keys are data, with values of one shape.
    Map {
        /// The regular expression that each key matches.
        keys: Option<String>,
        /// The shape of the values.
        value: Box<Self>,
        /// How few entries there can be.
        min: u64,
        /// How many entries there can be; `None` without a limit.
        max: Option<u64>,
    },
    /// An object with only these members, by name.
    Object(BTreeMap<String, Member>),
    /// One of several objects. The member `tag` has the name of the object, and the rest is the object's own. Without a
    /// tag, there is one member: the name, with the rest as its value. If the rest is null, there is only the name, as
    /// a string.
    OneOf {
        /// The member that names the object.
        tag: Option<String>,
        /// The shapes of the rest, by the value of the tag.
        members: BTreeMap<String, Self>,
    },
    /// A value of any of these shapes.
    AnyOf(Vec<Self>),
    /// This or null.
    Nullable(Box<Self>),
    /// A personal value of this shape. Callers send it plain, and stores have it sealed or forgotten.
    Personal(Box<Self>),
}

/// A member of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// Whether it may be absent.
    pub is_optional: bool,
    /// Its shape.
    pub shape: Shape,
}

/// A schema that has no [`Shape`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {why}")]
pub struct ShapeError {
    /// Where in the schema, as a JSON pointer.
    pub place: String,
    /// What is wrong there.
    pub why: String,
}

impl Shape {
    /// Any string.
    pub const STRING: Self = Self::String { min: 0, max: None, pattern: None, format: None };

    /// Any number.
    pub const NUMBER: Self = Self::Number { min: None, max: None };

    /// As a schema of JSON Schema 2020-12.
    #[must_use]
    pub fn schema(&self) -> Value {
        match self {
            Self::Any => json!({}),
            Self::Null => json!({ "type": "null" }),
            Self::Boolean => json!({ "type": "boolean" }),
            Self::Integer { min, max } => {
                json!({ "type": "integer", "minimum": min, "maximum": max })
            }
            Self::Number { min, max } => words(
                json!({ "type": "number" }),
                [("minimum", min.map(Value::from)), ("maximum", max.map(Value::from))],
            ),
            Self::String { min, max, pattern, format } => {
                let text = |text: &Option<String>| text.clone().map(Value::from);
                let schema = words(
                    json!({ "type": "string" }),
                    [("pattern", text(pattern)), ("format", text(format))],
                );
                bounded(schema, "Length", *min, *max)
            }
            Self::Choice(names) => json!({ "type": "string", "enum": names }),
            Self::List { item, min, max } => {
                bounded(json!({ "type": "array", "items": item.schema() }), "Items", *min, *max)
            }
            Self::Tuple(items) => {
                let schemas: Vec<_> = items.iter().map(Self::schema).collect();
                let schema = json!({ "type": "array", "prefixItems": schemas });
                bounded(schema, "Items", items.len() as u64, Some(items.len() as u64))
            }
            Self::Map { keys, value, min, max } => {
                let schema = json!({ "type": "object", "additionalProperties": value.schema() });
                // Generators of clients do not know `patternProperties`.
                let keys = keys.as_ref().map(|keys| json!({ "pattern": keys }));
                let schema = words(schema, [("propertyNames", keys)]);
                bounded(schema, "Properties", *min, *max)
            }
            Self::Object(members) => object(members),
            Self::OneOf { tag, members } => {
                let one = |(name, rest): (&String, &Self)| one_of(tag.as_deref(), name, rest);
                json!({ "oneOf": members.iter().map(one).collect::<Vec<_>>() })
            }
            Self::AnyOf(shapes) => {
                json!({ "anyOf": shapes.iter().map(Self::schema).collect::<Vec<_>>() })
            }
            Self::Nullable(shape) => json!({ "anyOf": [shape.schema(), { "type": "null" }] }),
            Self::Personal(shape) => words(shape.schema(), [(KEYWORD, Some(true.into()))]),
        }
    }
}

fn words<const N: usize>(mut schema: Value, words: [(&str, Option<Value>); N]) -> Value {
    for (word, value) in words {
        if let Some(value) = value {
            schema[word] = value;
        }
    }
    schema
}

/// A schema with the least and the largest number of items, entries or bytes.
fn bounded(schema: Value, of: &str, min: u64, max: Option<u64>) -> Value {
    let (least, most) = (format!("min{of}"), format!("max{of}"));
    let min = Some(min).filter(|min| *min > 0);
    words(schema, [(&least, min.map(Value::from)), (&most, max.map(Value::from))])
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
        (Some(tag), _) => json!({
            "type": "object",
            "properties": { tag: { "const": name } },
            "required": [tag],
            "additionalProperties": true,
        }),
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
