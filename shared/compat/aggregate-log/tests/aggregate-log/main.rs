//! The log's promises, on an embedded DynamoDB and in memory.
#![allow(missing_docs, reason = "tests")]

extern crate ringfence_core as ringfence; // the derive macros name it so

mod cases;
mod castore;
mod commands;
mod contract;
mod costs;
mod customers;
mod faults;
mod import;
mod interchange;
mod lists;
mod once;
mod slices;
mod stack;
mod transfers;
mod twins;
mod verify;
mod versions;
