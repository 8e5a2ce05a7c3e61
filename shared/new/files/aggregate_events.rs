//! The events and the value types.

use serde::{Deserialize, Serialize};

/// What happens to an aggregate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "payload", rename_all_fields = "camelCase")]
pub enum __Events__ {}

/// What the events of an aggregate amount to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct __Context__State {}
