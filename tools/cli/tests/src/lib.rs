//! Programs that tests start: the `ringfence` command on a small stack, and a function that echoes.
//!
//! They are binaries of this package. So cargo builds them whenever it builds the tests here, and a test never starts
//! an old one.
#![expect(clippy::duplicate_mod, reason = "the builds of `shelf` have a file in common")]

extern crate ringfence_core as ringfence; // the derive macros name it so

pub mod shelf;
pub mod shop;
