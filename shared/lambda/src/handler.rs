//! What a function does with a command, whichever log its slice is on.

use std::error::Error;

use ringfence::{Envelope, Handled, Slice, StoreError};
use serde::Serialize;

use crate::Problem;

/// A slice with the log that it runs on. `dcb`, `aggregate` and `document` have one each; all else of
/// an invocation is the same for them.
pub(crate) trait Handler {
    /// The slice.
    type Slice: Slice;
    /// What places an event in the log.
    type Place: Serialize;
    /// Why a command is not settled.
    type Error: Explain;

    /// Settles one command. A refusal is an outcome.
    fn handle(
        &self,
        command: &Self::Slice,
        envelope: &Envelope,
    ) -> impl Future<Output = Result<Handled<Self::Place>, Self::Error>>;
}

/// An error of which the caller of a function learns something, and its log all.
pub(crate) trait Explain: Error + From<StoreError> + 'static {
    /// What the caller learns; `request_id` leads to the rest.
    fn problem(&self, request_id: &str) -> Problem;

    /// How often the command was tried.
    fn attempts(&self) -> u32;
}
