//! What every stack has to keep, and, on the real log, what commands cost, what happens when agents race, and what the
//! functions do that are not slices.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests fail by panicking")]

mod costs;
mod functions;
mod races;
mod stack;

ringfence_testing::checks!(::stack::SharedProjects);
