//! The interface of a log, and the log in memory.

pub(crate) mod event_log;
pub(crate) mod memory;
pub mod storable;
pub(crate) mod vault;
