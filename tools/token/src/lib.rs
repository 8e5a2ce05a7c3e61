//! Tokens: makes those of a stack on one machine, checks tokens like an HTTP API of API Gateway, and has a table of
//! good and bad ones. It does no I/O and takes no clock.
//!
//! It is a crate because the command line makes tokens and the stack on one machine checks them, and neither of the two
//! crates depends on the other.
#![warn(missing_docs)] // public items say what they are, in which unit, and how they fail

mod cases;
mod check;
mod key;
#[cfg(test)]
mod tests;

pub use cases::{TokenCase, token_cases};
pub use check::{HEADERS_BYTES_MAX, Refused, TokenRules, claim_texts};
pub use key::{AUDIENCE, ISSUER, JWKS_PATH, TokenKey};
