//! The DCB event log on DynamoDB: one table, with slots in partitions, and fences for all other boundaries.
//!
//! The events of a partition are numbered without gaps, and each put requires that its slot is free. A decision that
//! has read a partition up to slot m has seen everything if slot m + 1 is free: the next slot is the partition's
//! fence. For every other boundary, the fence is an item. It counts the boundary's events, in the transactions that
//! write them. Equal counts mean that everything was seen. Neither kind depends on clocks, on the consistency of the
//! reads or on the order of arrival, because events are never deleted.
//!
//! A program creates the table from the catalog of its events:
//!
//! ```no_run
//! use ringfence_core::Catalog;
//! use ringfence_dcb_log::{DcbLog, table_layout};
//! use ringfence_aws::{Clock, client_from_env};
//!
//! async fn make(catalog: Catalog) -> Result<DcbLog, Box<dyn std::error::Error>> {
//!     let client = client_from_env()?;
//!     table_layout(&catalog).create(&client, "events").await?;
//!     Ok(DcbLog::new(client, "events", catalog, Clock::system()))
//! }
//! ```
//!
//! Architecture invariant: only the modules `item`, `fence`, `compare`, `copies`, `opening`, `record` and `snapshot`
//! name the attributes of the table's items.
#![warn(missing_docs)] // public items say what they are, in which unit, and how they fail

#[cfg(test)]
extern crate ringfence_core as ringfence; // the derive macros name it so

mod append;
mod compare;
mod copied;
mod copies;
mod dry_run;
mod event_log;
mod fence;
mod gaps;
mod get;
mod image;
mod import;
mod item;
mod layout;
mod log;
mod mend;
mod opening;
mod outcome;
mod partition;
mod query;
mod read;
mod record;
mod report;
mod restore;
mod scan;
mod snapshot;
mod source;
mod standing;
mod transaction;
mod unchanged;
mod unindexed;
mod verify;

/// The names of the table's attributes and indexes.
pub mod attributes {
    pub use crate::item::{
        ANNOUNCED, ANNOUNCER, APPEND_ID, AT, COMPOSITE_INDEX, CONTEXT, COPIES, COUNT, DATA, EVENT,
        EVENT_ID, HEAD, ID, INDEX_OF, OPEN, PARTITION, POSITION, REPAIRED, REST, SINCE, SLOT, TAGS,
        count_name, tag_index,
    };
    pub use crate::record::EXPIRES_AT;
}

pub use compare::{Difference, FenceDefect};
pub use image::{ImageError, event_of_image};
pub use import::Imported;
pub use layout::table_layout;
pub use log::DcbLog;
pub use report::{DcbReport, VerifyOptions, VerifyStage};
pub use source::Dcb;
pub use source::SOURCE;
pub use standing::BoundaryStanding;
