//! The parts of every DynamoDB adapter, without events: the clock, the client, the table and its requests, the classes
//! of errors, retry, the item codec, sizes and units.
#![warn(missing_docs)] // public items say what they are, in which unit, and how they fail

mod client;
mod clock;
mod codec;
mod connector;
mod error;
pub mod http;
mod intent;
mod item;
mod layout;
mod meter;
#[cfg(any(test, feature = "test-util"))]
mod random;
mod retry;
mod send;
mod service;
mod size;
mod table;
mod trust;
#[cfg(any(test, feature = "test-util"))]
pub mod wire;

pub use client::{client_from_env, client_of, open, sdk_config, sdk_config_of};
#[cfg(any(test, feature = "test-util"))]
pub use clock::seed_thread;
pub use clock::{Began, Clock, TIME_WANTED, ms_of_rfc3339};
pub use codec::{CodecError, LEVELS_MAX, ValueProblem, from_attribute, to_attribute};
pub use error::{Failure, Reason};
pub use intent::{Action, Intent};
pub use item::Item;
pub use layout::{IndexLayout, Key, TableLayout, number_key, text_key};
pub use meter::{Meter, MeteredVault, Units, Usage};
#[cfg(any(test, feature = "test-util"))]
pub use random::Random;
pub use retry::{ATTEMPTS_MAX, Attempts, GaveUp, Judged, Retry, Sends};
pub use service::AwsService;
pub use size::{attribute_bytes, item_bytes, read_units, transact_write_units, write_units};
pub use table::{BATCH_KEYS_MAX, Table};
pub use trust::{BundleError, CA_BUNDLE, Trust};
