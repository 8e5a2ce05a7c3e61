//! The functions that serve a whole stack, one or two in each module.
#![warn(missing_docs)] // public items say what they are, in which unit, and how they fail

extern crate ringfence_core as ringfence; // the derive macros name it so

pub mod automations;
pub mod deadlines;
pub mod personal_data;
pub mod program;
pub mod project_views;
pub mod queue;
pub mod spans;
pub mod topic;
