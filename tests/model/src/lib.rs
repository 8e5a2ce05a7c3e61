//! The append protocol as an executable model, explored exhaustively.
//!
//! [`world`] has the vocabulary: boundaries, events, commands. [`protocol`] is the protocol as a table
//! of switches; [`environment`] is what the table, its indexes, its clocks and its network may do.
//! [`judge`] decides what becomes of one transaction, [`step`] what can happen next, [`explore`]
//! visits everything that can happen. [`catalogue`] lists the commands, [`runs`] the bounds,
//! [`mutants`] the protocols with one switch turned, each with the property that it breaks.
//!
//! [`repair`] is a model of its own, of how fences are mended beside writers.
//!
//! `docs/no-lost-update.md` has the argument that the model goes with.

pub mod catalogue;
pub mod environment;
pub mod explore;
mod follow;
pub mod judge;
pub mod mutants;
pub mod property;
pub mod protocol;
pub mod repair;
pub mod runs;
pub mod state;
pub mod step;
pub mod world;
