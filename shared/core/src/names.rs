//! The names of an enum's variants, which serde knows.

use std::cell::Cell;

use serde::de::value::Error;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error as _, IntoDeserializer, MapAccess,
    Visitor,
};
use serde::forward_to_deserialize_any;

/// The names of the variants of an enum, whether they are tagged by their names alone or by a field. Empty for any other
/// type.
#[must_use]
pub fn variants<E: DeserializeOwned>() -> &'static [&'static str] {
    let found = Cell::new(&[][..]);
    // It always fails; only what it asks for matters.
    let _ = E::deserialize(Names(&found));
    found.get()
}

#[derive(Clone, Copy)]
struct Names<'a>(&'a Cell<&'static [&'static str]>);

impl<'de> Deserializer<'de> for Names<'_> {
    type Error = Error;

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        self.0.set(variants);
        Err(Error::custom("only the names are wanted"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        // An enum that is tagged by a field asks for that field first.
        visitor.visit_map(Tagged { names: self, field: fields.first() })
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("only an enum has names"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map identifier ignored_any
    }
}

/// A map that begins with the field of the tag.
struct Tagged<'a> {
    names: Names<'a>,
    field: Option<&'static &'static str>,
}

impl<'de> MapAccess<'de> for Tagged<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        let field = self.field.take();
        field.map(|field| seed.deserialize(field.into_deserializer())).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        seed.deserialize(self.names)
    }
}
