//! Accounts with money in them, on all three logs: the code that a team writes for each, and its costs.
//!
//! [`account`] has the rules, which are the same on every log. [`dcb`], [`aggregate`] and [`document`] are a
//! context each, with one file a slice. docs/which-log.md shows the code, and the lines in which it differs.

pub mod account;
pub mod aggregate;
pub mod dcb;
#[expect(clippy::duplicate_mod, reason = "the slices are those of the aggregate log")]
pub mod document;
