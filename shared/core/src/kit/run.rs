//! How cases run: on a log, and in memory.

use std::error::Error;

use futures::executor::block_on;

use super::same::{assert_same, fail};
use crate::{
    CommandContext, Context, LogOf, Slice,
    case::{Came, Case, Fact},
};

/// What goes wrong with a case.
pub type CaseResult<T> = Result<T, Box<dyn Error>>;

/// A log as cases use it.
pub trait CaseLog<S: Slice> {
    /// Sets the log's clock, in milliseconds since 1970.
    fn set_clock(&self, now_ms: u64);

    /// Adds a fact.
    fn add(&self, fact: &Fact) -> impl Future<Output = CaseResult<()>>;

    /// Carries out the command.
    fn run(&self, command: &S, context: &CommandContext) -> impl Future<Output = CaseResult<Came>>;
}

impl<S: Slice> Case<S> {
    /// Runs the case on an empty log. Panics with the place of the case if something else follows: with both as
    /// JSON and what differs, or with an error and its causes.
    pub async fn check(&self, log: &impl CaseLog<S>) {
        self.prepare(log).await;
        self.check_prepared(log).await;
    }

    /// Adds the facts to an empty log.
    pub async fn prepare(&self, log: &impl CaseLog<S>) {
        for fact in &self.given {
            log.set_clock(fact.at_ms);
            let added = log.add(fact).await;
            added.unwrap_or_else(|error| self.fail("a given event can't be added", error));
        }
        log.set_clock(self.context.now_ms);
    }

    /// Runs the command on the log with the facts. Panics as [`Case::check`] does.
    pub async fn check_prepared(&self, log: &impl CaseLog<S>) {
        let came = log.run(&self.command, &self.context).await;
        let came = came.unwrap_or_else(|error| self.fail("the command fails", error));
        assert_same(format!("case at {}", self.at), &self.then, &came);
    }

    pub(super) fn fail(&self, what: &str, error: impl Into<Box<dyn Error>>) -> ! {
        fail(format!("case at {}: {what}", self.at), error)
    }
}

/// A log, by its name, whose cases run in memory.
pub trait InMemory<S: Slice> {
    /// Runs the case on an empty log.
    fn check(case: &Case<S>) -> impl Future<Output = ()>;

    /// Checks what a function checks when it starts.
    fn check_slice() {}
}

/// Checks the slice as a function does when it starts, and runs each of its cases in memory.
pub fn check_in_memory<S: Slice<Context: Context<Log: InMemory<S>>>>() {
    LogOf::<S>::check_slice();
    let cases = S::cases();
    assert!(!cases.is_empty(), "{} has no cases: write `fn cases()` in `impl Slice`", S::NAME);
    cases.iter().for_each(|case| block_on(LogOf::<S>::check(case)));
}
