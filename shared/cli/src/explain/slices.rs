//! The slices of the stack, each with the code that rehearses its commands.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Context as _, Result, anyhow, ensure};
use futures::FutureExt;
use futures::future::BoxFuture;
use ringfence::{
    Access, Aggregates, Boundary, BoundaryId, Catalog, Consistency, Context, Counts, Dcb,
    Decisions, Envelope, EventRef, Extent, Outcome, Read, Slice, Tag,
};
use ringfence_aggregate_log::AggregateLog;
use ringfence_dcb_log::{Rehearsal, Rehearse};
use ringfence_document_log::{Cache, Category, DocumentLog, OfDocument};
use ringfence_dynamo::Clock;
use ringfence_stack::{MemberList, Members, Visitor};
use serde_json::Value;

use super::explanation::{Answer, Explanation, ReadBoundary, Seen, Written};
use crate::fields;
use crate::tables::StackLogs;

/// How streams are read.
const BY_EVENTS: &str = "its events, strongly consistent";
const BY_TIP: &str = "its Tip, and the calves that the state needs";

type Explain = for<'a> fn(&'a StackLogs, &'a str) -> BoxFuture<'a, Result<Vec<Explanation>>>;

/// The slices of a stack.
#[derive(Default)]
pub struct Slices(Vec<OfSlice>);

/// A slice, with its code.
pub struct OfSlice {
    /// `<context>/<slice>`.
    pub name: String,
    explain: Explain,
    /// What its command's JSON is.
    pub command: fn() -> fields::Value,
    /// The kinds of boundaries on which its decisions can depend, and how each is read.
    pub depends_on: BTreeMap<Shape, String>,
}

/// What boundaries have in common that differ in the values of their tags alone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shape {
    /// Of the DCB log: the keys of its tags and whether they are one tag, a partition of several, or a set; or the
    /// type.
    Boundary(String),
    /// A stream of this context.
    Stream(String),
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boundary(keys) if keys.starts_with('$') || keys == "dcb" => f.write_str(keys),
            Self::Boundary(keys) => write!(f, "{keys}:…"),
            Self::Stream(context) => write!(f, "a stream of {context}"),
        }
    }
}

impl Shape {
    /// The shape of a boundary of the DCB log; `None` if the text is not the id of a boundary.
    pub fn of(boundary: &BoundaryId) -> Option<Self> {
        let keys = |tags: &[Tag], between: &str| {
            tags.iter().map(|tag| &*tag.key).collect::<Vec<_>>().join(between)
        };
        Some(Self::Boundary(match boundary.decode()? {
            Boundary::Tag(tag) => tag.key.into_owned(),
            Boundary::CompositePartition(tags, _) => keys(&tags, "+"),
            Boundary::Composite(tags) => keys(&tags, "#"),
            Boundary::Tagless | Boundary::EventType(_) => boundary.to_string(),
        }))
    }
}

impl Slices {
    /// The slices of the stack that `M` lists.
    pub fn of<M: Members>() -> Self {
        let mut slices = Self::default();
        MemberList::walk::<M>(&mut slices);
        slices
    }

    /// What the commands of a payload would do now. A payload is what the slice's function takes: a command alone
    /// or with its surroundings, or an event that the slice reacts to.
    ///
    /// # Errors
    /// There is no such slice, its table is not named, the payload is refused before anything is read, or the log
    /// fails.
    pub async fn explain(
        &self,
        logs: &StackLogs,
        slice: &str,
        payload: &str,
    ) -> Result<Vec<Explanation>> {
        let of = self.get(slice).with_context(|| format!("no context has the slice {slice}"))?;
        (of.explain)(logs, payload).await
    }

    /// The slices, as `<context>/<slice>`, whose decisions can depend on a boundary of this shape.
    pub fn that_depend_on(&self, shape: &Shape) -> impl Iterator<Item = &str> {
        let depends = move |of: &&OfSlice| of.depends_on.contains_key(shape);
        self.0.iter().filter(depends).map(|of| &*of.name)
    }

    /// The slice of this name, `<context>/<slice>`.
    pub fn get(&self, name: &str) -> Option<&OfSlice> {
        self.0.iter().find(|of| of.name == name)
    }

    fn add<S: Slice>(&mut self, explain: Explain, depends_on: BTreeMap<Shape, String>) {
        let command = fields::value::<S>;
        self.0.push(OfSlice { name: name::<S>(), explain, command, depends_on });
    }

    fn add_of_stream<S: Slice>(&mut self, explain: Explain, by: &str) {
        let stream = Shape::Stream(S::Context::NAME.to_owned());
        self.add::<S>(explain, BTreeMap::from([(stream, by.to_owned())]));
    }
}

fn name<S: Slice>() -> String {
    format!("{}/{}", S::Context::NAME, S::NAME)
}

impl Visitor for Slices {
    fn dcb_slice<S: Slice<Context: Context<Log = Dcb>>>(&mut self) {
        let plans =
            S::Context::catalog().ok().and_then(|catalog| ringfence::plans::<S>(&catalog).ok());
        let reads = plans.iter().flatten().flat_map(|plan| &plan.reads);
        let strong = S::CONSISTENCY == Consistency::Strong;
        let shape = |read: &Read| Some((Shape::of(&read.boundary)?, by(&read.access, strong)));
        let shapes = reads.filter_map(shape).collect();
        self.add::<S>(|logs, payload| of_dcb::<S>(logs, payload).boxed(), shapes);
    }

    fn aggregate_slice<S: Slice<Context: Context<Log = Aggregates>>>(&mut self) {
        self.add_of_stream::<S>(
            |logs, payload| of_aggregates::<S>(logs, payload).boxed(),
            BY_EVENTS,
        );
    }

    fn document_slice<S: OfDocument>(&mut self) {
        self.add_of_stream::<S>(|logs, payload| of_documents::<S>(logs, payload).boxed(), BY_TIP);
    }
}

/// The commands of a payload.
fn commands<S: Slice>(payload: &str, clock: &Clock) -> Result<Vec<(S, Envelope)>> {
    let commands = ringfence_lambda::read::<S>(payload, clock);
    let commands = commands.map_err(|problem| anyhow!("{}", problem.detail()))?;
    ensure!(!commands.is_empty(), "the payload leads to no command of {}", S::NAME);
    Ok(commands)
}

fn explanation<S: Slice>(log: &'static str, command: &S, attempts: u32) -> Explanation {
    Explanation {
        slice: name::<S>(),
        log,
        command: serde_json::to_value(command).unwrap_or_default(),
        reads: Vec::new(),
        events: Vec::new(),
        answer: Answer::default(),
        writes: Vec::new(),
        indexes: Default::default(),
        cost: Default::default(),
        conflicts: Vec::new(),
        attempts,
    }
}

/// The answer of an outcome, with the payloads of what would be written.
fn answer(outcome: Outcome, repeated: bool, payloads: Vec<Option<Value>>) -> Answer {
    let (rejected, events) = match outcome {
        Outcome::Accepted(events) => (None, events),
        Outcome::Rejected { rejected, events } => (Some(rejected), events),
    };
    let payloads = payloads.into_iter().chain(std::iter::repeat(None));
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
        repeated,
        events: events.into_iter().zip(payloads).map(written).collect(),
    }
}

async fn of_dcb<S: Slice>(logs: &StackLogs, payload: &str) -> Result<Vec<Explanation>> {
    of_events::<S, _>("DCB", payload, |catalog, _| logs.dcb(catalog)).await
}

async fn of_aggregates<S: Slice>(logs: &StackLogs, payload: &str) -> Result<Vec<Explanation>> {
    let open = |catalog, clock| Ok(AggregateLog::new(logs.aggregates()?, catalog, clock));
    of_events::<S, _>("aggregate", payload, open).await
}

/// The commands of a payload, on the log that `open` makes.
async fn of_events<S: Slice, L: Rehearse>(
    name: &'static str,
    payload: &str,
    open: impl Fn(Catalog, Clock) -> Result<L>,
) -> Result<Vec<Explanation>> {
    let (clock, catalog) = (Clock::system(), S::Context::catalog()?);
    let mut explanations = Vec::new();
    for (command, envelope) in commands::<S>(payload, &clock)? {
        let log = open(catalog.clone(), clock.clone())?;
        let rehearsal = Rehearsal::of(&log);
        let none = Decisions::new(0);
        let handled = ringfence::handle(&rehearsal, &catalog, &none, &command, &envelope).await;
        let end = rehearsal.end();
        let handled = handled?;
        let mut explained = explanation(name, &command, handled.attempts);
        explained.reads = end
            .plan
            .iter()
            .flat_map(|plan| &plan.reads)
            .map(|read| {
                let extent = end.seen.as_ref().and_then(|seen| seen.of(&read.boundary));
                ReadBoundary {
                    boundary: read.boundary.to_string(),
                    by: by(&read.access, end.strong || log.reads_strongly()),
                    types: read.types.iter().map(ToString::to_string).collect(),
                    seen: extent.map_or_else(String::new, seen),
                }
            })
            .collect();
        explained.events = end
            .events
            .into_iter()
            .map(|(place, event_type)| Seen {
                id: format!("{}/{}", place.partition, place.slot),
                event_type,
            })
            .collect();
        let payloads = end.appends.into_iter().map(|event| Some(event.data)).collect();
        explained.answer = answer(handled.outcome, handled.repeated, payloads);
        explained.conflicts = end.conflicts.iter().map(ToString::to_string).collect();
        explanations.push(explained.costs(end.intent, &log.meter().snapshot(), &end.looks));
    }
    Ok(explanations)
}

/// How a boundary is read, in words.
fn by(access: &Access, strong: bool) -> String {
    let of_table = if strong { ", strongly consistent" } else { ", eventually consistent" };
    match access {
        Access::Partition => format!("its partition{of_table}"),
        Access::TagIndex(tag) => format!("the index tag_{}", tag.key),
        Access::CompositeIndex(_) => "the index tag_composite".to_owned(),
        Access::TagItems(_) => format!("the tag's copies of events{of_table}"),
        Access::TypeItems(_) => format!("the type's copies of events{of_table}"),
    }
}

/// What was seen of a boundary, in words.
fn seen(extent: &Extent) -> String {
    let counted = |counts: &Counts| {
        let all: Vec<_> = counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
        all.join(", ")
    };
    match extent {
        Extent::Prefix(prefix) => match (&prefix.fenced, prefix.slot) {
            (Some(counts), _) => counted(counts),
            (None, 0) => "nothing".to_owned(),
            (None, 1) => "slot 1".to_owned(),
            (None, last) => format!("slots 1 to {last}"),
        },
        Extent::Fence { counts, .. } => counted(counts),
    }
}

async fn of_documents<S: OfDocument>(logs: &StackLogs, payload: &str) -> Result<Vec<Explanation>> {
    let clock = Clock::system();
    let mut explanations = Vec::new();
    for (command, envelope) in commands::<S>(payload, &clock)? {
        let store = logs.documents()?;
        let rehearsal = ringfence_document_log::DocumentRehearsal::of(store.clone());
        let log = DocumentLog::new(rehearsal, clock.clone());
        let category = Category::of::<S>(log, Cache::none())?;
        let handled = ringfence_document_log::handle(&category, &command, &envelope).await?;
        let end = category.log().store().rehearsed();
        let stream = category.stream(&category.id(&command.tags()))?.partition();
        let mut explained = explanation("document", &command, handled.attempts);
        let version = end.version;
        explained.reads.push(ReadBoundary {
            boundary: stream.to_string(),
            by: BY_TIP.to_owned(),
            types: Vec::new(),
            seen: version.map_or_else(|| "nothing".to_owned(), |n| format!("version {n}")),
        });
        let appends = end.appends.iter().flat_map(|(_, events)| events);
        let payloads = appends.map(|event| event.data.json().ok().flatten()).collect();
        explained.answer = answer(handled.outcome, handled.repeated, payloads);
        let now = |version: &u64| format!("{stream} was at version {version} by then");
        explained.conflicts = end.conflicts.iter().map(now).collect();
        explanations.push(explained.costs(end.intent, &store.meter().snapshot(), &end.looks));
    }
    Ok(explanations)
}
