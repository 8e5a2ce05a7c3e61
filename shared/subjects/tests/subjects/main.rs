//! The vault on an embedded DynamoDB.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests fail by panicking")]

mod attacker;
mod costs;
mod forget;
mod kms;
mod rotate;
mod seal;
mod world;
