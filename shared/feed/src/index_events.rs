//! index-events: writes new events from the logs' streams into the index.
//!
//! A record shows events of a partition; its key tells the log. If they are the next ones of the partition, they are
//! indexed as they are. Otherwise the partition's table is read. Each partition succeeds or fails alone. A temporary
//! failure is retried as long as there is time. Then the function reports the lowest sequence number of the partition's
//! records, and Lambda delivers again from there. A partition that needs a person becomes a dead letter with its cause,
//! and counts as done.

mod batch;
mod service;

pub use batch::{Indexing, IndexingReport, index};
pub use service::IndexEvents;
