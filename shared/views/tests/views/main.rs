//! Views on an embedded DynamoDB, from events in the log through the index to rows and answers.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests fail by panicking")]

extern crate ringfence_core as ringfence; // the derive macros name it so

mod answers;
mod callers;
mod deliveries;
mod due;
mod lanes;
mod late;
mod limits;
mod notes;
mod once;
mod parked;
mod readers;
mod rebuilds;
mod rounds;
mod shards;
mod together;
mod unread;
mod versions;
mod warm;
mod weather;
mod world;
