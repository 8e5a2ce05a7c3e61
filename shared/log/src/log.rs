//! The interface of every log.

use std::collections::BTreeMap;

use ringfence_aws::{Clock, Meter};
use ringfence_core::{Current, Envelope, OnLog, Slice};

use crate::{BoundaryShape, BoxError, Dependence, DryRun, InTable, KeptState, Sourced};

/// A log, by its name, for a slice of a context on that log.
pub trait Log<S: Slice>: Sourced {
    /// Its events in memory; clones share them.
    type Memory: Clone;

    /// The slice on the log in a table, and the meter of its requests. It keeps up to `kept` decisions or documents
    /// while it is warm, and none if `kept` is 0.
    ///
    /// # Errors
    /// The slice can't be on the log.
    fn open(table: InTable, kept: usize) -> Result<(impl OnLog<S> + 'static, Meter), BoxError>;

    /// An empty log in memory for the slice's context.
    ///
    /// # Errors
    /// The context contradicts itself.
    fn memory() -> Result<Self::Memory, BoxError>;

    /// The slice on the log in memory, with the same parts as [`Log::open`]. Its clock is `clock`; a log of events
    /// takes the time of each envelope instead.
    ///
    /// # Errors
    /// The slice can't be on the log.
    fn in_memory(
        memory: Self::Memory,
        clock: Clock,
        kept: usize,
    ) -> Result<impl OnLog<S> + 'static, BoxError>;

    /// Checks the slice as its function does at start-up, and runs each of its cases in memory. Panics with the place
    /// of a case that fails.
    fn check_in_memory();

    /// The effects that the command would have now on the log in a table. Nothing is written.
    ///
    /// # Errors
    /// The slice can't be on the log.
    fn dry_run(
        table: &InTable,
        command: &S,
        envelope: &Envelope,
    ) -> impl Future<Output = Result<DryRun, BoxError>> + Send;

    /// The faults in a table, one line for each.
    ///
    /// # Errors
    /// The table can't be read.
    fn verify(table: &InTable) -> impl Future<Output = Result<Vec<String>, BoxError>>;

    /// The shapes of all boundaries on which decisions of the slice can depend, and how each is read.
    fn depends_on() -> BTreeMap<BoundaryShape, Dependence>;

    /// The types of unfolds that a read of a stream can begin with, so that it needs no earlier event.
    #[must_use]
    fn origins() -> Vec<&'static str> {
        Vec::new()
    }

    /// The states that the log keeps beside the events, as the decisions of the slice fold them.
    #[must_use]
    fn kept() -> Vec<KeptState>;

    /// Reads an event as a decision of the slice does. `None` if the slice's decisions do not read such events.
    fn read(event: &Current<'_>) -> Option<Result<(), serde_json::Error>>;
}
