//! The rules of the repository that a program can check.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests fail by panicking")]

mod cargo;
mod declarations;
mod template;
mod tidy;
