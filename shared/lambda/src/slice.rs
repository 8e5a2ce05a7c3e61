//! A slice as a Lambda.
//!
//! `fn main() -> ExitCode { ringfence::run::<PlaceOrder>() }` is a whole function, on any of the logs. It answers a
//! request of an API Gateway HTTP API, a direct invoke, and an EventBridge event that the slice reacts to.

mod answer;
mod function;
mod hosted;
mod invocation;
mod json;
mod serve;
mod telemetry;
#[cfg(test)]
mod tests;
mod unsettled;
mod wording;

use crate::{Issuers, Problem};
use ringfence_aws::Clock;
use ringfence_core::{Envelope, Slice, route_scopes};

pub use hosted::{Hosted, QueuedCommand};
pub use serve::{run, variables};
pub use wording::plain;

use crate::slice::invocation::{Invocation, Payload, Surroundings};

/// Parses a payload like the slice's function with these issuers. Returns its commands, each with its envelope, and
/// carries out nothing.
///
/// # Errors
/// The caller's answer, if the payload is refused.
pub fn read<S: Slice>(
    payload: &str,
    issuers: &Issuers,
    clock: &Clock,
) -> Result<Vec<(S, Envelope)>, Problem> {
    let given = Payload::of(payload).read(issuers, const { route_scopes::<S>() })?;
    Ok(match Invocation::of(given)? {
        Invocation::Command(command, surroundings) => {
            vec![(*command?, surroundings.envelope(S::NAME, clock))]
        }
        Invocation::Event(event, commands) => {
            let with_envelope =
                |(key, command)| (command, Surroundings::of_event(&event, S::NAME, key, clock));
            commands.into_iter().map(with_envelope).collect()
        }
        Invocation::Replay(_) => Vec::new(),
    })
}
