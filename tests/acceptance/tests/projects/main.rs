//! The context `projects` on the real log: what its commands cost, and what happens when agents race.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests fail by panicking")]

mod costs;
mod races;
mod stack;
