//! The DCB event log on DynamoDB: one table, events filed under counted fences.
//!
//! An append is one transaction: it puts the events, adds to the counts of every fence they are
//! filed under, and requires that every count the decision depends on is still what it saw. Events
//! are never deleted and every event adds one to its fences in its own transaction, so equal
//! counts mean that the decision read exactly what is committed, whatever the clocks, the
//! consistency of the reads or the order of arrival.
//!
//! A program makes the table from the catalog of its events:
//!
//! ```no_run
//! use ringfence::{Catalog, StoreError};
//! use ringfence_dcb_log::{DcbLog, table_layout};
//! use ringfence_dynamo::{Clock, client_from_env};
//!
//! async fn make(catalog: Catalog) -> Result<DcbLog, StoreError> {
//!     let client = client_from_env().await;
//!     table_layout(&catalog).create(&client, "events").await?;
//!     Ok(DcbLog::new(client, "events", catalog, Clock::system()))
//! }
//! ```
//!
//! Architecture invariant: only the modules `item`, `fence`, `compare` and `record` name the
//! attributes of the table's items.
#![warn(missing_docs)] // public items say what they are, in which unit, and how they fail

mod append;
mod compare;
mod event_log;
mod fence;
mod get;
mod image;
mod import;
mod item;
mod layout;
mod limits;
mod log;
mod mend;
mod news;
mod outcome;
mod query;
mod read;
mod record;
mod report;
mod scan;
mod transaction;
mod unindexed;
mod verify;

pub use compare::{Difference, Wrong};
pub use image::{ImageError, event_of_image};
pub use import::Imported;
pub use layout::table_layout;
pub use limits::{EVENT_BYTES_MAX, TRANSACTION_ACTIONS_MAX, TRANSACTION_BYTES_MAX};
pub use log::DcbLog;
pub use news::{Counts, Mark, News, NewsError, Progress};
pub use record::COMMAND_KEPT_SECONDS;
pub use report::{Options, Report, Stage};
