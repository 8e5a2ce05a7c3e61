//! Names of aggregates.

use std::fmt;

/// Separates the store from the aggregate in a partition key.
const SEPARATOR: char = '#';
/// A partition key, in bytes. Source: "Quotas in Amazon DynamoDB", Amazon DynamoDB Developer Guide.
const KEY_BYTES_MAX: usize = 2_048;

/// Names one aggregate: its event store and its id there.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AggregateKey {
    store: String,
    id: String,
}

/// The reason that a text can't name a store or an aggregate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The store's id is empty or contains the separator.
    #[error("the id of an event store has one or more characters and no {SEPARATOR:?}: {0:?}")]
    Store(String),
    /// An aggregate without an id.
    #[error("an aggregate of {0} has an empty id")]
    Empty(String),
    /// The key is longer than a partition key can be.
    #[error("the key of an aggregate of {store} has {bytes} bytes, limit {KEY_BYTES_MAX}")]
    Long {
        /// The store.
        store: String,
        /// The length of the key.
        bytes: usize,
    },
    /// A partition key without a store in front.
    #[error("partition {0:?} names no event store")]
    Partition(String),
}

impl AggregateKey {
    /// The aggregate `id` of the event store `store`.
    ///
    /// # Errors
    /// See [`KeyError`].
    pub fn new(store: impl Into<String>, id: impl Into<String>) -> Result<Self, KeyError> {
        let (store, id) = (store.into(), id.into());
        check_store(&store)?;
        if id.is_empty() {
            return Err(KeyError::Empty(store));
        }
        let bytes = store.len() + SEPARATOR.len_utf8() + id.len();
        if bytes > KEY_BYTES_MAX {
            return Err(KeyError::Long { store, bytes });
        }
        Ok(Self { store, id })
    }

    /// The aggregate of `partition`. Its id may contain separators; the id of its store can't.
    ///
    /// # Errors
    /// [`KeyError::Partition`].
    pub fn of_partition(partition: &str) -> Result<Self, KeyError> {
        match partition.split_once(SEPARATOR) {
            Some((store, id)) if !store.is_empty() => {
                Ok(Self { store: store.to_owned(), id: id.to_owned() })
            }
            _ => Err(KeyError::Partition(partition.to_owned())),
        }
    }

    /// The id of the event store.
    #[must_use]
    pub fn store(&self) -> &str {
        &self.store
    }

    /// The id of the aggregate in its store.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }
}

pub(crate) fn check_store(store: &str) -> Result<(), KeyError> {
    if store.is_empty() || store.contains(SEPARATOR) {
        return Err(KeyError::Store(store.to_owned()));
    }
    Ok(())
}

/// The partition key.
impl fmt::Display for AggregateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{SEPARATOR}{}", self.store, self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_names_the_aggregate_that_it_was_made_of() {
        for id in ["1", "a#b", "#", "größe"] {
            let key = AggregateKey::new("orders", id).expect("an aggregate");
            assert_eq!(AggregateKey::of_partition(&key.to_string()), Ok(key));
        }
        for partition in ["", "orders", "#1"] {
            assert!(AggregateKey::of_partition(partition).is_err(), "{partition}");
        }
    }

    #[test]
    fn names_that_could_be_mistaken_are_refused() {
        for (store, id) in [("", "1"), ("a#b", "1"), ("a", ""), ("a", &*"x".repeat(2_047))] {
            assert!(AggregateKey::new(store, id).is_err(), "{store:?} {id:?}");
        }
        assert!(AggregateKey::new("a", "x".repeat(2_046)).is_ok());
    }
}
