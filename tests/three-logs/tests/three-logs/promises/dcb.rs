//! The promises on the DCB log.

type Tested = ringfence::Dcb;

#[path = "suite.rs"]
mod suite;
#[path = "world.rs"]
mod world;
