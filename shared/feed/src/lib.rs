//! The feed: every event once, in the order of its partition, without gaps, for ever.
//!
//! A partition of any log is a stream whose events are numbered without gaps, so the number of the next event is known.
//! If the image in a stream record has that number, the [`Indexer`] takes it; otherwise it reads the partition's table.
//! An [`Index`] reads indexed events from any [`Checkpoint`] on. [`Checkpoints`] keep where named readers are.
//!
//! The index is a list of epochs of pages of events, written as a log is:
//!
//! 1. A page is put where the page before it ends, under the condition that nothing is there.
//! 2. Then the page is settled: the progress of each of its partitions is moved.
//! 3. Later pages are put meanwhile. Each says before which place all pages are settled.
//!
//! An indexer reads the last page, the pages before it that may not be settled, and then the progress of its
//! partitions. Together they show how far each partition is indexed. If its put succeeds, there was no later page, so
//! that was right, and no event is in the index twice. If the put fails, another indexer was first. Then it reads the
//! other one's page and goes on after it. If the other one crashed, the page is settled by whoever would go too far
//! ahead of it, or gets its events again. After a refused put the indexers put their pages in turns, by a lease, which
//! is only a hint.
//!
//! An entry is a [`Reference`]: it has no body. Readers fetch the bodies of the events that they want from the logs
//! ([`Sources`]). Only a document's event is kept with its body, because its log drops events.
//!
//! Architecture invariant: only the module `item` names the attributes of the index. Only `bodies` makes an event of a
//! reference.
#![warn(missing_docs)] // public items say what they are, in which unit, and how they fail

mod back;
mod backlog;
mod bodies;
mod checkpoint;
mod checkpoints;
mod end;
mod entry;
mod error;
mod filter;
mod index;
pub mod index_events;
mod indexer;
mod item;
mod layout;
mod lease;
mod mark;
mod news;
mod page;
mod partition;
mod read;
mod reference;
mod round;
mod settle;
mod tail;
mod together;
mod verify;

/// The names of the key attributes of the index table.
pub mod attributes {
    pub use crate::item::{I, P};
}

pub use bodies::{References, Wants};
pub use checkpoint::{
    Checkpoint, CheckpointError, EPOCH_ENTRIES_MAX, EpochEntries, EpochEntriesError,
};
pub use checkpoints::Checkpoints;
pub use entry::{Entry, FeedStep, KnownEntry};
pub use error::{FeedError, IndexError};
pub use filter::Filter;
pub use index::{Index, Until, held_bytes};
pub use indexer::{Indexed, Indexer};
pub use layout::table_layout;
pub use page::{GROUP_PARTITIONS_MAX, PAGE_BYTES_MAX};
pub use partition::{Notification, Partition};
pub use reference::Reference;
pub use ringfence_log::{EntryError, OpenSource, Sources, news::StreamError};
pub use together::{Reader, Together};
pub use verify::{CompareStage, IndexDefect, IndexReport, OnProgress, VerifyError};
