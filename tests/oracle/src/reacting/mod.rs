//! Lanes of reactors and of ordered automations, the queue of commands, and dues.
//!
//! A schedule has concurrent steps, which begin at any time: events, runs, commands, sweeps, persons. The faults of
//! their requests follow from the seed, and any step may crash between two requests. Then the faults stop, everything
//! runs to rest, and the effects outside, the log and the answers are compared with a serial run.

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
