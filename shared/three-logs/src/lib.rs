//! Accounts with money in them, on all three logs: what a team writes for each, and what it gets.
//!
//! [`account`] has the rules, which know no log; the other modules each put them on one. A withdrawal
//! concerns one account and is the same on all; a transfer concerns two, and the document log has no
//! decision for it. docs/which-log.md quotes these modules.

pub mod account;
pub mod aggregate;
pub mod dcb;
pub mod document;
