//! Accounts with money in them, on all three logs: the code that a team writes for each, and its costs.
//!
//! [`account`] has the events and the rules, which are the same on every log. [`dcb`], [`aggregate`] and [`document`]
//! are one context each, and the files of `slices` are the slices of all. docs/which-log.md says how many lines of the
//! contexts differ.

#![expect(clippy::duplicate_mod, reason = "the slices are the same on each log")]

extern crate ringfence_core as ringfence; // the derive macros use this name

pub mod account;
pub mod aggregate;
pub mod dcb;
pub mod document;
