//! Checks of a single line.

use anyhow::{Context, Result, bail, ensure};
use ringfence_aws::Clock;
use ringfence_core::personal::{FORGOTTEN, Form, MARKED, OF, SEALED, has, values};
use ringfence_core::{EventSchema, SequencedEvent, Tag};
use ringfence_feed::Partition;

use super::logs::Writable;
use super::report::{check_readers, unreadable};
use crate::Lists;
use crate::line::event_of;
use crate::tables::log_name;

/// The event of a line, if its log can store it and this stack can read it.
pub(super) fn checked(bytes: &[u8], logs: &Writable<'_>, lists: &Lists) -> Result<SequencedEvent> {
    let line = bytes.strip_suffix(b"\n").context("the line is cut off")?;
    let event = event_of(std::str::from_utf8(line)?)?;
    let now_ms = Clock::system().now_ms();
    ensure!(
        event.at <= now_ms,
        "recordedAt: lies in the future; if the clock of this machine is slow, set it"
    );
    let log = Partition::of(&event).log;
    let context = lists.stack.context(&event.context);
    let context =
        context.with_context(|| format!("this build has no context {}", event.context))?;
    ensure!(
        context.log == log,
        "it is of the {} log, and context {} is on the {} log",
        log_name(log),
        context.name,
        log_name(context.log)
    );
    ensure!(
        context.event_types.iter().any(|name| *name == event.event_type),
        "context {} has no event type {}",
        context.name,
        event.event_type
    );
    logs.check(&event)?;
    check_personal(&event)?;
    check_readers(&event, lists)?;
    check_payload(&event, lists)?;
    Ok(event)
}

/// Fails if a personal value has another form than a vault gives it.
fn check_personal(event: &SequencedEvent) -> Result<()> {
    ensure!(
        !has(&event.data, Form::Marked),
        "data: has the key {MARKED}, which no event has in a table; leave it out, or export the events again"
    );
    let mut data = event.data.clone();
    for (form, key) in [(Form::Sealed, SEALED), (Form::Forgotten, FORGOTTEN)] {
        for value in values(&mut data, form) {
            let is_whole = match form {
                Form::Sealed => value[key].is_string() && value["k"].is_u64(),
                _ => value[key] == true,
            };
            ensure!(
                is_whole && value[OF].is_string(),
                "data: the value with the key {key} is not as a vault makes it; export the events again"
            );
        }
    }
    Ok(())
}

/// Fails if the payload contradicts the tags of the line or the stream of the event.
fn check_payload(event: &SequencedEvent, lists: &Lists) -> Result<()> {
    let current = lists.stack.catalogs.current(event)?;
    if let Some(id) = event.stream_id() {
        let catalog = lists.catalog(&event.context, &event.event_type);
        let schema = catalog.and_then(|catalog| catalog.schema(&event.event_type));
        let fields = schema.into_iter().flat_map(EventSchema::of_stream);
        for (key, value) in fields.filter_map(|key| Some((key, current.data.get(key)?))) {
            // The log leaves the field out of the payload if it is a string.
            let is_other = value.as_str().is_some_and(|value| value != id);
            ensure!(!is_other, "data.{key}: must be {id:?}, the id of the stream, is {value}");
        }
        return Ok(());
    }
    let Some(tags) = lists.tags.of_event(&current) else { return Ok(()) };
    let no_such = |why| unreadable(&format!("the payload is no {}", event.event_type), None, &why);
    let tags = tags.map_err(no_such)?;
    let schema = lists.catalog(&event.context, &event.event_type);
    let schema = schema.and_then(|catalog| catalog.schema(&event.event_type));
    // Only the vault that made a blind tag can tell whether it is right.
    let is_blind = |tag: &Tag| {
        let mut declared = schema.into_iter().flat_map(|schema| &*schema.tags);
        declared.any(|of| of.blind && of.key == tag.key)
    };
    let first = |of: &[Tag], without: &[Tag]| {
        let other = of.iter().find(|tag| !without.contains(tag) && !is_blind(tag));
        other.map(|Tag { key, value }| format!("{key}:{value}"))
    };
    if let Some(lacking) = first(&tags, &event.tags) {
        bail!("tags: lack {lacking}, which follows from the payload");
    }
    if let Some(other) = first(&event.tags, &tags) {
        bail!("tags: have {other}, which does not follow from the payload");
    }
    Ok(())
}
