//! For the tests of a stack.
//!
//! [`Cases`] runs every case of every slice in memory and on an embedded DynamoDB with the tables of the
//! template, and records the requests. [`Dynamo`] is that DynamoDB alone.
#![warn(missing_docs)] // public items say what they are, in which unit, and how they fail

mod cases;
mod dynamo;
mod payloads;

pub use cases::{Cases, Ran};
pub use dynamo::Dynamo;
pub use payloads::check_bad_input;
