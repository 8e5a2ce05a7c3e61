//! The lock of a context: what was released of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What was released of a context: the content of a committed file. A log keeps its events for ever, so a type of
/// events that was released stays.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lock {
    /// The types of events, by their names.
    pub events: BTreeMap<String, Released>,
}

/// What was released of a type of events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Released {}

impl Lock {
    /// The folder of the locks, in the repository of a stack.
    pub const FOLDER: &'static str = "schemas";

    /// The file of the lock of a context.
    #[must_use]
    pub fn path(context: &str) -> String {
        format!("{}/{context}.json", Self::FOLDER)
    }

    /// A lock that has these types of events.
    pub fn of(event_types: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let released = |name: _| (Into::into(name), Released {});
        Self { events: event_types.into_iter().map(released).collect() }
    }
}
