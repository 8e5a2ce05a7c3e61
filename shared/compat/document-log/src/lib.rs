//! The document log: one document per stream, in the table layout of Equinox's DynamoDB store.
//!
//! The newest events of a stream are in its Tip, one item that every append rewrites, together with
//! snapshots ("unfolds") of the state after them. When the Tip grows too large, its events move to
//! a calf, an item that is never written again, in the transaction that appends the next ones. So
//! an append is one conditional write of one item, the state is one read of one item, and a stream
//! image of the Tip brings a stream's events in their order.
//!
//! Tables are shared with `@equinox-js/dynamo-store` and Equinox.DynamoStore: each reads the items of the other, and
//! exactly one of two writers at one version wins.
//!
//! Architecture invariant: only the module `batch` names the attributes of items, only `dynamo`
//! speaks to DynamoDB. The code above the trait [`Store`] is the same in memory and on DynamoDB.
#![warn(missing_docs)] // public items say what they are, in which unit, and how they fail

#[cfg(test)]
extern crate ringfence_core as ringfence; // the derive macros name it so

mod append;
pub mod attributes;
mod batch;
mod body;
mod cache;
mod category;
mod check;
mod codec;
mod context;
mod dry_run;
mod dynamo;
mod error;
mod image;
pub mod kit;
mod limits;
mod load;
mod log;
mod memory;
mod name;
mod named;
mod news;
mod on_log;
mod once;
mod personal;
mod prune;
mod read;
mod slice;
mod source;
mod store;
mod verify;
mod write;

pub use append::{StreamAppend, StreamAppended};
pub use batch::{Batch, Head, StoredEvent, TimelineEvent, Unfold};
pub use body::{Body, BodyError, DECOMPRESSED_BYTES_MAX, Encoding};
pub use cache::Cache;
pub use category::{Category, Decided, Load, Transacted};
pub use check::CategoryError;
pub use codec::Payload;
pub use context::{AccessStrategy, Document, Documents, Snapshot};
pub use dry_run::{DocumentDryRun, DocumentDryRunNotes};
pub use dynamo::{DynamoStore, table_layout};
pub use error::{DocumentError, ItemError, StreamConflict};
pub use image::Span;
pub use limits::{APPEND_BYTES_MAX, ITEM_BYTES_MAX, NESTING_MAX};
pub use log::DocumentLog;
pub use memory::MemoryStore;
pub use name::{StreamName, StreamNameError};
pub use prune::Pruned;
pub use ringfence_log::TipLimits;
pub use slice::{decode, handle};
pub use source::SOURCE;
pub use store::{Direction, ItemPage, ItemQuery, Store, Streams};
pub use verify::{StreamDefect, StreamReport};
pub use write::{Expect, TipChange, Write};
