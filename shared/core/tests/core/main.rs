//! The core through its public names: one test binary.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests fail by panicking")]

mod decide;
mod derive;
mod filtered;
mod items;
mod plan;
mod pointers;
mod queries;
mod shop;
mod written;
