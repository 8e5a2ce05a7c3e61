//! index-events: writes new events from the logs' streams into the index.
//!
//! A record shows events of a partition. Those that are the next ones of their partition are indexed as they
//! are; otherwise the partition's table is read. The key tells the log. Each partition succeeds or fails on its own. A partition
//! that may succeed later is retried as long as there is time. Then the lowest sequence number of its records
//! is reported, and Lambda delivers again from there. A partition that waits for a person is kept in the
//! dead-letter queue with its cause, and counts as done.

mod batch;
mod service;

pub use batch::{Indexing, IndexingReport, index};
pub use service::IndexEvents;
