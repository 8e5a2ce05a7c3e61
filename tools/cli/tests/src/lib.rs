//! Programs that tests start: the `ringfence` command on a small stack, and a function that echoes.
//!
//! They are binaries of this package, so cargo builds them with the tests here, and a test never starts an old one.
#![expect(clippy::duplicate_mod, reason = "the builds of `shelf` have a file in common")]

extern crate ringfence_core as ringfence; // the derive macros use this name

pub mod shelf;
pub mod shop;
