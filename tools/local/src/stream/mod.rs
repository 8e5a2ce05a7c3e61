//! Event source mappings: from a table's stream to a function, like Lambda's poller.

mod batches;
mod poller;

pub use self::{
    batches::{Batches, GiveUpReason, GivenUp, InvocationOutcome, Next},
    poller::Poller,
};
