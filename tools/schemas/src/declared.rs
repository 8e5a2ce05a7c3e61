//! Reads shapes from the schemas that types declare with `schemars`, and from the schemas in locks.

use std::collections::{BTreeMap, BTreeSet};

use regex_lite::Regex;
use ringfence_core::personal::KEYWORD;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::{Member, Shape, ShapeError};

#[cfg(test)]
mod tests;

/// Words that do not limit the JSON that a type takes. `uniqueItems` is one: a set takes a list with equal elements
/// too.
const ANNOTATIONS: [&str; 10] = [
    "$schema",
    "$defs",
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "uniqueItems",
];

impl Shape {
    /// The JSON that a `T` takes, as the type declares it. A type that contains itself is [`Shape::Any`] at the inner
    /// place.
    ///
    /// # Panics
    /// The type's schema has a word that no shape has.
    #[must_use]
    pub fn of<T: JsonSchema>() -> Self {
        let settings = SchemaSettings::draft2020_12().for_deserialize();
        let settings = settings.with(|settings| settings.inline_subschemas = true);
        let schema = settings.into_generator().into_root_schema_for::<T>();
        Self::from_schema(schema.as_value())
            .unwrap_or_else(|error| panic!("the schema of {}: {error}", T::schema_id()))
    }

    /// The shape of a schema.
    ///
    /// # Errors
    /// The schema has a word that no shape has.
    pub fn from_schema(schema: &Value) -> Result<Self, ShapeError> {
        Place(String::new()).shape(schema)
    }
}

/// A place in a schema, as a JSON pointer.
struct Place(String);

type Words = Map<String, Value>;

impl Place {
    fn error(&self, why: impl Into<String>) -> ShapeError {
        ShapeError { place: self.0.clone(), why: why.into() }
    }

    fn step(&self, step: impl std::fmt::Display) -> Self {
        Self(format!("{}/{step}", self.0))
    }

    fn inside(&self, words: &Words, word: &str) -> Result<Shape, ShapeError> {
        let inner = words.get(word).ok_or_else(|| self.error(format!("`{word}` is missing")))?;
        self.step(word).shape(inner)
    }

    /// Fails if there are other words than these.
    fn only(&self, words: &Words, known: &[&str]) -> Result<(), ShapeError> {
        let is_known = |word: &&String| word.as_str() == "type" || known.contains(&word.as_str());
        match words.keys().find(|word| !is_known(word)) {
            Some(word) => Err(self.error(format!("no shape has the word `{word}` here"))),
            None => Ok(()),
        }
    }

    fn shape(&self, schema: &Value) -> Result<Shape, ShapeError> {
        let mut words = match schema {
            Value::Bool(true) => return Ok(Shape::Any),
            // A type without values.
            Value::Bool(false) => return Ok(Shape::Choice(BTreeSet::new())),
            Value::Object(words) => words.clone(),
            _ => return Err(self.error("not a schema")),
        };
        words.retain(|word, _| !ANNOTATIONS.contains(&word.as_str()));
        if words.remove(KEYWORD).is_some() {
            return Ok(Shape::Personal(Box::new(self.shape(&words.into())?)));
        }
        // `schemars` refers only to a type around the place.
        if words.is_empty() || words.contains_key("$ref") {
            return Ok(Shape::Any);
        }
        if let Some(Value::Array(types)) = words.get("type") {
            let [name, null] = &types[..] else { return Err(self.error("one type, or null")) };
            if *null != "null" {
                return Err(self.error("one type, or null"));
            }
            let name = name.clone();
            words.insert("type".to_owned(), name);
            if let Some(Value::Array(names)) = words.get_mut("enum") {
                names.retain(|name| !name.is_null());
            }
            return Ok(nullable(self.plain(&words)?));
        }
        self.plain(&words)
    }

    fn plain(&self, words: &Words) -> Result<Shape, ShapeError> {
        let number = |word: &str| words.get(word).and_then(Value::as_u64);
        let min = |word: &str| number(word).unwrap_or(0);
        let text = |word: &str| words.get(word).and_then(Value::as_str).map(str::to_owned);
        match words.get("type").and_then(Value::as_str) {
            Some("null") => Ok(Shape::Null),
            Some("boolean") => self.only(words, &[]).map(|()| Shape::Boolean),
            Some("integer") => self.integer(words),
            Some("number") => {
                self.only(words, &["format", "minimum", "maximum"])?;
                let bound = |word: &str| words.get(word).and_then(Value::as_f64);
                Ok(Shape::Number { min: bound("minimum"), max: bound("maximum") })
            }
            Some("string") if words.contains_key("enum") || words.contains_key("const") => {
                self.only(words, &["enum", "const"])?;
                let names = self.names(words)?;
                Ok(Shape::Choice(names))
            }
            Some("string") => {
                self.only(words, &["minLength", "maxLength", "pattern", "format"])?;
                Ok(Shape::String {
                    min: min("minLength"),
                    max: number("maxLength"),
                    pattern: text("pattern").map(|it| self.pattern(it)).transpose()?,
                    format: text("format"),
                })
            }
            Some("array") if words.contains_key("prefixItems") => {
                self.only(words, &["prefixItems", "minItems", "maxItems"])?;
                let place = self.step("prefixItems");
                let items = words["prefixItems"].as_array().into_iter().flatten().enumerate();
                items
                    .map(|(n, item)| place.step(n).shape(item))
                    .collect::<Result<_, _>>()
                    .map(Shape::Tuple)
            }
            Some("array") => {
                self.only(words, &["items", "minItems", "maxItems"])?;
                // A list without elements has none.
                let is_empty = number("maxItems") == Some(0) && !words.contains_key("items");
                let item = if is_empty { Shape::Any } else { self.inside(words, "items")? };
                let item = Box::new(item);
                Ok(Shape::List { item, min: min("minItems"), max: number("maxItems") })
            }
            // An enum or a map that is flattened into an object.
            Some("object")
                if ["oneOf", "anyOf", "allOf"].iter().any(|it| words.contains_key(*it)) =>
            {
                Ok(Shape::Any)
            }
            Some("object") => self.object(words),
            None if words.contains_key("const") => self.names(words).map(Shape::Choice),
            None => self.alternatives(words),
            Some(_) => Err(self.error("no shape is of this type")),
        }
    }

    fn integer(&self, words: &Words) -> Result<Shape, ShapeError> {
        self.only(words, &["format", "minimum", "maximum", "not"])?;
        let (least, most) = match words.get("format").and_then(Value::as_str) {
            Some("int8") => (i8::MIN.into(), i8::MAX.into()),
            Some("int16") => (i16::MIN.into(), i16::MAX.into()),
            Some("int32") => (i32::MIN.into(), i32::MAX.into()),
            Some("int64" | "int") => (i64::MIN.into(), i64::MAX.into()),
            Some("uint8") => (0, u8::MAX.into()),
            Some("uint16") => (0, u16::MAX.into()),
            Some("uint32") => (0, u32::MAX.into()),
            _ => (i64::MIN.into(), u64::MAX.into()),
        };
        let bound = |word: &str| words.get(word).and_then(integer);
        let min = bound("minimum").unwrap_or(least);
        let max = bound("maximum").unwrap_or(most);
        match words.get("not") {
            None => Ok(Shape::Integer { min, max }),
            Some(not) if *not == json!({ "const": 0 }) => {
                Ok(any_of([Shape::Integer { min, max: -1 }, Shape::Integer { min: 1, max }]))
            }
            Some(_) => Err(self.error("an integer lacks no other number than 0")),
        }
    }

    fn names(&self, words: &Words) -> Result<BTreeSet<String>, ShapeError> {
        let names = match (words.get("const"), words.get("enum")) {
            (Some(name), _) => std::slice::from_ref(name),
            (None, Some(Value::Array(names))) => names,
            (None, _) => return Err(self.error("`enum` is not a list")),
        };
        let name = |name: &Value| name.as_str().map(str::to_owned);
        let all: Option<_> = names.iter().map(name).collect();
        all.ok_or_else(|| self.error("a choice is between strings"))
    }

    fn pattern(&self, pattern: String) -> Result<String, ShapeError> {
        match Regex::new(&pattern) {
            Ok(_) => Ok(pattern),
            Err(error) => Err(self.error(format!("`{pattern}` is no pattern: {error}"))),
        }
    }

    fn object(&self, words: &Words) -> Result<Shape, ShapeError> {
        let of_object = ["properties", "required", "additionalProperties"];
        let of_map = ["patternProperties", "propertyNames", "minProperties", "maxProperties"];
        self.only(words, &[&of_object[..], &of_map].concat())?;
        let members = self.members(words)?;
        let others = words.get("additionalProperties").filter(|others| **others != false);
        let patterns = words.get("patternProperties").and_then(Value::as_object);
        if others.is_none() && patterns.is_none() {
            return Ok(Shape::Object(members));
        }
        // A map that is flattened into an object.
        if !members.is_empty() {
            return Ok(Shape::Any);
        }
        let (keys, value) = match patterns.and_then(|patterns| patterns.iter().next()) {
            // `schemars` gives each pattern of a key the same value.
            Some((pattern, value)) => {
                let patterns = patterns.into_iter().flatten().map(|(pattern, _)| pattern.as_str());
                let keys = patterns.collect::<Vec<_>>().join("|");
                (Some(keys), self.step("patternProperties").step(pattern).shape(value)?)
            }
            None => {
                let keys = words.get("propertyNames").map(|names| match &names["pattern"] {
                    Value::String(keys) => Ok(keys.clone()),
                    _ => Err(self.step("propertyNames").error("`pattern` is missing")),
                });
                (keys.transpose()?, self.inside(words, "additionalProperties")?)
            }
        };
        let number = |word: &str| words.get(word).and_then(Value::as_u64);
        Ok(Shape::Map {
            keys: keys.map(|keys| self.pattern(keys)).transpose()?,
            value: Box::new(value),
            min: number("minProperties").unwrap_or(0),
            max: number("maxProperties"),
        })
    }

    fn members(&self, words: &Words) -> Result<BTreeMap<String, Member>, ShapeError> {
        let required: Vec<_> =
            words.get("required").and_then(Value::as_array).into_iter().flatten().collect();
        let place = self.step("properties");
        let properties = words.get("properties").and_then(Value::as_object).into_iter().flatten();
        let member = |(name, schema): (&String, &Value)| {
            let shape = place.step(name).shape(schema)?;
            let is_optional = !required.iter().any(|required| *required == name);
            Ok((name.clone(), Member { is_optional, shape }))
        };
        properties.map(member).collect()
    }

    /// One of several shapes.
    fn alternatives(&self, words: &Words) -> Result<Shape, ShapeError> {
        self.only(words, &["oneOf", "anyOf", "allOf"])?;
        let of = |word: &str| match words.get(word) {
            Some(Value::Array(schemas)) => Some((self.step(word), schemas)),
            _ => None,
        };
        if let Some((place, schemas)) = of("oneOf") {
            let named = match place.tagged(schemas)? {
                None => place.untagged(schemas)?,
                tagged => tagged,
            };
            return named.map_or_else(|| place.any_of(schemas), Ok);
        }
        match of("anyOf") {
            Some((place, schemas)) => place.any_of(schemas),
            None if words.contains_key("allOf") => Ok(Shape::Any),
            None => Err(self.error("no shape is written so")),
        }
    }

    fn any_of(&self, schemas: &[Value]) -> Result<Shape, ShapeError> {
        let shapes = schemas.iter().enumerate().map(|(n, schema)| self.step(n).shape(schema));
        Ok(any_of(shapes.collect::<Result<Vec<_>, _>>()?))
    }

    /// An enum with a tag.
    fn tagged(&self, schemas: &[Value]) -> Result<Option<Shape>, ShapeError> {
        let says = |schema: &Value, tag: &str| {
            let name = schema["properties"][tag]["const"].as_str();
            name.map(str::to_owned)
        };
        let first = schemas.first().and_then(|first| first["properties"].as_object());
        let mut names = first.into_iter().flatten().map(|(name, _)| name);
        let is_tag = |tag: &&String| schemas.iter().all(|schema| says(schema, tag).is_some());
        let Some(tag) = names.find(is_tag) else { return Ok(None) };
        let mut members = BTreeMap::new();
        for (n, schema) in schemas.iter().enumerate() {
            let (Some(name), Value::Object(words)) = (says(schema, tag), schema) else { continue };
            let mut words = words.clone();
            words["properties"].as_object_mut().map(|properties| properties.remove(tag));
            let rest = match self.step(n).shape(&words.into())? {
                Shape::Object(members) => Shape::Object(members),
                _ => Shape::Any,
            };
            members.insert(name, rest);
        }
        Ok(Some(Shape::OneOf { tag: Some(tag.clone()), members }))
    }

    /// An enum without a tag in its objects: names, and objects of one member.
    fn untagged(&self, schemas: &[Value]) -> Result<Option<Shape>, ShapeError> {
        let mut members = BTreeMap::new();
        for (n, schema) in schemas.iter().enumerate() {
            match self.step(n).shape(schema)? {
                Shape::Choice(names) => {
                    members.extend(names.into_iter().map(|name| (name, Shape::Null)));
                }
                Shape::Object(of_one) if of_one.len() == 1 => {
                    for (name, Member { shape, .. }) in of_one {
                        // A name whose value is null would be taken for the name alone.
                        if shape == Shape::Null {
                            return Ok(None);
                        }
                        members.insert(name, shape);
                    }
                }
                _ => return Ok(None),
            }
        }
        if members.values().all(|shape| *shape == Shape::Null) {
            return Ok(Some(Shape::Choice(members.into_keys().collect())));
        }
        Ok(Some(Shape::OneOf { tag: None, members }))
    }
}

/// A number of a schema.
pub(crate) fn integer(number: &Value) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

fn nullable(shape: Shape) -> Shape {
    match shape {
        Shape::Any | Shape::Null | Shape::Nullable(_) => shape,
        Shape::Personal(shape) => Shape::Personal(Box::new(nullable(*shape))),
        shape => Shape::Nullable(Box::new(shape)),
    }
}

/// The shape of values that have any of these shapes. It has each shape once, without a nested [`Shape::AnyOf`], and
/// with null once for all.
fn any_of(shapes: impl IntoIterator<Item = Shape>) -> Shape {
    let (mut flat, mut can_be_null) = (Vec::new(), false);
    let mut open: Vec<_> = shapes.into_iter().collect();
    open.reverse();
    while let Some(shape) = open.pop() {
        match shape {
            Shape::Any => return Shape::Any,
            Shape::Null => can_be_null = true,
            Shape::Nullable(shape) => {
                can_be_null = true;
                open.push(*shape);
            }
            Shape::AnyOf(shapes) => open.extend(shapes.into_iter().rev()),
            shape if flat.contains(&shape) => {}
            shape => flat.push(shape),
        }
    }
    let shape = match flat.len() {
        0 => return Shape::Null,
        1 => flat.remove(0),
        _ => Shape::AnyOf(flat),
    };
    if can_be_null { nullable(shape) } else { shape }
}
