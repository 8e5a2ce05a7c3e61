//! `ringfence verify --decode`: whether this build can read what is stored.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display, Formatter};

use anyhow::Result;
use futures::TryStreamExt;
use ringfence::SequencedEvent;
use ringfence_feed::{Checkpoint, Index, Until};
use ringfence_schemas::{Readers, Unreadable};
use ringfence_stack::{ContextInfo, Stack};
use serde_json::{Value, json};

use crate::Lists;
use crate::out::{serialize_as, write_line};
use crate::progress;

/// Progress is shown each time this many events are done.
const PROGRESS_EVENTS: u64 = 1_000;

/// How many kinds of failures a report names.
const FAILURES_MAX: usize = 100;

/// What this build makes of the events of the index.
#[derive(Debug, Default)]
pub(crate) struct Decoded {
    events: u64,
    failed: BTreeMap<Failure, Failed>,
}

/// In which way events fail.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Failure {
    event_type: String,
    context: String,
    field: Option<String>,
    why: String,
}

/// Which events fail in one way.
#[derive(Debug)]
struct Failed {
    events: u64,
    /// The id of the first.
    first: String,
    readers: BTreeSet<&'static str>,
}

/// Decodes every event of the index with each reader that the stack lists for it.
pub(crate) async fn decode(index: &Index, lists: &Lists) -> Result<Decoded> {
    let mut decoded = Decoded::default();
    let mut entries = index.read(Checkpoint::START, Until::Present);
    while let Some(entry) = entries.try_next().await? {
        decoded.add(&lists.stack, &lists.readers, &entry.event);
        if decoded.events.is_multiple_of(PROGRESS_EVENTS) {
            progress::show(format_args!("{} events decoded", decoded.events));
        }
    }
    Ok(decoded)
}

impl Decoded {
    pub(crate) fn in_order(&self) -> bool {
        self.failed.is_empty()
    }

    fn add(&mut self, stack: &Stack, readers: &Readers, event: &SequencedEvent) {
        self.events += 1;
        let failure = |field, why| {
            let (event_type, context) = (event.event_type.clone(), event.context.clone());
            Failure { event_type, context, field, why }
        };
        let mut failures: BTreeMap<Failure, BTreeSet<&'static str>> = BTreeMap::new();
        let context = stack.context(&event.context);
        let declares = |context: &&ContextInfo| {
            context.event_types.contains(&event.event_type.as_str().into())
        };
        if let Some(context) = context.filter(|context| !declares(context)) {
            let why = "the context does not declare the type".to_owned();
            failures.insert(failure(None, why), BTreeSet::from([context.name]));
        } else {
            for Unreadable { reader, field, why, .. } in readers.unreadable(&stack.catalogs, event)
            {
                failures.entry(failure(field, why.to_string())).or_default().insert(reader);
            }
        }
        for (failure, by) in failures {
            if self.failed.len() == FAILURES_MAX && !self.failed.contains_key(&failure) {
                continue;
            }
            let none = || Failed { events: 0, first: event.id(), readers: BTreeSet::new() };
            let failed = self.failed.entry(failure).or_insert_with(none);
            failed.events += 1;
            failed.readers.extend(by);
        }
    }
}

impl Display for Decoded {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (Failure { event_type, context, field, why }, failed) in &self.failed {
            let field = field.as_ref().map_or_else(String::new, |field| format!("{field}: "));
            let Failed { events, first, readers } = failed;
            let readers = readers.iter().copied().collect::<Vec<_>>().join(", ");
            write_line!(
                f,
                "unread   {event_type} of {context}: {field}{why}; {events} events, the first is {first}; read by {readers}"
            )?;
        }
        if self.failed.len() == FAILURES_MAX {
            write_line!(
                f,
                "unread   there may be more: only the first {FAILURES_MAX} kinds are named"
            )?;
        }
        let end = if self.in_order() { "all can be read" } else { "not all can be read" };
        write_line!(f, "{} events of the index decoded: {end}", self.events)
    }
}

serialize_as!(Decoded, |Decoded { events, failed }| {
    let failed = failed.iter().map(|(failure, failed)| {
        let Failure { event_type, context, field, why } = failure;
        let Failed { events, first, readers } = failed;
        json!({
            "type": event_type, "context": context, "field": field, "why": why,
            "events": events, "first": first, "readers": readers,
        })
    });
    json!({ "events": events, "unread": failed.collect::<Value>() })
});
