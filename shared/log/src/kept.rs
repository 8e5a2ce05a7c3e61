//! States that a log keeps beside the events.

use std::collections::BTreeSet;

use ringfence_core::{Current, SequencedEvent};
use serde_json::{Error, Value};

/// A state that a log stores beside the events, so that a decision need not read all of them.
#[derive(Clone, Debug)]
pub struct KeptState {
    /// The name under which it is stored: the slice, or the document's snapshot.
    pub name: &'static str,
    /// The stored version of the fold. A state of another version is not read.
    pub version: u32,
    /// The types of its events. They include their versions if the log stores these with the state.
    pub types: BTreeSet<String>,
    /// Whether events lack it, so that it can't be folded again.
    pub is_rolling: bool,
    /// The line of code that begins the next version.
    pub next_version: String,
    /// Whether it is folded from events like this one.
    pub reads: fn(&SequencedEvent) -> bool,
    /// Its JSON after each of the given events. The first argument is its name.
    pub fold: fn(&str, &[Current<'_>]) -> Result<Vec<Value>, Error>,
}
