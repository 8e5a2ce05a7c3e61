//! `ringfence project` as a process, on tables in memory and an API that answers as a test wants.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests fail by panicking")]

mod compacting;
mod exporting;
mod importing;
mod local;
mod offline;
mod online;
mod publishing;
mod pulling;
mod reading;
mod together;
mod world;
