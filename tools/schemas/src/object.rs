//! Objects of a file that people change and git merges. Without this, serde also takes a list in place of an object,
//! and takes the last of two members with one name.

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// A value that is read only from an object, not from a list of its values.
pub(crate) struct Object<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(OfObject(PhantomData))
    }
}

struct OfObject<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for OfObject<T> {
    type Value = Object<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Object)
    }
}

/// A list of objects.
pub(crate) fn objects<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let objects = Vec::deserialize(deserializer)?;
    Ok(objects.into_iter().map(|Object(object)| object).collect())
}

/// Objects by their names. A repeated name is refused.
pub(crate) fn named<'de, D, K, T>(deserializer: D) -> Result<BTreeMap<K, T>, D::Error>
where
    D: Deserializer<'de>,
    K: Deserialize<'de> + Ord + Display,
    T: Deserialize<'de>,
{
    deserializer.deserialize_map(Named(PhantomData))
}

struct Named<K, T>(PhantomData<(K, T)>);

impl<'de, K, T> Visitor<'de> for Named<K, T>
where
    K: Deserialize<'de> + Ord + Display,
    T: Deserialize<'de>,
{
    type Value = BTreeMap<K, T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<BTreeMap<K, T>, A::Error> {
        let mut found = BTreeMap::new();
        while let Some((name, Object(value))) = map.next_entry()? {
            if found.contains_key(&name) {
                return Err(A::Error::custom(format_args!("it has {name} twice")));
            }
            found.insert(name, value);
        }
        Ok(found)
    }
}
