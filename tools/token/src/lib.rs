//! Tokens: those of a stack on one machine, what an HTTP API of API Gateway checks of a token, and a table of good and
//! bad ones. It does no I/O and takes no clock.
#![warn(missing_docs)] // public items say what they are, in which unit, and how they fail

mod cases;
mod check;
mod key;
#[cfg(test)]
mod tests;

pub use cases::{TokenCase, token_cases};
pub use check::{HEADERS_BYTES_MAX, Refused, TokenRules, claim_texts};
pub use key::{AUDIENCE, ISSUER, JWKS_PATH, TokenKey};
