//! The views and ready edges, over histories that the decisions of the slices make.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests fail by panicking")]

mod orders;
mod states;
mod together;
mod world;
