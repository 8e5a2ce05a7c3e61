//! Shapes, and what the gates say of their changes.

mod gates;
mod properties;
mod reactions;
mod stacks;
