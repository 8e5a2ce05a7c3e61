//! What an application writes, and what its events, tags and commands are.

pub(crate) mod boundary;
pub(crate) mod command;
pub(crate) mod current;
pub(crate) mod downcast;
pub(crate) mod event;
mod invalid;
pub(crate) mod kind;
pub(crate) mod lane;
pub(crate) mod mail;
pub(crate) mod metadata;
pub(crate) mod origin;
pub mod personal;
pub(crate) mod place;
pub(crate) mod principal;
pub(crate) mod rejection;
pub(crate) mod state;
pub(crate) mod subjects;
pub(crate) mod tag;
pub(crate) mod trace;
pub(crate) mod upcast;
pub(crate) mod value;
