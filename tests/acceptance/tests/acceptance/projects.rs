//! The context `projects` on the real log: what its commands cost, and what happens when agents race.

mod costs;
mod races;
mod stack;
