//! The lists of a stack.
//!
//! A context lists its slices, its views and its other functions, and a stack lists its contexts ([`Members`]). Nothing
//! else lists them. A [`Visitor`] walks over the lists and gets the types themselves, so it can do whatever a slice can
//! do. [`Stack`] is the result of a walk, in plain values.
#![warn(missing_docs)] // public items say what they are, in which unit, and how they fail

#[cfg(test)]
extern crate ringfence_core as ringfence; // the derive macros use this name

mod catalog;
mod images;
mod in_memory;
mod stack;
#[cfg(test)]
mod tests;
mod visit;

pub use catalog::catalog;
pub use images::{Images, ImagesError};
pub use in_memory::check_cases_in_memory;
pub use stack::{ContextInfo, FunctionInfo, ReactorInfo, SliceInfo, Stack};
pub use visit::{Function, MemberList, Members, Visitor};
