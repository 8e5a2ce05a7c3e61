//! What reacts: lanes of reactors and of ordered automations, the queue of commands, and dues.
//!
//! A schedule has steps, which begin at any time and go on beside each other: events, runs, commands, sweeps, persons. What
//! happens to their requests follows from the seed, and any of them may crash between two requests. Then the faults
//! stop, everything runs to rest, and what was done outside, the log and the answers are compared with a serial run.

mod dues;
mod far;
mod lanes;
mod line;
mod queue;
mod storm;
mod tills;

pub(crate) use dues::STEPS as DUES_STEPS;
pub(crate) use lanes::STEPS as LANES_STEPS;
pub(crate) use queue::STEPS as QUEUE_STEPS;

pub(crate) use dues::run as dues;
pub(crate) use lanes::run as lanes;
pub(crate) use queue::run as queue;
