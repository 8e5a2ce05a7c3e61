//! publish-events: sends new events from the logs' streams to the EventTopic.
//!
//! The bus promises at least once and no order; an entry's `id` deduplicates, its `position`
//! orders. What can never be published goes to the dead-letter queue with its cause and counts as
//! done, so that one poison record holds up nobody; what may succeed later is reported by the
//! lowest sequence number, and Lambda delivers from there again.
#![warn(missing_docs)] // public items say what they are, in which unit, and how they fail

mod aws;
mod entry;
mod publisher;
mod run;

pub use aws::Topic;
pub use entry::{ENTRY_BYTES_MAX, Entry, EntryError, REPLAY_SOURCE_PREFIX};
pub use publisher::{
    Bus, CALL_BYTES_MAX, CALL_ENTRIES_MAX, Publisher, Report, Unreachable, Verdict,
};
pub use run::{run, variables};
