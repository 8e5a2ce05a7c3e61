//! The fields of a command's JSON, which serde knows: a form can be made of them.
//!
//! A type says what it wants by what it asks a deserializer for. So each field is found by a run of its own, which
//! leads there, notes what is asked for, and fails. No value is made.

use std::cell::RefCell;
use std::marker::PhantomData;

use serde::de::value::Error;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error as _, IntoDeserializer, MapAccess,
    SeqAccess, Visitor,
};

/// How deep fields are looked for; what lies deeper is [`Value::Json`].
const LEVELS_MAX: usize = 6;

/// What a field takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A text.
    Text,
    /// A whole number.
    Whole,
    /// A number.
    Number,
    /// True or false.
    Truth,
    /// One of these texts.
    Choice(&'static [&'static str]),
    /// Any number of values.
    List(Box<Value>),
    /// An object.
    Object(Vec<Field>),
    /// Anything else.
    Json,
}

/// A field of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// Whether it may be absent.
    pub is_optional: bool,
    /// What it holds.
    pub value: Value,
}

/// What the JSON of a `T` is.
pub fn value<T: DeserializeOwned>() -> Value {
    Search::<T>(PhantomData).value(&[]).0
}

struct Search<T>(PhantomData<T>);

impl<T: DeserializeOwned> Search<T> {
    /// What is at the end of a path, and whether it may be absent.
    fn value(&self, path: &[usize]) -> (Value, bool) {
        let asked = RefCell::new(Asked { is_optional: false, answer: Answer::Value(Value::Json) });
        // It always fails; only what it asks for matters.
        let _ = T::deserialize(Probe { path, asked: &asked });
        let Asked { is_optional, answer } = asked.into_inner();
        let inside = |step: usize| self.value(&[path, &[step]].concat());
        let value = match answer {
            Answer::Value(value) => value,
            _ if path.len() == LEVELS_MAX => Value::Json,
            Answer::List => Value::List(Box::new(inside(0).0)),
            Answer::Object(names) => {
                let field = |(step, name): (usize, &&'static str)| {
                    let (value, is_optional) = inside(step);
                    Field { name, is_optional, value }
                };
                Value::Object(names.iter().enumerate().map(field).collect())
            }
        };
        (value, is_optional)
    }
}

/// What was asked for at the end of a path.
struct Asked {
    is_optional: bool,
    answer: Answer,
}

enum Answer {
    Value(Value),
    List,
    Object(&'static [&'static str]),
}

/// A deserializer that follows a path: of an object the number of the field, of a list 0.
#[derive(Clone, Copy)]
struct Probe<'a> {
    path: &'a [usize],
    asked: &'a RefCell<Asked>,
}

impl Probe<'_> {
    fn ends<V>(self, answer: Answer) -> Result<V, Error> {
        if self.path.is_empty() {
            self.asked.borrow_mut().answer = answer;
        }
        Err(Error::custom("only what is asked for is wanted"))
    }

    fn inside(self) -> Self {
        Self { path: &self.path[1..], ..self }
    }
}

macro_rules! ends {
    ($($value:expr => $($method:ident)*;)*) => {$($(
        fn $method<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
            self.ends(Answer::Value($value))
        }
    )*)*};
}

impl<'de> Deserializer<'de> for Probe<'_> {
    type Error = Error;

    ends! {
        Value::Text => deserialize_char deserialize_str deserialize_string deserialize_bytes
            deserialize_byte_buf deserialize_identifier;
        Value::Whole => deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
            deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128;
        Value::Number => deserialize_f32 deserialize_f64;
        Value::Truth => deserialize_bool;
        Value::Json => deserialize_any deserialize_ignored_any deserialize_map deserialize_unit;
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.path.is_empty() {
            self.asked.borrow_mut().is_optional = true;
        }
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: V,
    ) -> Result<V::Value, Error> {
        self.ends(Answer::Value(Value::Json))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        self.ends(Answer::Value(Value::Choice(variants)))
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.path {
            [] => self.ends(Answer::List),
            _ => visitor.visit_seq(Inside { probe: self.inside(), name: None }),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, Error> {
        self.ends(Answer::Value(Value::Json))
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        _: V,
    ) -> Result<V::Value, Error> {
        self.ends(Answer::Value(Value::Json))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.path {
            [] => self.ends(Answer::Object(fields)),
            [step, ..] => {
                visitor.visit_map(Inside { probe: self.inside(), name: fields.get(*step).copied() })
            }
        }
    }
}

/// One field of an object, or one element of a list.
struct Inside<'a> {
    probe: Probe<'a>,
    name: Option<&'static str>,
}

impl<'de> MapAccess<'de> for Inside<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        self.name.take().map(|name| seed.deserialize(name.into_deserializer())).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        seed.deserialize(self.probe)
    }
}

impl<'de> SeqAccess<'de> for Inside<'_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        seed.deserialize(self.probe).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use ringfence::{Text, id_type};
    use serde::Deserialize;

    use super::*;

    id_type!(OrderId, "names an order");

    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    #[allow(dead_code, reason = "only its fields matter")]
    struct Order {
        order_id: OrderId,
        lines: Vec<Line>,
        note: Option<Text<200>>,
        paid: bool,
        way: Way,
        free: serde_json::Value,
    }

    #[derive(Deserialize)]
    #[allow(dead_code, reason = "only its fields matter")]
    struct Line {
        quantity: NonZeroU32,
        price: f64,
        tags: Vec<String>,
    }

    #[derive(Deserialize)]
    #[serde(rename_all = "kebab-case")]
    #[allow(dead_code, reason = "only their names matter")]
    enum Way {
        ByAir,
        BySea,
    }

    #[test]
    fn each_field_is_found_with_what_it_takes() {
        let field = |name, value| Field { name, is_optional: false, value };
        let texts = Value::List(Box::new(Value::Text));
        let line = Value::Object(vec![
            field("quantity", Value::Whole),
            field("price", Value::Number),
            field("tags", texts),
        ]);
        let order = Value::Object(vec![
            field("orderId", Value::Text),
            field("lines", Value::List(Box::new(line))),
            Field { name: "note", is_optional: true, value: Value::Text },
            field("paid", Value::Truth),
            field("way", Value::Choice(&["by-air", "by-sea"])),
            field("free", Value::Json),
        ]);
        assert_eq!(value::<Order>(), order);
        assert_eq!(value::<serde_json::Value>(), Value::Json);
    }
}
