//! Cases on an event log: the DCB log or the aggregate log.

use std::sync::Mutex;

use futures::{FutureExt, future::BoxFuture, stream::BoxStream};

use super::{
    run::{CaseLog, CaseResult},
    same::fail,
};
use crate::{
    Append, Appended, Catalog, CommandContext, CommandRecord, Conflict, Consistency, Context,
    Decisions, Envelope, EventLog, EventRef, LogError, NewEvent, Outcome, Plan, Seen,
    SequencedEvent, Slice,
    case::{Came, Fact, event_json},
    handle,
};

/// An event log for cases, with what sets its clock to milliseconds since 1970.
pub struct OnEvents<'l, L, F> {
    /// The log.
    pub log: &'l L,
    /// Sets its clock.
    pub set_clock: F,
}

impl<S: Slice, L: EventLog, F: Fn(u64)> CaseLog<S> for OnEvents<'_, L, F> {
    fn set_clock(&self, now_ms: u64) {
        (self.set_clock)(now_ms);
    }

    async fn add(&self, fact: &Fact) -> CaseResult<()> {
        let context = CommandContext { now_ms: fact.at_ms, ..CommandContext::default() };
        let append = Append {
            events: vec![fact.event.clone()],
            seen: None,
            record: None,
            envelope: &Envelope { context, ..Envelope::default() },
        };
        self.log.append(append).await?;
        Ok(())
    }

    async fn run(&self, command: &S, context: &CommandContext) -> CaseResult<Came> {
        let catalog = S::Context::catalog()?;
        let envelope = Envelope { context: context.clone(), ..Envelope::default() };
        let spy = Spy { log: self.log, written: Mutex::default() };
        let handled = handle(&spy, &catalog, &Decisions::new(0), command, &envelope).await?;
        let rejection = match handled.outcome {
            Outcome::Rejected { rejected, .. } => Some(rejected.rejection),
            Outcome::Accepted(_) => None,
        };
        let written = spy.written.into_inner().expect("no code panics while it holds the lock");
        Ok(Came { rejection, events: written.iter().map(event_json).collect() })
    }
}

/// The catalog of a context. Panics if it contradicts itself.
pub fn catalog<C: Context>() -> Catalog {
    C::catalog().unwrap_or_else(|error| fail(format!("the catalog of {}", C::NAME), error))
}

/// A log that notes what is committed through it.
struct Spy<'l, L> {
    log: &'l L,
    written: Mutex<Vec<NewEvent>>,
}

impl<L: EventLog> EventLog for Spy<'_, L> {
    fn read<'a>(
        &'a self,
        plan: &'a Plan,
        consistency: Consistency,
        envelope: &'a Envelope,
    ) -> BoxStream<'a, Result<SequencedEvent, LogError>> {
        self.log.read(plan, consistency, envelope)
    }

    fn append<'a>(&'a self, append: Append<'a>) -> BoxFuture<'a, Result<Appended, LogError>> {
        async move {
            let events = append.events.clone();
            let appended = self.log.append(append).await?;
            if let Appended::Committed(_) = appended {
                self.written.lock().expect("no code panics while it holds the lock").extend(events);
            }
            Ok(appended)
        }
        .boxed()
    }

    fn verify<'a>(
        &'a self,
        seen: &'a Seen,
        envelope: &'a Envelope,
    ) -> BoxFuture<'a, Result<Option<Conflict>, LogError>> {
        self.log.verify(seen, envelope)
    }

    fn recorded<'a>(
        &'a self,
        record: &'a CommandRecord,
        envelope: &'a Envelope,
    ) -> BoxFuture<'a, Result<Option<Vec<EventRef>>, LogError>> {
        self.log.recorded(record, envelope)
    }

    fn pause<'a>(&'a self, attempt: u32, envelope: &'a Envelope) -> BoxFuture<'a, bool> {
        self.log.pause(attempt, envelope)
    }
}
