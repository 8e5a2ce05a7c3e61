//! Which keys the rows of a generation have.
//!
//! A key of DynamoDB takes 1,000 writes a second. So a view may spread its rows over several, by the hash of their ids.
//! The generation says how many there are: so all builds find its rows, whatever their views say.

use aws_sdk_dynamodb::types::AttributeValue;
use ringfence_aws::Item;

use crate::generation::Generation;
use crate::view::Definition;

/// Partition key: the view, its generation, and the shard if there are several.
pub const VIEW: &str = "view";
/// Sort key: the row's id.
pub const ID: &str = "id";

/// The name of a generation's reader of the index.
pub(crate) fn reader_of(view: &str, generation: Generation) -> String {
    format!("{view}#{generation}")
}

/// The view and the generation of a reader.
pub(crate) fn of_reader(reader: &str) -> Option<(&str, Generation)> {
    let (view, generation) = reader.split_once('#')?;
    Some((view, generation.parse().ok()?))
}

/// The keys of a generation's rows.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    /// The name of the generation's reader, with which all keys begin.
    pub(crate) reader: String,
    shards: u32,
    /// Whether rows with a time are in the index of what is due.
    pub(crate) is_due: bool,
}

impl Keys {
    pub(crate) fn of(view: &Definition, generation: Generation) -> Self {
        let reader = reader_of(view.name, generation);
        Self { reader, shards: generation.shards, is_due: view.is_due }
    }

    /// One partition key for all items.
    pub(crate) fn one(key: String) -> Self {
        Self { reader: key, shards: 1, is_due: false }
    }

    /// The partition key of a shard.
    pub(crate) fn shard(&self, shard: u32) -> String {
        match self.shards {
            1 => self.reader.clone(),
            _ => format!("{}#{shard}", self.reader),
        }
    }

    /// The shard of a row.
    pub(crate) fn shard_of(&self, id: &str) -> u32 {
        hash(id) % self.shards
    }

    pub(crate) fn shards(&self) -> std::ops::Range<u32> {
        0..self.shards
    }

    /// The key of a row.
    pub(crate) fn key(&self, id: &str) -> Item {
        key(&self.shard(self.shard_of(id)), id)
    }
}

pub(crate) fn key(view: &str, id: &str) -> Item {
    let pairs = [(VIEW, view), (ID, id)];
    pairs.map(|(name, value)| (name.to_owned(), AttributeValue::S(value.to_owned()))).into()
}

/// FNV-1a, whose result is the same on every machine and in every build.
pub(crate) fn hash(id: &str) -> u32 {
    id.bytes()
        .fold(2_166_136_261_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(16_777_619))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reader_of_a_generation_names_its_shards() {
        for (generation, name) in [((3, 1), "orders#3"), ((12, 16), "orders#12x16")] {
            let generation = Generation { number: generation.0, shards: generation.1 };
            assert_eq!(reader_of("orders", generation), name);
            assert_eq!(of_reader(name), Some(("orders", generation)));
        }
        for wrong in ["audit", "orders#", "orders#x16", "orders#3x", "orders#3x0"] {
            assert_eq!(of_reader(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn ids_that_differ_in_few_digits_are_spread_evenly() {
        let keys = Keys { reader: "orders#1x16".to_owned(), shards: 16, is_due: false };
        let mut rows = [0; 16];
        for n in 0..1_600 {
            rows[keys.shard_of(&format!("order-{n:06}")) as usize] += 1;
        }
        assert!(rows.iter().all(|rows| (50..=150).contains(rows)), "{rows:?}");
    }
}
