//! Reactors on an embedded DynamoDB, from events in the log through the index to a far side.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests fail by panicking")]

mod costs;
mod lanes;
mod late;
mod parked;
mod world;
