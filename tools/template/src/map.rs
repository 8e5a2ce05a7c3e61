//! The map of a stack: which commands write which events, who reacts to them, and which views show them.
//!
//! It follows from the list of the stack. [`Map`] is the map in plain values, which has smaller maps of one context or
//! one slice. [`Svg`] draws it. [`stale_map_files`] compares the files `docs/map.md`, in Mermaid, and `docs/map.svg`.

mod draw;
mod lay_out;
mod mermaid;
mod model;
mod page;
mod part;
#[cfg(test)]
mod tests;

pub use draw::{MAP_STYLE, Note, Svg};
pub use mermaid::{event_modeling, flowchart};
pub use model::{Edge, EdgeKind, Map, MapBoundary, Node, NodeKind};
pub use page::{picture, stale_map_files};
