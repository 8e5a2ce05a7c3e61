//! The tables of a stack, as they follow from the catalog of its events.
//!
//! Each log, the index and the views say what their own table has to be ([`ringfence_aws::TableLayout`]). Everything
//! else about tables is made of these layouts: [`document`] prints them for CloudFormation, Terraform and CDK,
//! [`written`] is the template of a stack, and
//! [`compare`] says what a table lacks that is there.
//!
//! *Invariant: what is written into a template has the layouts that logs, index and views ask for.* The checks of each stack
//! compare them.
#![warn(missing_docs)] // public items say what they are, in which unit, and how they fail

#[cfg(test)]
extern crate ringfence_core as ringfence; // the derive macros name it so

mod compare;
pub mod document;
mod needed;
pub mod written;

pub use compare::{TableDefect, compare, keys_of, properties_of};
pub use needed::{StackTable, legacy_table, tables_of};
