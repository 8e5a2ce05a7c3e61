//! Programs that tests start: the `ringfence` command on a small stack, and a function that echoes.
//!
//! They are binaries of this package. So cargo builds them whenever it builds the tests here, and a test never starts
//! an old one.

pub mod shop;
