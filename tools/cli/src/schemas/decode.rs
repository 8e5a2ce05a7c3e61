//! Checks that this build can read the events of the index.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display, Formatter};

use anyhow::Result;
use futures::StreamExt;
use ringfence_core::{Catalog, Catalogs, CurrentError, NewerVersion, SequencedEvent};
use ringfence_feed::{Checkpoint, Entry, Index, Until};
use ringfence_schemas::{Readers, Unreadable};
use ringfence_stack::{ContextInfo, Stack};
use serde_json::{Value, json};

use crate::Lists;
use crate::out::{serialize_as, write_line};
use crate::progress;

/// The number of events between two updates of the progress.
const PROGRESS_EVENTS: u64 = 1_000;

/// A report names at most this many kinds of failures.
const FAILURES_MAX: usize = 100;

/// A report names this many events of each kind.
const FIRST_MAX: usize = 3;

/// The result for the events of the index.
#[derive(Debug, Default)]
pub(crate) struct Decoded {
    /// How many were decoded.
    events: u64,
    /// How many were read. All of them are decoded, unless there is a limit for each type.
    read: u64,
    read_units: f64,
    failed: BTreeMap<Failure, Failed>,
    newer: BTreeMap<Newer, Events>,
}

/// A way in which events fail.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Failure {
    event_type: String,
    context: String,
    version: u32,
    field: Option<String>,
    why: String,
}

/// The events that fail in one way.
#[derive(Debug, Default)]
struct Failed {
    events: Events,
    readers: BTreeSet<&'static str>,
}

/// A version that this build does not know.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Newer {
    event_type: String,
    context: String,
    version: u32,
    /// The newest version that it knows.
    known: u32,
}

/// Events of one kind.
#[derive(Debug, Default)]
struct Events {
    count: u64,
    /// The ids of the first that were met.
    first: Vec<String>,
}

/// Decodes events of the index with each reader that the stack lists for them: all events, or the last of each type.
pub(crate) async fn decode(index: &Index, lists: &Lists, last: Option<u64>) -> Result<Decoded> {
    let mut decoded = Decoded::default();
    let before = index.usage();
    let mut last = last.map(|each| Last::of(&lists.stack.catalogs, each));
    let mut entries = match last {
        None => index.read(Checkpoint::START, Until::Present),
        Some(_) => index.read_back(index.end().await?),
    };
    while let Some(entry) = entries.next().await {
        let (entry, unread) = Entry::or_known(entry)?;
        decoded.read += 1;
        if let Some(why) = unread {
            decoded.unread(&entry.event, why);
            continue;
        }
        if last.as_mut().is_none_or(|last| last.takes(&entry.event)) {
            decoded.add(&lists.stack, &lists.readers, &entry.event);
        }
        if last.as_ref().is_some_and(|last| last.fewer.is_empty()) {
            break;
        }
        if decoded.read.is_multiple_of(PROGRESS_EVENTS) {
            let units = index.usage().since(&before).total().read;
            let Decoded { events, read, .. } = decoded;
            progress::show(format_args!("{events} of {read} events decoded, {units} read units"));
        }
    }
    decoded.read_units = index.usage().since(&before).total().read;
    Ok(decoded)
}

/// A type, with the context that declares it.
type TypeOf = (String, String);

/// Selects the last events of each type, while the index is read backwards.
struct Last {
    each: u64,
    taken: BTreeMap<TypeOf, u64>,
    /// The types of the stack that were seen fewer times.
    fewer: BTreeSet<TypeOf>,
}

impl Last {
    fn of(catalogs: &Catalogs, each: u64) -> Self {
        let declared = |catalog: &Catalog| {
            let types = catalog.schemas().map(|schema| schema.name.to_string());
            let with_context =
                types.filter_map(|name| Some((catalog.context(&name)?.to_owned(), name)));
            with_context.collect::<Vec<_>>()
        };
        let fewer = catalogs.0.iter().flat_map(declared).collect();
        Self { each, taken: BTreeMap::new(), fewer }
    }

    fn takes(&mut self, event: &SequencedEvent) -> bool {
        let of = (event.context.clone(), event.event_type.clone());
        let taken = self.taken.entry(of.clone()).or_default();
        let takes = *taken < self.each;
        *taken += u64::from(takes);
        if *taken == self.each {
            self.fewer.remove(&of);
        }
        takes
    }
}

impl Events {
    fn add(&mut self, event: &SequencedEvent) {
        self.count += 1;
        if self.first.len() < FIRST_MAX {
            self.first.push(event.id());
        }
    }
}

impl Display for Events {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { count, first } = self;
        let first = first.join(", ");
        match count {
            1 => write!(f, "1 event, {first}"),
            _ => write!(f, "{count} events, among them {first}"),
        }
    }
}

impl Decoded {
    pub(crate) fn in_order(&self) -> bool {
        self.failed.is_empty() && self.newer.is_empty()
    }

    fn add(&mut self, stack: &Stack, readers: &Readers, event: &SequencedEvent) {
        self.events += 1;
        let (event_type, context) = (event.event_type.clone(), event.context.clone());
        let version = event.version;
        let failure = |field, why| {
            let (event_type, context) = (event_type.clone(), context.clone());
            Failure { event_type, context, version, field, why }
        };
        let mut failures: BTreeMap<Failure, BTreeSet<&'static str>> = BTreeMap::new();
        let of = stack.context(&event.context);
        let declares = |context: &&ContextInfo| {
            context.event_types.contains(&event.event_type.as_str().into())
        };
        if let Some(context) = of.filter(|context| !declares(context)) {
            let why = "the context does not declare the type".to_owned();
            failures.insert(failure(None, why), BTreeSet::from([context.name]));
        } else if let Err(CurrentError::Newer(NewerVersion { known, .. })) =
            stack.catalogs.current(event)
        {
            let newer = Newer { event_type, context, version, known };
            self.newer.entry(newer).or_default().add(event);
        } else {
            for Unreadable { reader, field, why, .. } in readers.unreadable(&stack.catalogs, event)
            {
                failures.entry(failure(field, why.to_string())).or_default().insert(reader);
            }
        }
        for (failure, by) in failures {
            self.note(failure, event, by);
        }
    }

    /// Notes an event of which only the place and the type can be read.
    fn unread(&mut self, event: &SequencedEvent, why: String) {
        let (event_type, context) = (event.event_type.clone(), event.context.clone());
        let failure = Failure { event_type, context, version: event.version, field: None, why };
        self.note(failure, event, BTreeSet::from(["the index"]));
    }

    fn note(&mut self, failure: Failure, event: &SequencedEvent, by: BTreeSet<&'static str>) {
        if self.failed.len() == FAILURES_MAX && !self.failed.contains_key(&failure) {
            return;
        }
        let failed = self.failed.entry(failure).or_default();
        failed.events.add(event);
        failed.readers.extend(by);
    }
}

impl Display for Decoded {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (Failure { event_type, context, version, field, why }, failed) in &self.failed {
            let field = field.as_ref().map_or_else(String::new, |field| format!("{field}: "));
            let Failed { events, readers } = failed;
            let readers = readers.iter().copied().collect::<Vec<_>>().join(", ");
            write_line!(
                f,
                "unread   {event_type} of {context}, version {version}: {field}{why}; {events}; read by {readers}"
            )?;
        }
        if self.failed.len() == FAILURES_MAX {
            write_line!(
                f,
                "unread   there may be more: only the first {FAILURES_MAX} kinds are named"
            )?;
        }
        for (Newer { event_type, context, version, known }, events) in &self.newer {
            write_line!(
                f,
                "newer    {event_type} of {context}, version {version}: this build knows the versions up to {known}, \
                 so a newer one is deployed; {events}"
            )?;
        }
        let end = match (self.failed.is_empty(), self.newer.is_empty()) {
            (true, true) => "all can be read",
            (true, false) => "all can be read except newer versions",
            (false, _) => "not all can be read",
        };
        let Self { events, read, read_units, .. } = self;
        let passed = if read > events { format!(" of {read}") } else { String::new() };
        write_line!(
            f,
            "{events}{passed} events of the index decoded, {read_units} read units: {end}"
        )
    }
}

serialize_as!(Decoded, |Decoded { events, read, read_units, failed, newer }| {
    let unread = failed.iter().map(|(failure, Failed { events, readers })| {
        let Failure { event_type, context, version, field, why } = failure;
        let Events { count, first } = events;
        json!({
            "type": event_type, "context": context, "version": version, "field": field, "why": why,
            "events": count, "first": first, "readers": readers,
        })
    });
    let newer = newer.iter().map(|(newer, Events { count, first })| {
        let Newer { event_type, context, version, known } = newer;
        json!({
            "type": event_type, "context": context, "version": version, "known": known,
            "events": count, "first": first,
        })
    });
    json!({
        "events": events, "read": read, "readUnits": read_units,
        "unread": unread.collect::<Value>(), "newer": newer.collect::<Value>(),
    })
});
