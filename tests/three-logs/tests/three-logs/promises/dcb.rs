//! The promises on the DCB log.

type Tested = ringfence_core::Dcb;

#[path = "suite.rs"]
mod suite;
#[path = "world.rs"]
mod world;
