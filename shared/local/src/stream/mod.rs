//! Event source mapping: a table's stream to a function, as Lambda's poller does it.

mod batches;
mod poller;

pub use self::{
    batches::{Batches, GivenUp, Next, Outcome, Reason},
    poller::Poller,
};
