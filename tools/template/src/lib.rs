//! The tables of a stack, as they follow from the catalog of its events.
//!
//! Each log, the index and the views say what their own table has to be ([`ringfence_aws::TableLayout`]). Everything
//! else about tables is made of these layouts: [`document`] prints them for CloudFormation, Terraform and CDK,
//! [`template`] compares a template with them and writes the indexes that it lacks, and [`compare`] says what a table lacks
//! that is there.
//!
//! *Invariant: no layout is written down here.*
#![warn(missing_docs)] // public items say what they are, in which unit, and how they fail

#[cfg(test)]
extern crate ringfence_core as ringfence; // the derive macros name it so

mod compare;
pub mod document;
mod needed;
pub mod template;

pub use compare::{TableDefect, compare, keys_of, properties_of};
pub use needed::{StackTable, legacy_table, tables_of};
