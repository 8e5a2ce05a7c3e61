//! Slices, and the execution of their commands: read, fold, decide, append.

pub(crate) mod cache;
pub(crate) mod case;
pub(crate) mod check;
pub(crate) mod decision;
pub(crate) mod due;
pub(crate) mod handle;
pub(crate) mod on_log;
pub(crate) mod once;
pub(crate) mod record;
pub(crate) mod shapes;
pub(crate) mod slice;
