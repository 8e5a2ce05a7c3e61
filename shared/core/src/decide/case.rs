//! Cases as data: the facts in a log, a command, and the result.

use std::fmt;
use std::panic::Location;

use serde::Serialize;
use serde_json::Value;

use crate::{CommandContext, EventError, NewEvent, Rejected, Rejection, Writes};

/// An event that is in the log before a command.
#[derive(Clone, Debug)]
pub(crate) struct Fact {
    /// The time of the event, in milliseconds since 1970.
    pub(crate) at_ms: u64,
    /// The event. Its tags give its place.
    pub(crate) event: NewEvent,
}

/// Where a case is written, and its name, if it has one. A failing case begins with both.
#[derive(Clone, Copy)]
pub(crate) struct At {
    name: Option<&'static str>,
    place: &'static Location<'static>,
}

impl At {
    /// The place of the caller.
    #[track_caller]
    pub(crate) fn here(name: Option<&'static str>) -> Self {
        Self { name, place: Location::caller() }
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name {
            Some(name) => write!(f, "case {name:?} at {}", self.place),
            None => write!(f, "case at {}", self.place),
        }
    }
}

/// Facts, a command, and the expected result.
pub struct Case<S> {
    pub(crate) given: Vec<Fact>,
    pub(crate) command: S,
    pub(crate) context: CommandContext,
    pub(crate) then: Came,
    pub(crate) at: At,
}

impl<S> Case<S> {
    /// The command under test.
    pub fn command(&self) -> &S {
        &self.command
    }

    /// The context of the command.
    pub fn context(&self) -> &CommandContext {
        &self.context
    }

    /// The case's name, if it has one, and where it is written.
    pub fn at(&self) -> impl fmt::Display {
        self.at
    }

    /// The events of the case: the facts, then the expected events.
    pub fn events(&self) -> impl Iterator<Item = &NewEvent> {
        self.given.iter().map(|fact| &fact.event).chain(&self.then.events)
    }

    /// The code of the rejection that the case expects.
    pub fn code(&self) -> Option<&str> {
        self.then.rejection.as_ref()?["code"].as_str()
    }
}

/// Facts, and the commands that are due some time after them.
pub struct DueCase<D> {
    pub(crate) given: Vec<Fact>,
    pub(crate) now_ms: u64,
    pub(crate) commands: Vec<D>,
    pub(crate) at: At,
}

impl<D> DueCase<D> {
    /// The events of the case.
    pub fn events(&self) -> impl Iterator<Item = &NewEvent> {
        self.given.iter().map(|fact| &fact.event)
    }
}

/// The result of a command, as JSON.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Came {
    /// Its rejection, if it was rejected.
    pub(crate) rejection: Option<Value>,
    /// The new events in the log.
    pub(crate) events: Vec<NewEvent>,
}

impl Came {
    /// Events without a rejection.
    pub(crate) fn accepted(events: Vec<NewEvent>) -> Self {
        Self { rejection: None, events }
    }

    /// A rejection and the events that it left.
    pub(crate) fn rejected(rejection: &impl Rejection, events: Vec<NewEvent>) -> Self {
        Self { rejection: Some(Rejected::of(rejection).rejection), events }
    }
}

pub(crate) fn written(events: &[impl Writes]) -> Result<Vec<NewEvent>, EventError> {
    events.iter().map(Writes::to_event).collect()
}
