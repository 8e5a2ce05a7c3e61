//! States that a log keeps beside the events.

use std::collections::BTreeSet;

use ringfence_core::{Current, SequencedEvent};
use serde_json::{Error, Value};

/// A state that a log keeps beside the events, so that a decision need not read all of them.
#[derive(Clone, Debug)]
pub struct KeptState {
    /// The name under which it is kept: of the slice, or of the document's snapshot.
    pub name: &'static str,
    /// The version of the fold, as it is stored. A state of another one is not read.
    pub version: u32,
    /// The types that it is folded from; with their versions, if these are part of what is stored.
    pub types: BTreeSet<String>,
    /// Whether it is in no event, so that it can't be folded again.
    pub is_rolling: bool,
    /// The line of code with which the next version begins.
    pub next_version: String,
    /// Whether it is folded from events like this one.
    pub reads: fn(&SequencedEvent) -> bool,
    /// Its JSON after each of these events, which it is folded from. It is given its name.
    pub fold: fn(&str, &[Current<'_>]) -> Result<Vec<Value>, Error>,
}
