//! The promises on the DCB log.

type Tested = ringfence_dcb_log::Dcb;

#[path = "suite.rs"]
mod suite;
#[path = "world.rs"]
mod world;
