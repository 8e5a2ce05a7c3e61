//! The promises of every log; the same cases on all three logs, in memory and on an embedded DynamoDB; the costs of the
//! slices; and the page that shows code and costs.

#![expect(clippy::duplicate_mod, reason = "the promises are the same on each log")]

extern crate ringfence_core as ringfence; // the derive macros use this name

mod costs;
mod nested;
mod page;
mod personal;
mod promises;
mod same;
mod stack;
