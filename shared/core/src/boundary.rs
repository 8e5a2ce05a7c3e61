//! The place of an event, the reads of a decision, and what was seen: catalogs, queries, plans and effects.

pub(crate) mod catalog;
pub(crate) mod catalogs;
pub(crate) mod effect;
pub(crate) mod filing;
pub(crate) mod keys;
pub(crate) mod plan;
pub(crate) mod query;
pub(crate) mod reading;
pub(crate) mod seen;
pub(crate) mod snapshot;
