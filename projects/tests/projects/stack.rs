//! A table for each test, and its writers.

use std::sync::{Arc, LazyLock};

use projects::Projects;
use ringfence_aws::Clock;
use ringfence_core::kit::BEGIN_MS;
use ringfence_core::{
    Append, Catalog, CommandContext, Context, Decisions, Envelope, EventLog, Handled, NewEvent,
    Outcome, SequencedEvent, Slice, handle,
};
use ringfence_dcb_log::DcbLog;
use ringfence_local::template::Template;
use ringfence_testing::Dynamo;

const TABLE: &str = "EventTable";

pub(crate) static TEMPLATE: LazyLock<Template> = LazyLock::new(|| Template::of_stack().unwrap());

#[derive(Clone)]
pub(crate) struct Stack {
    dynamo: Arc<Dynamo>,
    pub(crate) catalog: Catalog,
}

/// The code of a rejection, or the types of the events.
pub(crate) type Came = Result<Vec<String>, String>;

impl Stack {
    pub(crate) fn start() -> Self {
        let dynamo = Arc::new(Dynamo::with(&TEMPLATE, &[TABLE]));
        Self { dynamo, catalog: Projects::catalog().unwrap() }
    }

    /// Such a table whose requests take time, so that agents meet. The test's time is paused.
    pub(crate) fn of_races(seed: u64) -> Self {
        let stack = Self::start();
        stack.dynamo.take_time(seed);
        stack
    }

    /// A writer whose clock stands still.
    pub(crate) fn log(&self) -> DcbLog {
        let (client, clock) = (self.dynamo.client.clone(), self.dynamo.clock.clone());
        DcbLog::new(client, TABLE, self.catalog.clone(), clock)
    }

    /// A writer whose clock runs.
    pub(crate) fn running_log(&self) -> DcbLog {
        let client = self.dynamo.client.clone();
        DcbLog::new(client, TABLE, self.catalog.clone(), Clock::running(BEGIN_MS))
    }

    /// Appends each event without a condition.
    pub(crate) async fn seed(&self, events: Vec<NewEvent>) {
        let log = self.log();
        for event in events {
            let (events, envelope) = (vec![event], envelope(0));
            let append = Append { events, seen: None, record: None, envelope: &envelope };
            log.append(append).await.unwrap();
        }
    }

    /// Carries out a command on a cold handler.
    pub(crate) async fn run<S: Slice>(&self, log: &DcbLog, command: &S) -> Handled {
        let envelope = envelope(0);
        let decisions = Decisions::new(0);
        handle(log, &self.catalog, &decisions, command, &envelope).await.unwrap()
    }

    /// Every event, in the order of time.
    pub(crate) async fn events(&self) -> Vec<SequencedEvent> {
        use futures::TryStreamExt;
        let mut events: Vec<_> = self.log().scan().try_collect().await.unwrap();
        events.sort_by_key(SequencedEvent::place);
        events
    }

    /// The events of one type.
    pub(crate) async fn of_type(&self, event_type: &str) -> Vec<SequencedEvent> {
        let events = self.events().await.into_iter();
        events.filter(|event| event.event_type == event_type).collect()
    }
}

pub(crate) fn came(handled: &Handled) -> Came {
    match &handled.outcome {
        Outcome::Accepted(events) => Ok(events.iter().map(|it| it.event_type.clone()).collect()),
        Outcome::Rejected { rejected, .. } => {
            Err(rejected.rejection["code"].as_str().unwrap().to_owned())
        }
    }
}

/// The envelope of a command that is given so long after the case has begun, in milliseconds.
pub(crate) fn envelope(after_ms: u64) -> Envelope {
    let now_ms = BEGIN_MS + after_ms;
    let context = CommandContext { now_ms, ..CommandContext::default() };
    Envelope { context, ..Envelope::default() }
}
