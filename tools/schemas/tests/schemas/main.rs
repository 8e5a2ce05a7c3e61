//! Shapes, and what the gates say of their changes.

mod folds;
mod gates;
mod properties;
mod reactions;
mod stacks;
mod unseen;
