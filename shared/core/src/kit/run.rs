//! Runs a case on a log.

use std::error::Error;

use futures::executor::block_on;

use super::same::{assert_same, fail};
use crate::{
    CommandContext, Envelope, NewEvent, OnLog, Outcome, Slice, Tag, Writes,
    decide::case::{Came, Case, Fact},
};

impl<S: Slice> Case<S> {
    /// Runs the case on an empty log. `set_clock` sets the log's clock to milliseconds since 1970. If the result
    /// differs, it panics with the place of the case, and with both results as JSON and their differences, or with an
    /// error and its causes.
    pub async fn check(&self, on: &impl OnLog<S>, set_clock: &dyn Fn(u64)) {
        self.prepare(on, set_clock).await;
        self.check_prepared(on).await;
    }

    /// Adds the facts to an empty log. `set_clock` sets the log's clock to milliseconds since 1970.
    pub async fn prepare(&self, on: &impl OnLog<S>, set_clock: &dyn Fn(u64)) {
        for Fact { at_ms, event } in &self.given {
            set_clock(*at_ms);
            let context = CommandContext { now_ms: *at_ms, ..CommandContext::default() };
            let envelope = Envelope { context, ..Envelope::default() };
            let added = on.add(vec![event.clone()], &envelope).await;
            added.unwrap_or_else(|error| self.fail("a given event can't be added", error));
        }
        set_clock(self.context.now_ms);
    }

    /// Runs the command on the log with the facts. Panics as [`Case::check`] does.
    pub async fn check_prepared(&self, on: &impl OnLog<S>) {
        let handled = on.handle(&self.command, &self.envelope()).await;
        let handled = handled.unwrap_or_else(|error| self.fail("the command fails", error));
        let rejection = match handled.outcome {
            Outcome::Rejected { rejected, .. } => Some(rejected.rejection),
            Outcome::Accepted(_) => None,
        };
        let came = Came { rejection, events: handled.written };
        assert_same(self.at, &without_blind::<S>(&self.then), &without_blind::<S>(&came));
    }

    pub(super) fn envelope(&self) -> Envelope {
        Envelope { context: self.context.clone(), ..Envelope::default() }
    }

    pub(super) fn fail(&self, what: &str, error: impl Into<Box<dyn Error>>) -> ! {
        fail(format!("{}: {what}", self.at), error)
    }
}

/// The result without its blind tags: only a vault knows their values.
fn without_blind<S: Slice>(came: &Came) -> Came {
    let mut came = came.clone();
    for NewEvent { event_type, tags, .. } in &mut came.events {
        let schema = S::Writes::SCHEMAS.iter().find(|schema| schema.name == *event_type);
        let is_blind = |tag: &Tag| {
            schema.is_some_and(|schema| schema.tags.iter().any(|of| of.blind && of.key == tag.key))
        };
        tags.retain(|tag| !is_blind(tag));
    }
    came
}

/// Checks each case of a slice. Panics if the slice has no cases.
pub fn check_each<S: Slice>(check: impl AsyncFn(&Case<S>)) {
    let cases = S::cases();
    assert!(!cases.is_empty(), "{} has no cases: write `fn cases()` in `impl Slice`", S::NAME);
    cases.iter().for_each(|case| block_on(check(case)));
}
