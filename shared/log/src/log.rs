//! What every log is.

use std::collections::BTreeMap;

use ringfence_aws::{Clock, Meter};
use ringfence_core::{Current, Envelope, OnLog, Slice};

use crate::{BoundaryShape, BoxError, DryRun, InTable, KeptState, Sourced};

/// A log, by its name, with a slice of a context that is on it.
pub trait Log<S: Slice>: Sourced {
    /// Its events in memory; clones share them.
    type Memory: Clone;

    /// The slice on the log in a table, and what counts its requests. It keeps up to `kept` decisions or documents as
    /// long as it is warm; with 0 it keeps none.
    ///
    /// # Errors
    /// The slice can't be on the log.
    fn open(table: InTable, kept: usize) -> Result<(impl OnLog<S> + 'static, Meter), BoxError>;

    /// An empty log of the slice's context in memory.
    ///
    /// # Errors
    /// The context contradicts itself.
    fn memory() -> Result<Self::Memory, BoxError>;

    /// The slice on the log in memory, with what [`Log::open`] has in a table. Its clock is `clock`, or, on a log of
    /// events, that of each envelope.
    ///
    /// # Errors
    /// The slice can't be on the log.
    fn in_memory(
        memory: Self::Memory,
        clock: Clock,
        kept: usize,
    ) -> Result<impl OnLog<S> + 'static, BoxError>;

    /// Checks the slice as its function does when it starts, and runs each of its cases in memory. Panics with the place
    /// of a case that fails.
    fn check_in_memory();

    /// What the command would do now on the log in a table. Nothing is written.
    ///
    /// # Errors
    /// The slice can't be on the log.
    fn dry_run(
        table: &InTable,
        command: &S,
        envelope: &Envelope,
    ) -> impl Future<Output = Result<DryRun, BoxError>> + Send;

    /// What is wrong in a table, a line for each fault.
    ///
    /// # Errors
    /// The table can't be read.
    fn verify(table: &InTable) -> impl Future<Output = Result<Vec<String>, BoxError>>;

    /// The shapes of the boundaries on which decisions of the slice can depend, each with how it is read.
    fn depends_on() -> BTreeMap<BoundaryShape, String>;

    /// The types of unfolds with which the read of a stream begins, so that it needs no event before them.
    #[must_use]
    fn origins() -> Vec<&'static str> {
        Vec::new()
    }

    /// The states that the log keeps beside the events, as the decisions of the slice fold them.
    #[must_use]
    fn kept() -> Vec<KeptState>;

    /// Reads an event as a decision of the slice does. `None` if no decision of the slice reads events like this one.
    fn read(event: &Current<'_>) -> Option<Result<(), serde_json::Error>>;
}
