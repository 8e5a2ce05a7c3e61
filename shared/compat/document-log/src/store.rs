//! The store of items that the log needs.

use futures::future::BoxFuture;
use ringfence_aws::{Failure, Item};
use ringfence_core::Consistency;

use crate::{Batch, Head, ItemError, StreamName, Write};

/// The order of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Oldest first.
    Forward,
    /// Newest first.
    Backward,
}

/// A page of a stream's items, Tip included, in the order of their keys.
#[derive(Clone, Copy, Debug)]
pub struct ItemQuery<'a> {
    /// The stream.
    pub stream: &'a StreamName,
    /// The end from which to read.
    pub direction: Direction,
    /// Only items that follow this key in the direction.
    pub beyond: Option<i64>,
    /// At most this many items. The page may have fewer even if more follow.
    pub items_max: Option<i32>,
    /// The consistency of the read.
    pub consistency: Consistency,
}

/// An answer to a [`ItemQuery`].
#[derive(Clone, Debug, Default)]
pub struct ItemPage {
    /// The items.
    pub batches: Vec<Batch>,
    /// Whether others may follow.
    pub more: bool,
}

/// Some streams of a table, in no order.
#[derive(Debug, Default)]
pub struct Streams {
    /// The head of each item, or the error of its decoding. The items of a stream follow each other, its Tip last.
    pub heads: Vec<Result<Head, ItemError>>,
    /// The key after which the next streams follow, if there are more.
    pub next: Option<Item>,
}

/// A table of Tips and calves. Each call is one request. A failure says what is known about its effect.
pub trait Store: Send + Sync {
    /// The Tip of a stream.
    fn tip<'a>(
        &'a self,
        stream: &'a StreamName,
        consistency: Consistency,
    ) -> BoxFuture<'a, Result<Option<Batch>, Failure>>;

    /// Some items of a stream.
    fn query<'a>(&'a self, query: ItemQuery<'a>) -> BoxFuture<'a, Result<ItemPage, Failure>>;

    /// Writes a Tip, and in the same transaction a calf if there is one. If the condition does not hold, it writes
    /// nothing, and the failure has the Tip that was found.
    fn write<'a>(&'a self, write: &'a Write) -> BoxFuture<'a, Result<(), Failure>>;

    /// Deletes a calf, if it is there.
    fn delete<'a>(&'a self, stream: &'a StreamName, key: i64)
    -> BoxFuture<'a, Result<(), Failure>>;

    /// The streams on the page of the table after this key, strongly consistent.
    fn streams(&self, after: Option<Item>) -> BoxFuture<'_, Result<Streams, Failure>>;
}
