//! publish-events: sends new events from the logs' streams to the EventTopic.
//!
//! The bus delivers each entry at least once, in any order. Consumers deduplicate by an entry's `id` and order the
//! entries of a partition by their `slot`. A record that can never be published goes to the dead-letter queue with the
//! cause. It counts as done, so it does not hold up the others. If records may succeed later, the function reports
//! their lowest sequence number, and Lambda delivers again from there.

mod aws;
mod entry;
mod publish_events;
mod publisher;

pub use aws::Topic;
pub use entry::{ENTRY_BYTES_MAX, REPLAY_SOURCE_PREFIX, TopicEntry, TopicEntryError};
pub use publish_events::PublishEvents;
pub use publisher::{
    Bus, CALL_BYTES_MAX, CALL_ENTRIES_MAX, PublishReport, Publisher, Unreachable, Verdict, put,
};
