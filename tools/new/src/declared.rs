//! An event that a command names by a flag, as its context declares it.

use anyhow::{Context, Result};

use crate::context::{self, Log};
use crate::names::{check, near};
use crate::plan::Plan;
use crate::source::{EventField, Source};

/// An event that a context declares.
pub(crate) struct Declared {
    pub(crate) context: String,
    pub(crate) log: Log,
    pub(crate) event_type: String,
    /// Its first field that ends in `_id`.
    pub(crate) id: Option<String>,
    /// Whether the payload has this field. A log of single streams leaves out the field that names the stream.
    pub(crate) in_payload: bool,
    /// Whether this field alone is the partition.
    pub(crate) is_partition: bool,
    pub(crate) fields: Vec<EventField>,
}

/// The event `<context>/<Type>` of a flag, as its context declares it.
pub(crate) fn declared(plan: &Plan, on: &str, flag: &str) -> Result<Declared> {
    let form = || format!("{flag} {on}: an event is <context>/<Type>, such as carts/CheckedOut");
    let (context, event_type) = on.split_once('/').with_context(form)?;
    check("the context", context)?;
    let found = context::existing(plan, context).with_context(|| format!("{flag} {on}"))?;
    let file = format!("{}/src/events.rs", found.folder);
    let text = plan.read(&file)?;
    let events = Source::new(&text).with_context(|| file.clone())?.events();
    let known: Vec<_> = events.iter().map(|event| event.name.clone()).collect();
    let event = events.into_iter().find(|event| event.name == event_type).with_context(|| {
        let near = near(event_type, &known.iter().map(String::as_str).collect());
        format!("{flag} {on}: {file} has no event {event_type}{near}")
    })?;
    let fields = event.fields;
    let id = fields.iter().find(|field| field.name.ends_with("_id"));
    let names_stream = id.is_some_and(|id| id.is_partition);
    let is_partition =
        names_stream && fields.iter().filter(|field| field.is_partition).count() == 1;
    let in_payload = found.log == Log::Dcb || !names_stream;
    let id = id.map(|id| id.name.clone());
    let (context, event_type) = (context.to_owned(), event_type.to_owned());
    Ok(Declared { context, log: found.log, event_type, id, in_payload, is_partition, fields })
}
