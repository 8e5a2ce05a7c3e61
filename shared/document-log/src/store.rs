//! What the log needs of the place where items are.

use futures::future::BoxFuture;
use ringfence::Consistency;
use ringfence_dynamo::{Failure, Item};

use crate::{Batch, Direction, ItemError, StreamName, Write};

/// A page of a stream's items, Tip included, in the order of their keys.
#[derive(Clone, Copy, Debug)]
pub struct Query<'a> {
    /// The stream.
    pub stream: &'a StreamName,
    /// From which end.
    pub direction: Direction,
    /// Only items that follow this key in the direction.
    pub beyond: Option<i64>,
    /// Items of the page, at most; there may be fewer although more follow.
    pub items_max: Option<i32>,
    /// How fresh.
    pub consistency: Consistency,
}

/// An answer to a [`Query`].
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The items.
    pub batches: Vec<Batch>,
    /// Whether others may follow.
    pub more: bool,
}

/// A stream and how long it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The stream.
    pub stream: StreamName,
    /// The index of the first event that is left; the version if none is.
    pub first: u64,
    /// The index behind its last event.
    pub version: u64,
}

/// Some streams of a table, in no order.
#[derive(Debug, Default)]
pub struct Streams {
    /// What each item says, or why it says nothing; those of a stream follow on each other, its Tip
    /// last.
    pub heads: Vec<Result<Head, ItemError>>,
    /// The key after which others follow, if they do.
    pub next: Option<Item>,
}

/// A table of Tips and calves. Each call is one request; a failed one says what is known about its
/// effect.
pub trait Store: Send + Sync {
    /// The Tip of a stream.
    fn tip<'a>(
        &'a self,
        stream: &'a StreamName,
        consistency: Consistency,
    ) -> BoxFuture<'a, Result<Option<Batch>, Failure>>;

    /// Some items of a stream.
    fn query<'a>(&'a self, query: Query<'a>) -> BoxFuture<'a, Result<Page, Failure>>;

    /// Writes a Tip, and a calf if there is one, both or none. A condition that does not hold fails
    /// with the Tip that was found.
    fn write<'a>(&'a self, write: &'a Write) -> BoxFuture<'a, Result<(), Failure>>;

    /// Deletes a calf, if it is there.
    fn delete<'a>(&'a self, stream: &'a StreamName, key: i64)
    -> BoxFuture<'a, Result<(), Failure>>;

    /// The streams whose items are on the page of the table that follows the key, strongly consistent.
    fn streams(&self, after: Option<Item>) -> BoxFuture<'_, Result<Streams, Failure>>;
}
