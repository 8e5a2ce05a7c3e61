//! The append protocol as an executable model, explored exhaustively.
//!
//! [`world`] has the vocabulary: partitions, fences, events, commands. [`protocol`] is the protocol as a table of
//! switches, and [`environment`] the possible behaviour of the table, its indexes, its clocks and its network. `judge`
//! decides the fate of one transaction, and `step` lists what can happen next, with `read` for the knowledge of a
//! decision, `mint` for the times of events, `reject` for answers that append nothing and `once` for commands with
//! keys. `text` has the words, and `explore` visits everything that can happen. [`catalogue`] lists the commands,
//! [`runs`] the bounds, and [`mutants`] the protocols with one switch turned, each with the property that it breaks.
//!
//! [`copies`], [`feed`] and [`repair`] are separate models: of the copies of a fence, of the way of events into the
//! index, and of the repair of fences beside writers.
//!
//! `docs/no-lost-update.md` has the argument for the models.

pub mod catalogue;
pub mod copies;
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
