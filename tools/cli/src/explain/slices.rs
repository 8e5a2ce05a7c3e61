//! The slices of the stack, each with the code that makes dry runs of its commands.

use anyhow::{Context as _, Result, anyhow, ensure};
use futures::FutureExt;
use futures::future::BoxFuture;
use ringfence_aws::Clock;
use ringfence_core::{
    Context, Envelope, EventRef, Handled, LogName, LogOf, Outcome, Slice, is_personal,
};
use ringfence_lambda::Issuers;
use ringfence_log::{Log, StackLogs};
use ringfence_schemas::Shape;
use ringfence_stack::{MemberList, Members, Visitor};

use super::explanation::{Answer, Explanation, Written};
use crate::shown::for_people;
use crate::tables::{log_name, table};

type Explain =
    for<'a> fn(&'a StackLogs, &'a str, &'a Issuers) -> BoxFuture<'a, Result<Vec<Explanation>>>;

/// The slices of a stack.
#[derive(Default)]
pub struct Slices(Vec<OfSlice>);

/// A slice, with its code.
pub struct OfSlice {
    /// `<context>/<slice>`.
    pub name: String,
    explain: Explain,
    /// The shape of its command's JSON.
    pub command: fn() -> Shape,
}

impl Slices {
    /// The slices of the stack that `M` lists.
    pub fn of<M: Members>() -> Self {
        let mut slices = Self::default();
        MemberList::walk::<M>(&mut slices);
        slices
    }

    /// Dry runs of the commands of a payload. A payload is anything that the slice's function takes: a command alone or
    /// with its context, a request over HTTP, or an event that the slice reacts to.
    ///
    /// # Errors
    /// There is no such slice, no flag names its table, the payload is refused before anything is read, or the log
    /// fails.
    pub async fn explain(
        &self,
        logs: &StackLogs,
        slice: &str,
        payload: &str,
        issuers: &Issuers,
    ) -> Result<Vec<Explanation>> {
        let of = self.get(slice).with_context(|| format!("no context has the slice {slice}"))?;
        (of.explain)(logs, payload, issuers).await
    }

    /// The slice of this name, `<context>/<slice>`.
    pub fn get(&self, name: &str) -> Option<&OfSlice> {
        self.0.iter().find(|of| of.name == name)
    }
}

fn name<S: Slice>() -> String {
    format!("{}/{}", S::Context::NAME, S::NAME)
}

impl Visitor for Slices {
    fn slice<S: Slice<Context: Context<Log: Log<S>>>>(&mut self) {
        self.0.push(OfSlice {
            name: name::<S>(),
            explain: |logs, payload, issuers| explain::<S>(logs, payload, issuers).boxed(),
            command: Shape::of::<S>,
        });
    }
}

/// The commands of a payload.
fn commands<S: Slice>(
    payload: &str,
    issuers: &Issuers,
    clock: &Clock,
) -> Result<Vec<(S, Envelope)>> {
    let commands = ringfence_lambda::slice::read::<S>(payload, issuers, clock);
    let commands = commands.map_err(|problem| anyhow!("{}", problem.detail()))?;
    ensure!(!commands.is_empty(), "the payload leads to no command of {}", S::NAME);
    Ok(commands)
}

/// Makes a dry run of each command of a payload.
async fn explain<S: Slice<Context: Context<Log: Log<S>>>>(
    logs: &StackLogs,
    payload: &str,
    issuers: &Issuers,
) -> Result<Vec<Explanation>> {
    let kind = LogOf::<S>::KIND;
    let table = table(logs, kind)?;
    ensure!(
        logs.vault.is_some() || !is_personal::<S>(),
        "{} has personal data: name the table of keys with --key-table or --stack",
        name::<S>()
    );
    let mut explanations = Vec::new();
    for (command, envelope) in commands::<S>(payload, issuers, &logs.clock)? {
        let dry_run = LogOf::<S>::dry_run(&table, &command, &envelope).await;
        let dry_run = dry_run.map_err(|error| anyhow!(error))?;
        let handled = dry_run.handled?;
        let origin = envelope.metadata.origin();
        let explained = Explanation {
            slice: name::<S>(),
            log: log_name(kind),
            command: for_people(&serde_json::to_value(&command).unwrap_or_default()),
            reads: dry_run.reads,
            principal: origin.principal.map(str::to_owned),
            by: origin.by.map(str::to_owned),
            events: dry_run.events,
            attempts: handled.attempts,
            answer: answer(handled),
            writes: Vec::new(),
            indexes: Default::default(),
            cost: Default::default(),
            conflicts: dry_run.conflicts,
        };
        explanations.push(explained.costs(dry_run.intent, &dry_run.usage, &dry_run.looks));
    }
    Ok(explanations)
}

/// The answer to a command, with the payloads that would be written.
fn answer(handled: Handled) -> Answer {
    let (rejected, events) = match handled.outcome {
        Outcome::Accepted(events) => (None, events),
        Outcome::Rejected { rejected, events } => (Some(rejected), events),
    };
    let payloads = handled.written.into_iter().map(|event| Some(for_people(&event.data)));
    let written = |(EventRef { event_type, partition, slot }, data)| Written {
        event_type,
        partition,
        slot,
        data,
    };
    let (message, rejection) =
        rejected.map(|rejected| (rejected.message, rejected.rejection)).unzip();
    Answer {
        accepted: message.is_none(),
        message,
        rejection,
        repeated: handled.repeated,
        events: events
            .into_iter()
            .zip(payloads.chain(std::iter::repeat(None)))
            .map(written)
            .collect(),
    }
}
