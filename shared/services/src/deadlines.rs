//! Deadlines: sends the commands of a stack whose time has come.
//!
//! Deadlines follow from events ([`Due`](ringfence_core::Due)), and project-views keeps them as rows. The function
//! fire-deadlines lists the rows whose time has come once a minute, and carries out their commands in its own process.
//! Nothing has to be cancelled: an old row leads to a command whose decision finds nothing to do.

mod fire_deadlines;
mod list;
mod sweep;

pub use fire_deadlines::FireDeadlines;
pub use list::Deadlines;
pub use sweep::{Sweep, Swept};
