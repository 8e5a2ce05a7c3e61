//! What the log needs of a store of items.

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
    /// The most items of the page. It may have fewer although more follow.
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
    /// What each item says, or why it can't be decoded. The items of a stream follow each other, its Tip
    /// last.
    pub heads: Vec<Result<Head, ItemError>>,
    /// The key after which others follow, if any do.
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

    /// Writes a Tip, and with it a calf if there is one, or nothing. If the condition does not hold, the
    /// failure has the Tip that was found.
    fn write<'a>(&'a self, write: &'a Write) -> BoxFuture<'a, Result<(), Failure>>;

    /// Deletes a calf, if it is there.
    fn delete<'a>(&'a self, stream: &'a StreamName, key: i64)
    -> BoxFuture<'a, Result<(), Failure>>;

    /// The streams whose items are on the page of the table that follows the key, strongly consistent.
    fn streams(&self, after: Option<Item>) -> BoxFuture<'_, Result<Streams, Failure>>;
}
