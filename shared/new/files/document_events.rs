//! The events and the value types.

use serde::{Deserialize, Serialize};

/// What happens to a document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all_fields = "camelCase")]
pub enum __Events__ {
    /// The state after all events; an unfold, never an event.
    __Context__Snapshot(__Context__State),
}

/// What the events of a document amount to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct __Context__State {}
