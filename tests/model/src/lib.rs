//! The append protocol as an executable model, explored exhaustively.
//!
//! [`world`] has the vocabulary: partitions, fences, events, commands. [`protocol`] is the protocol as a table of
//! switches; [`environment`] is what the table, its indexes, its clocks and its network may do. `judge` decides what
//! becomes of one transaction, `step` what can happen next, with `read` for what a decision learns, `mint` for the
//! times of events, `reject` for answers that append nothing and `once` for commands with keys. `text` says it in
//! words, `explore` visits everything that can happen. [`catalogue`] lists the commands, [`runs`] the bounds,
//! [`mutants`] the protocols with one switch turned, each with the property that it breaks.
//!
//! [`feed`] and [`repair`] are models of their own: of how events come into the index, and of how
//! fences are mended beside writers.
//!
//! `docs/no-lost-update.md` has the argument that the models go with.

pub mod catalogue;
pub mod environment;
mod explore;
pub mod feed;
mod judge;
mod mint;
pub mod mutants;
mod once;
pub mod property;
pub mod protocol;
mod read;
mod reject;
pub mod repair;
pub mod runs;
mod state;
mod step;
mod text;
pub mod world;
