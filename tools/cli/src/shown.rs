//! The version in which a command shows a payload: the newest of its type, or the stored one.

use std::ops::Deref;

use clap::{ArgAction, Args};
use ringfence_core::SequencedEvent;

/// The flag of every command that shows payloads. `DEFAULT` is its value if it is not given.
#[derive(Args, Clone, Copy)]
pub(crate) struct Newest<const DEFAULT: bool> {
    /// Upcasts payloads to the newest version of their type. With `--newest=false` they are as they are stored.
    #[arg(
        long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true,
        default_value = if DEFAULT { "true" } else { "false" }, default_missing_value = "true"
    )]
    pub(crate) newest: bool,
}

/// An event as a command or a page shows it.
#[derive(Clone, Debug)]
pub struct ShownEvent {
    /// The event, with the version of the shown payload.
    pub event: SequencedEvent,
    /// The version that is stored, if the payload was upcast.
    pub stored: Option<u32>,
}

impl ShownEvent {
    /// The version of the payload, to be written after the type. It is empty for version 1.
    #[must_use]
    pub fn version(&self) -> String {
        match (self.stored, self.event.version) {
            (Some(stored), version) => format!(" v{version} (stored as v{stored})"),
            (None, 1) => String::new(),
            (None, version) => format!(" v{version}"),
        }
    }
}

/// An event as it is stored.
impl From<SequencedEvent> for ShownEvent {
    fn from(event: SequencedEvent) -> Self {
        Self { event, stored: None }
    }
}

impl Deref for ShownEvent {
    type Target = SequencedEvent;

    fn deref(&self) -> &SequencedEvent {
        &self.event
    }
}
