//! Tests of the core through its public names: one test binary.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests fail by panicking")]

extern crate ringfence_core as ringfence; // the derive macros use this name

mod canary;
mod compile_errors;
mod decide;
mod declared;
mod derive;
mod dues;
mod effect;
mod failures;
mod filtered;
mod items;
mod lanes;
mod leaves;
mod memory;
mod once;
mod orders;
mod personal;
mod plan;
mod pointers;
mod principals;
mod queries;
mod seen;
mod shop;
mod snapshots;
mod state;
mod versions;
mod written;
