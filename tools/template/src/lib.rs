//! The tables of a stack, which follow from the catalog of its events, and the template of a stack.
//!
//! Each log, the index and the views declare the layout of their own table ([`ringfence_aws::TableLayout`]). Everything
//! else about tables is made of these layouts: [`document`] prints them for CloudFormation, Terraform and CDK,
//! [`written`] writes the template of a stack, [`compare`] finds what an existing table lacks, and [`cost`] says what a
//! stack costs.
//!
//! *Invariant: the tables of a written template have the layouts that logs, index and views need.* The checks of each
//! stack compare them.
#![warn(missing_docs)] // public items say what they are, in which unit, and how they fail

#[cfg(test)]
extern crate ringfence_core as ringfence; // the derive macros name it so

mod compare;
pub mod cost;
pub mod document;
pub mod map;
mod needed;
pub mod written;

pub use compare::{TableDefect, compare, keys_of, properties_of};
pub use needed::{KEY_RECOVERY_DAYS, StackTable, legacy_table, tables_of};
