//! The promises on the document log.

type Tested = ringfence_document_log::Documents<world::Shelf>;

#[path = "suite.rs"]
mod suite;
#[path = "world.rs"]
mod world;
