//! The feed: every event once, in the order of its partition, without gaps, for ever.
//!
//! A stream of a table keeps its records for a day, delivers them at least once and promises order per
//! item only. So a record is a doorbell, and the table is the truth. The [`Indexer`] reads the new events
//! of a partition of one of the [`Logs`], validated by its fence or by its versions. It appends them to
//! the index in one transaction with the partition's progress. An [`Index`] is read from any
//! [`Checkpoint`]; [`Checkpoints`] keep those of named readers.
//!
//! The index is a list of epochs of pages of events. One item, the tip, says where the next page begins.
//! Every append moves the tip and the progress of each of the page's partitions, under the condition that
//! they are as they were read. So if two indexers write at once, one fails and goes on from what the other
//! has done, and a crash or a lost answer leaves all of a page or nothing.
//!
//! Architecture invariant: only the module `item` names the attributes of the index. What an entry
//! holds is the item of the event's own log; the module `entry` tells which.
#![warn(missing_docs)] // public items say what they are, in which unit, and how they fail

mod aggregates;
mod checkpoint;
mod checkpoints;
mod documents;
mod entry;
mod error;
mod filter;
mod group;
mod index;
pub mod index_events;
mod indexer;
mod item;
mod logs;
mod news;
mod partition;
mod read;
mod round;
mod verify;

pub use checkpoint::{
    Checkpoint, CheckpointError, EPOCH_ENTRIES_MAX, EpochEntries, EpochEntriesError,
};
pub use checkpoints::{Checkpoints, Reached, Reader};
pub use entry::{EntryError, events_of_image};
pub use error::{FeedError, IndexError, StreamError};
pub use filter::Filter;
pub use group::{GROUP_PARTITIONS_MAX, PAGE_BYTES_MAX};
pub use index::{Entry, Index, Until};
pub use indexer::{Indexer, Outcome};
pub use logs::Logs;
pub use partition::{Doorbell, Log, Partition};
pub use verify::{OnProgress, Report, Stage, VerifyError, Wrong};
