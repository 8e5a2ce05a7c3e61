//! What a type asks of a deserializer at a place of its JSON.
//!
//! JSON that leads to the place is read. What is asked for there is noted, and whether the value that is there was taken.
//! Nothing else of the JSON is there, so what was taken at the place does not depend on what follows it.

use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::StrDeserializer;
use serde::de::{
    Deserialize, DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, IgnoredAny,
    IntoDeserializer, MapAccess, SeqAccess, VariantAccess, Visitor,
};
use serde_json::{Error, Value, json};

use super::place::{Asked, Place, Step, integer};

/// A place in the JSON of a `T`.
pub(super) struct Asking<T> {
    path: Vec<Step>,
    of: PhantomData<T>,
}

impl<T: DeserializeOwned> Asking<T> {
    /// The whole.
    pub(super) fn whole() -> Self {
        Self { path: Vec::new(), of: PhantomData }
    }

    fn look(&self, json: &Value) -> Seen {
        let around = |inside, step: &Step| step.around(inside);
        let json = self.path.iter().rev().fold(json.clone(), around);
        let seen = RefCell::default();
        let reader = Reader { json: &json, path: &self.path, seen: &seen };
        let _ = reader.taken(T::deserialize(reader));
        seen.into_inner()
    }
}

impl<T: DeserializeOwned> Place for Asking<T> {
    fn asks(&self) -> Option<Asked> {
        // An `Option` asks no more of null.
        self.look(&json!(true)).asked
    }

    fn takes(&self, json: &Value) -> Result<(), String> {
        self.look(json).taken.unwrap_or_else(|| Err("nothing reads it".to_owned()))
    }

    fn inside(&self, step: Step) -> Box<dyn Place + '_> {
        let path = self.path.iter().cloned().chain([step]).collect();
        Box::new(Self { path, of: PhantomData })
    }
}

/// What was seen at the end of a path.
#[derive(Default)]
struct Seen {
    asked: Option<Asked>,
    taken: Option<Result<(), String>>,
}

/// Reads JSON along a path, and what is at its end as `serde_json` does.
#[derive(Clone, Copy)]
struct Reader<'a> {
    json: &'a Value,
    path: &'a [Step],
    seen: &'a RefCell<Seen>,
}

impl<'a> Reader<'a> {
    fn asked(self, asked: Asked) {
        if self.path.is_empty() {
            self.seen.borrow_mut().asked.get_or_insert(asked);
        }
    }

    /// Notes whether the value was taken, if it is the one at the end.
    fn taken<V>(self, result: Result<V, Error>) -> Result<V, Error> {
        if self.path.is_empty() {
            let taken = result.as_ref().map(drop).map_err(ToString::to_string);
            self.seen.borrow_mut().taken = Some(taken);
        }
        result
    }

    /// The name of the member to which the path leads, and the value there.
    fn member(self) -> Option<(&'a str, Self)> {
        let (Step::Member(name), path) = self.path.split_first()? else { return None };
        let json = self.json.get(name)?;
        Some((name, Self { json, path, ..self }))
    }

    /// The elements before the one to which the path leads, and that one.
    fn element(self) -> Option<(&'a [Value], Self)> {
        let (Step::Element(_), path) = self.path.split_first()? else { return None };
        let (json, before) = self.json.as_array()?.split_last()?;
        Some((before, Self { json, path, ..self }))
    }
}

macro_rules! single_values {
    ($($asked:expr => $($method:ident)*;)*) => {$($(
        fn $method<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Error> {
            self.asked($asked);
            self.json.$method(visitor)
        }
    )*)*};
}

impl<'a> Deserializer<'a> for Reader<'a> {
    type Error = Error;

    single_values! {
        Asked::Truth => deserialize_bool;
        integer("i8") => deserialize_i8;
        integer("i16") => deserialize_i16;
        integer("i32") => deserialize_i32;
        integer("i64") => deserialize_i64;
        integer("i128") => deserialize_i128;
        integer("u8") => deserialize_u8;
        integer("u16") => deserialize_u16;
        integer("u32") => deserialize_u32;
        integer("u64") => deserialize_u64;
        integer("u128") => deserialize_u128;
        Asked::Number => deserialize_f32 deserialize_f64;
        Asked::Character => deserialize_char;
        Asked::Text => deserialize_str deserialize_string;
        Asked::Unit => deserialize_unit;
        Asked::Any => deserialize_any deserialize_ignored_any deserialize_identifier deserialize_bytes
            deserialize_byte_buf;
    }

    fn deserialize_option<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.json.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'a>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_unit_struct<V: Visitor<'a>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.asked(Asked::Unit);
        self.json.deserialize_unit_struct(name, visitor)
    }

    fn deserialize_seq<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Error> {
        self.asked(Asked::List);
        match self.element() {
            Some((before, last)) => visitor.visit_seq(Elements { before, last: Some(last) }),
            None => self.json.deserialize_seq(visitor),
        }
    }

    fn deserialize_tuple<V: Visitor<'a>>(
        self,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.asked(Asked::Tuple(length));
        match self.element() {
            Some((before, last)) => visitor.visit_seq(Elements { before, last: Some(last) }),
            None => self.json.deserialize_tuple(length, visitor),
        }
    }

    fn deserialize_tuple_struct<V: Visitor<'a>>(
        self,
        _: &'static str,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_tuple(length, visitor)
    }

    fn deserialize_map<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Error> {
        self.asked(Asked::Map);
        match self.member() {
            Some((name, value)) => visitor.visit_map(Member { name: Some(name), value }),
            None => self.json.deserialize_map(visitor),
        }
    }

    fn deserialize_struct<V: Visitor<'a>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.asked(Asked::Object(name, fields));
        match self.member() {
            Some((name, value)) => visitor.visit_map(Member { name: Some(name), value }),
            None => self.json.deserialize_struct(name, fields, visitor),
        }
    }

    fn deserialize_enum<V: Visitor<'a>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let names = variants.iter().map(|name| (*name).to_owned()).collect();
        self.asked(Asked::OneOf(name, names));
        match self.member() {
            Some((name, value)) => visitor.visit_enum(Member { name: Some(name), value }),
            None => self.json.deserialize_enum(name, variants, visitor),
        }
    }
}

/// The elements of a list, the last of which is on the path.
struct Elements<'a> {
    before: &'a [Value],
    last: Option<Reader<'a>>,
}

impl<'a> SeqAccess<'a> for Elements<'a> {
    type Error = Error;

    fn next_element_seed<S: DeserializeSeed<'a>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Error> {
        if let Some((first, before)) = self.before.split_first() {
            self.before = before;
            return seed.deserialize(first).map(Some);
        }
        self.last.take().map(|last| last.taken(seed.deserialize(last))).transpose()
    }
}

/// The one member of an object, which is on the path.
struct Member<'a> {
    name: Option<&'a str>,
    value: Reader<'a>,
}

impl<'a> MapAccess<'a> for Member<'a> {
    type Error = Error;

    fn next_key_seed<S: DeserializeSeed<'a>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Error> {
        // `serde_json` reads numbers and more as names of members.
        let key = |name: &str| json!({ name: null }).deserialize_map(Key(seed));
        self.name.take().map(key).transpose()
    }

    fn next_value_seed<S: DeserializeSeed<'a>>(&mut self, seed: S) -> Result<S::Value, Error> {
        self.value.taken(seed.deserialize(self.value))
    }
}

impl<'a> EnumAccess<'a> for Member<'a> {
    type Error = Error;
    type Variant = Reader<'a>;

    fn variant_seed<S: DeserializeSeed<'a>>(
        self,
        seed: S,
    ) -> Result<(S::Value, Reader<'a>), Error> {
        let name: StrDeserializer<'_, Error> = self.name.unwrap_or_default().into_deserializer();
        Ok((seed.deserialize(name)?, self.value))
    }
}

impl<'a> VariantAccess<'a> for Reader<'a> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        self.taken(Deserialize::deserialize(self))
    }

    fn newtype_variant_seed<S: DeserializeSeed<'a>>(self, seed: S) -> Result<S::Value, Error> {
        self.taken(seed.deserialize(self))
    }

    fn tuple_variant<V: Visitor<'a>>(self, length: usize, visitor: V) -> Result<V::Value, Error> {
        self.taken(self.deserialize_tuple(length, visitor))
    }

    fn struct_variant<V: Visitor<'a>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.taken(self.deserialize_struct("", fields, visitor))
    }
}

/// The key of an object with one member.
struct Key<S>(S);

impl<'de, S: DeserializeSeed<'de>> Visitor<'de> for Key<S> {
    type Value = S::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<S::Value, A::Error> {
        let key = object.next_key_seed(self.0)?;
        object.next_value::<IgnoredAny>()?;
        key.ok_or_else(|| serde::de::Error::custom("no member"))
    }
}
