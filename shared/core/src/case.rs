//! Cases as data: what is in a log, a command, and what comes of it.

use std::panic::Location;

use serde::Serialize;
use serde_json::{Value, json};

use crate::{CommandContext, EventError, NewEvent, Rejected, Rejection, Writes};

/// An event that is in the log before a command.
#[derive(Clone, Debug)]
pub(crate) struct Fact {
    /// When it became one, in milliseconds since 1970.
    pub(crate) at_ms: u64,
    /// The event. Its tags say where it is.
    pub(crate) event: NewEvent,
}

/// Facts, a command, and what follows.
pub struct Case<S> {
    pub(crate) given: Vec<Fact>,
    pub(crate) command: S,
    pub(crate) context: CommandContext,
    pub(crate) then: Came,
    pub(crate) at: &'static Location<'static>,
}

impl<S> Case<S> {
    /// The command under test.
    pub fn command(&self) -> &S {
        &self.command
    }

    /// What the command may know besides the facts.
    pub fn context(&self) -> &CommandContext {
        &self.context
    }
}

/// What came of a command, as JSON.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Came {
    /// Why it was rejected, if it was.
    pub(crate) rejection: Option<Value>,
    /// The events that are now in the log.
    pub(crate) events: Vec<Value>,
}

impl Came {
    /// Events, and no rejection.
    pub(crate) fn accepted(events: Vec<Value>) -> Self {
        Self { rejection: None, events }
    }

    /// A rejection and the events that it left.
    pub(crate) fn rejected(rejection: &impl Rejection, events: Vec<Value>) -> Self {
        Self { rejection: Some(Rejected::of(rejection).rejection), events }
    }
}

/// Events as JSON, as [`Came`] has them.
pub(crate) fn event_json(event: &NewEvent) -> Value {
    let NewEvent { event_type, tags, data } = event;
    json!({ "type": event_type, "tags": tags, "data": data })
}

pub(crate) fn written(events: &[impl Writes]) -> Result<Vec<Value>, EventError> {
    events.iter().map(|event| Ok(event_json(&event.to_event()?))).collect()
}
