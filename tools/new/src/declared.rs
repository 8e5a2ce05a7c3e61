//! An event as its context declares it, which commands name by a flag.

use anyhow::{Context, Result};

use crate::context::{self, Log};
use crate::names::{check, near};
use crate::plan::Plan;
use crate::source::Source;

/// An event that a context declares.
pub(crate) struct Declared {
    pub(crate) context: String,
    pub(crate) log: Log,
    pub(crate) event_type: String,
    /// Its first field that ends in `_id`.
    pub(crate) id: Option<String>,
    /// Whether the payload has that field. A log of single streams leaves out the one that names the stream.
    pub(crate) in_payload: bool,
    /// Whether that field alone is the partition.
    pub(crate) is_partition: bool,
    /// What is between its braces.
    pub(crate) body: String,
}

/// The event `<context>/<Type>` of a flag, as its context declares it.
pub(crate) fn declared(plan: &Plan, on: &str, flag: &str) -> Result<Declared> {
    let form = || format!("{flag} {on}: an event is <context>/<Type>, such as carts/CheckedOut");
    let (context, event_type) = on.split_once('/').with_context(form)?;
    check("the context", context)?;
    let found = context::existing(plan, context).with_context(|| format!("{flag} {on}"))?;
    let file = format!("{}/src/events.rs", found.folder);
    let text = plan.read(&file)?;
    // What follows the whole name; a longer name begins alike.
    let declared = |prefix: &str| {
        let head = format!("{prefix}{event_type}");
        let mut found = text.match_indices(&head).map(|(at, _)| &text[at + head.len()..]);
        found.find(|after| !after.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    };
    let after = declared("pub struct ").or_else(|| declared("\n    "));
    let after = after.filter(|_| !event_type.is_empty());
    let after = after.with_context(|| {
        let known = Source::new(&text).events();
        let near = near(event_type, &known.iter().map(|event| &*event.name).collect());
        format!("{flag} {on}: {file} has no event {event_type}{near}")
    })?;
    let body = after.trim_start().strip_prefix('{').and_then(|body| body.split('}').next());
    let body = body.unwrap_or_default();
    // The first field of a variant may be in the variant's line.
    let fields = body.split(['\n', '{', ',']).filter_map(|field| field.split(':').next());
    let mut fields = fields.map(|field| field.trim().trim_start_matches("pub "));
    let is_id =
        |field: &&str| field.ends_with("_id") && check("", &field.replace('_', "-")).is_ok();
    let id = fields.find(is_id).map(str::to_owned);
    let words = body.split_whitespace().collect::<Vec<_>>().join(" ");
    let names_stream = |id: &String| words.contains(&format!("#[tag(partition)] pub {id}:"));
    let is_partition =
        id.as_ref().is_some_and(names_stream) && words.matches("partition").count() == 1;
    let in_payload = found.log == Log::Dcb || !id.as_ref().is_some_and(names_stream);
    let (context, event_type) = (context.to_owned(), event_type.to_owned());
    let (log, body) = (found.log, body.to_owned());
    Ok(Declared { context, log, event_type, id, in_payload, is_partition, body })
}
