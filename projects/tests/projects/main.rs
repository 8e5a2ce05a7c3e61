//! The rules of every stack; and on the real log the costs of commands, races of agents, and the functions that are not
//! slices.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests fail by panicking")]

mod costs;
mod functions;
mod races;
mod stack;

ringfence_testing::checks!(::stack::SharedProjects);
