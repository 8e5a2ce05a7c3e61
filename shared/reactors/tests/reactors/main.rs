//! Reactors on an embedded DynamoDB, from events in the log through the index to a receiver.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests fail by panicking")]

extern crate ringfence_core as ringfence; // the derive macros name it so

mod costs;
mod flow;
mod lanes;
mod late;
mod parked;
mod world;
