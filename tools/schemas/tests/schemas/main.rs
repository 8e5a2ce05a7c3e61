//! Shapes, and the gate's findings about their changes.

extern crate ringfence_core as ringfence; // the derive macros name it so

mod commands;
mod folds;
mod gates;
mod properties;
mod reactions;
mod stacks;
mod unseen;
