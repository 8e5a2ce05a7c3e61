//! What a function does with a command, on any log.

use std::error::Error;

use ringfence::{BoundaryId, Envelope, Handled, Slice, StoreError};
use ringfence_function::Problem;

/// A slice with the log that it runs on. `dcb`, `aggregate` and `document` have one each; the rest of an
/// invocation is the same for all.
pub(crate) trait Handler {
    /// The slice.
    type Slice: Slice;
    /// Why a command was not carried out.
    type Error: Explain;

    /// Carries out one command. A rejection is an outcome too.
    fn handle(
        &self,
        command: &Self::Slice,
        envelope: &Envelope,
    ) -> impl Future<Output = Result<Handled, Self::Error>>;
}

/// An error: the caller sees a summary, the log the full cause.
pub(crate) trait Explain: Error + From<StoreError> + 'static {
    /// What the caller learns; `request_id` leads to the rest in the log.
    fn problem(&self, request_id: &str) -> Problem;

    /// How often the command was tried.
    fn attempts(&self) -> u32;

    /// The boundaries in which others appended during the last attempts, if the error names them.
    fn conflicts(&self) -> Vec<BoundaryId>;
}
