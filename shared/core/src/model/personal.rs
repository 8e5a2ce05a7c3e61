//! Personal data: values that only a person's key can read, so that a person can be forgotten.
//!
//! A value has three forms in JSON. A type writes it *marked*, and it is in this form only in memory. A log, a row, the
//! bus and every copy of an event have it *sealed*. Without its key it is *forgotten*.
//!
//! | form | JSON |
//! |---|---|
//! | marked | `{"$personal": <value>, "of": "<subject>"}` |
//! | sealed | `{"$sealed": "<base64url>", "of": "<subject>", "k": <number of the key>}` |
//! | forgotten | `{"$forgotten": true, "of": "<subject>"}` |

use std::{
    borrow::Cow,
    fmt::{self, Debug, Formatter},
    marker::PhantomData,
};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{DeserializeOwned, Error},
    ser::SerializeMap,
};
use serde_json::{Value, json};

use super::invalid::why_invalid;

/// The key of a marked value.
pub const MARKED: &str = "$personal";
/// The key of a sealed value.
pub const SEALED: &str = "$sealed";
/// The key of a forgotten value.
pub const FORGOTTEN: &str = "$forgotten";
/// The key of the subject beside them.
pub const OF: &str = "of";
/// The key beside a marked value that was read in clear.
pub(crate) const PLAIN: &str = "plain";

/// A value about a person, the subject. It is sealed under the subject's key wherever it is stored, and forgotten when
/// that key is destroyed.
///
/// It has no `Display`, and its `Debug` does not show the value, so it does not get into a log line by mistake. Do not
/// decide on its content: forgetting is not an event of a decision's boundaries, so the decision would change without a
/// conflict. Decide on a blind tag, or on a fact.
///
/// Two values are equal if their contents are; the subject is not compared.
#[derive(Clone)]
pub struct Personal<T> {
    value: Option<T>,
    of: Of,
}

/// Whose value it is. A value that was read keeps that in a state and in another event.
#[derive(Clone)]
enum Of {
    Subject(Box<str>),
    /// The event or command that gets the value says whose it is.
    Unnamed,
    /// The same, and the value was read in clear. So a state stores it in clear again: nobody knows its subject there.
    Plain,
}

impl<T> Personal<T> {
    /// The value; `None` if it is forgotten.
    pub fn known(&self) -> Option<&T> {
        self.value.as_ref()
    }

    /// The value; `None` if it is forgotten.
    pub fn into_known(self) -> Option<T> {
        self.value
    }

    /// Whether the subject is forgotten.
    pub fn is_forgotten(&self) -> bool {
        self.value.is_none()
    }

    /// The same subject's value as another type.
    pub fn map<U>(self, convert: impl FnOnce(T) -> U) -> Personal<U> {
        Personal { value: self.value.map(convert), of: self.of }
    }
}

impl<T> From<T> for Personal<T> {
    fn from(value: T) -> Self {
        Self { value: Some(value), of: Of::Unnamed }
    }
}

impl<T: PartialEq> PartialEq for Personal<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl<T: Eq> Eq for Personal<T> {}

impl<T> Debug for Personal<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_forgotten() { "Forgotten" } else { "Personal(…)" })
    }
}

impl<T: Serialize> Serialize for Personal<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match &self.value {
            Some(value) => map.serialize_entry(MARKED, value)?,
            None => map.serialize_entry(FORGOTTEN, &true)?,
        }
        match &self.of {
            Of::Subject(of) => map.serialize_entry(OF, of)?,
            Of::Plain => map.serialize_entry(PLAIN, &true)?,
            Of::Unnamed => {}
        }
        map.end()
    }
}

/// Reads a marked or a forgotten value, or the plain JSON of `T`: what a caller sends, and what events have from the
/// time before the field was personal.
impl<'de, T: DeserializeOwned> Deserialize<'de> for Personal<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let of = || match value[OF].as_str() {
            Some(of) => Of::Subject(of.into()),
            None if value[PLAIN] == true => Of::Plain,
            None => Of::Unnamed,
        };
        let (plain, of) = match form(&value) {
            Form::Forgotten => return Ok(Self { value: None, of: of() }),
            Form::Sealed => return Err(D::Error::custom(UNOPENED)),
            Form::Marked => (&value[MARKED], of()),
            Form::Plain => (&value, Of::Plain),
        };
        let known = T::deserialize(plain).map_err(|e| D::Error::custom(why_invalid(&e, plain)))?;
        Ok(Self { value: Some(known), of })
    }
}

const UNOPENED: &str = "a sealed value can't be read here; views take it as `Sealed`, and the stack's functions open it";

/// The shape of `T`, which callers send, with a note that it is personal.
impl<T: JsonSchema> JsonSchema for Personal<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Personal_{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        personal(generator.subschema_for::<T>())
    }
}

/// The keyword of a personal value's schema.
pub const KEYWORD: &str = "x-personal";

fn personal(mut schema: Schema) -> Schema {
    schema.insert(KEYWORD.to_owned(), true.into());
    schema
}

/// A personal value in the row of a view, which moves it without a key. query-views opens it, so in a page it is the
/// value, or null if the subject is forgotten.
#[derive(Serialize, Deserialize)]
#[serde(transparent, bound = "")]
pub struct Sealed<T> {
    json: Value,
    #[serde(skip)]
    of: PhantomData<fn() -> T>,
}

impl<T> Clone for Sealed<T> {
    fn clone(&self) -> Self {
        Self { json: self.json.clone(), of: PhantomData }
    }
}

impl<T> PartialEq for Sealed<T> {
    fn eq(&self, other: &Self) -> bool {
        self.json == other.json
    }
}

impl<T> Eq for Sealed<T> {}

/// No value.
impl<T> Default for Sealed<T> {
    fn default() -> Self {
        Self { json: Value::Null, of: PhantomData }
    }
}

impl<T> Debug for Sealed<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("Sealed(…)")
    }
}

/// For rows in cases.
impl<T: Serialize> From<Personal<T>> for Sealed<T> {
    fn from(value: Personal<T>) -> Self {
        let json = serde_json::to_value(value).expect("a value that an event holds");
        Self { json, of: PhantomData }
    }
}

/// The shape in a page.
impl<T: JsonSchema> JsonSchema for Sealed<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Sealed_{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        personal(generator.subschema_for::<Option<T>>())
    }
}

/// The form of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Marked.
    Marked,
    /// Sealed.
    Sealed,
    /// Forgotten.
    Forgotten,
    /// Not personal, or not marked yet.
    Plain,
}

/// The form of a value.
#[must_use]
pub fn form(value: &Value) -> Form {
    let has = |key| value.as_object().is_some_and(|fields| fields.contains_key(key));
    match () {
        () if has(SEALED) => Form::Sealed,
        () if has(FORGOTTEN) => Form::Forgotten,
        () if has(MARKED) => Form::Marked,
        () => Form::Plain,
    }
}

/// The personal values in a payload or a row that have this form, at any depth.
pub fn values(payload: &mut Value, of: Form) -> Vec<&mut Value> {
    let mut found = Vec::new();
    collect(payload, of, &mut found);
    found
}

/// Makes the marked values of a subject forgotten.
pub fn forget(payload: &mut Value, of: &str) {
    let marked = values(payload, Form::Marked).into_iter();
    marked.filter(|value| subject(value) == Some(of)).for_each(|value| {
        *value = json!({ FORGOTTEN: true, OF: of });
    });
}

/// Whether a payload has a value of this form.
#[must_use]
pub fn has(payload: &Value, of: Form) -> bool {
    match (form(payload), payload) {
        (Form::Plain, Value::Array(values)) => values.iter().any(|value| has(value, of)),
        (Form::Plain, Value::Object(fields)) => fields.values().any(|value| has(value, of)),
        (form, _) => form == of,
    }
}

fn collect<'v>(value: &'v mut Value, of: Form, found: &mut Vec<&'v mut Value>) {
    match form(value) {
        Form::Plain => match value {
            Value::Array(values) => values.iter_mut().for_each(|value| collect(value, of, found)),
            Value::Object(fields) => {
                fields.values_mut().for_each(|value| collect(value, of, found))
            }
            _ => {}
        },
        form if form == of => found.push(value),
        _ => {}
    }
}

/// Replaces each marked value by its plain JSON, and each other by null: the form in an answer.
pub fn show(answer: &mut Value) {
    for value in values(answer, Form::Marked) {
        *value = value[MARKED].take();
    }
    for form in [Form::Forgotten, Form::Sealed] {
        values(answer, form).into_iter().for_each(|value| *value = Value::Null);
    }
}

/// Replaces each marked value that was read in clear by its plain JSON: the form in a stored state.
pub fn store_plain(state: &mut Value) {
    for value in values(state, Form::Marked) {
        if value[PLAIN] == true {
            *value = value[MARKED].take();
        }
    }
}

/// Whether JSON of this type can have personal values, by its declared shape.
#[must_use]
pub fn is_in<T: JsonSchema>() -> bool {
    schemars::schema_for!(T).as_value().to_string().contains(KEYWORD)
}

/// The subject of a marked or sealed value.
#[must_use]
pub fn subject(value: &Value) -> Option<&str> {
    value[OF].as_str()
}

/// Whether a blind tag can have this value: a vault has made it.
pub(crate) fn is_blinded(value: &str) -> bool {
    let number = value.strip_prefix('b').and_then(|rest| rest.split_once('.'));
    number.is_some_and(|(number, hmac)| {
        number.bytes().all(|byte| byte.is_ascii_digit())
            && hmac.len() == BLINDED_LETTERS
            && hmac.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    })
}

/// 130 bits, five in each letter.
const BLINDED_LETTERS: usize = 26;
