//! What a person runs: the command line, the stack on one machine, and the walk through the shop.

pub mod project;
mod walk;

pub use walk::walk;
