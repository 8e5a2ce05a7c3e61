//! `ringfence import --from reventless`: events as Reventless' DCB log stores them. The key is `id` and `position`, two
//! strings. The items of fences have no attribute `event`.

use anyhow::{Context, Error, Result, bail};
use aws_sdk_dynamodb::operation::scan::builders::ScanInputBuilder;
use aws_sdk_dynamodb::types::AttributeValue;
use ringfence_aws::{Clock, CodecError, Item, Retry, Table, from_attribute};
use ringfence_core::{Envelope, Metadata, Name, NewEvent, Tag};
use ringfence_dcb_log::DcbLog;
use serde_json::{Map, Value};

use super::arguments::Arguments;
use super::report::{Report, check_readers};
use crate::Lists;
use crate::layout::Layout;
use crate::machine::dynamo_client;
use crate::progress;
use crate::recorded::ForeignEvent;

const ID: &str = "id";
const POSITION: &str = "position";
/// Type name.
const EVENT: &str = "event";
const DATA: &str = "data";
/// A list of maps of `key` and `value`.
const TAGS: &str = "tags";
/// The time of the position, repeated.
const RECORDED_AT: &str = "recordedAt";
/// Attributes with this prefix repeat tags for the indexes.
const TAG: &str = "tag_";
/// A position begins with this many digits of milliseconds since 1970, so positions sort by time.
const MS_DIGITS: usize = 13;

/// Reads only the items of events.
fn events(scan: ScanInputBuilder) -> ScanInputBuilder {
    scan.filter_expression("attribute_exists(#event)").expression_attribute_names("#event", EVENT)
}

/// Names an item.
fn name(item: &Item) -> String {
    let text =
        |name| item.get(name).and_then(|value| value.as_s().ok()).map_or("?", String::as_str);
    format!("{}/{}", text(ID), text(POSITION))
}

/// The event of an item. Its id is its position: milliseconds since 1970, a counter in newer versions, a UUID, and a
/// number for each further event of one append, joined by `-`. Events are folded in the order of these texts.
fn recorded(mut item: Item) -> Result<ForeignEvent> {
    let id = text(&mut item, POSITION)?;
    let ms = ms(&id).with_context(|| {
        format!("its position does not begin with {MS_DIGITS} digits of milliseconds and a hyphen")
    })?;
    let event_type: Name = text(&mut item, EVENT)?.into();
    let data = value(&mut item, DATA)?;
    let tags = value(&mut item, TAGS)?;
    let tags = serde_json::from_value(tags).context("attribute tags must be a list of tags")?;
    // Attributes that the layout does not define become metadata.
    let is_kept = |name: &str| ![ID, RECORDED_AT].contains(&name) && !name.starts_with(TAG);
    item.retain(|name, _| is_kept(name));
    let metadata = item.into_iter().map(|(name, value)| {
        let value = from_attribute(&name, value)?;
        Ok((name, value))
    });
    let metadata: Map<_, _> = metadata.collect::<Result<_, CodecError>>()?;
    if metadata.contains_key(Metadata::SCHEMA) {
        bail!(
            "its metadata {:?} would be the version of the payload in this log: give it another name in \
             the source",
            Metadata::SCHEMA
        );
    }
    let (metadata, _) = Metadata::foreign(Value::Object(metadata), &event_type);
    let event = NewEvent { event_type, tags, data };
    Ok(ForeignEvent { id, ms, event, metadata })
}

fn text(item: &mut Item, name: &str) -> Result<String> {
    match item.remove(name) {
        Some(AttributeValue::S(text)) => Ok(text),
        _ => bail!("attribute {name} is missing or not a string"),
    }
}

fn value(item: &mut Item, name: &str) -> Result<Value> {
    let value = item.remove(name).with_context(|| format!("attribute {name} is missing"))?;
    Ok(from_attribute(name, value)?)
}

fn ms(position: &str) -> Option<u64> {
    let (ms, _) = position.split_once('-')?;
    let right = ms.len() == MS_DIGITS && ms.bytes().all(|digit| digit.is_ascii_digit());
    right.then(|| ms.parse().ok()).flatten()
}

/// Copies the events into the DCB log.
pub(super) async fn import(arguments: &Arguments, lists: &Lists) -> Result<Report> {
    let (client, table) = (dynamo_client().await?, arguments.tables.events()?);
    table.check(&client).await?;
    Layout::Reventless.check(&client, &arguments.source).await?;
    let clock = Clock::fixed(0);
    let log = table.log_at(client.clone(), &lists.stack.catalog, clock.clone());
    let source = Table::new(client, &arguments.source, &clock);
    let Found { events, mut report } = Found::read(&source, lists, &log, &clock).await?;
    if report.broken.is_empty() && !arguments.dry_run {
        report.imports.import(events, &log, &clock).await?;
    }
    Ok(report)
}

/// The content of the source.
#[derive(Default)]
struct Found {
    /// The events that can be imported, in the order of the import.
    events: Vec<ForeignEvent>,
    report: Report,
}

impl Found {
    async fn read(source: &Table, lists: &Lists, log: &DcbLog, clock: &Clock) -> Result<Self> {
        let mut found = Self::default();
        let mut start = None;
        loop {
            let scan = || {
                let start = start.clone();
                source
                    .scan(|scan| events(scan).consistent_read(true).set_exclusive_start_key(start))
            };
            let page = Retry::default().run(scan).await;
            let page = page.with_context(|| format!("reading table {}", source.name()))?;
            for item in page.items.unwrap_or_default() {
                found.add(item, lists, log, clock);
            }
            progress::show(format_args!("{} events read", found.report.read));
            start = page.last_evaluated_key;
            if start.is_none() {
                break;
            }
        }
        progress::clear();
        found.events.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        found.report.broken.values_mut().for_each(|items| items.sort_unstable());
        for pair in found.events.windows(2) {
            if let [ForeignEvent { id, .. }, next] = pair
                && *id == next.id
            {
                let cause = "two events have this position, and only one of them would be imported";
                found.report.refuse(&Error::msg(cause), id.clone());
            }
        }
        Ok(found)
    }

    fn add(&mut self, item: Item, lists: &Lists, log: &DcbLog, clock: &Clock) {
        self.report.read += 1;
        let name = name(&item);
        let checked = recorded(item).and_then(|mut recorded| {
            self.leave_out(&mut recorded, lists);
            check(&recorded, lists, log, clock)?;
            Ok(recorded)
        });
        match checked {
            Ok(recorded) => self.events.push(recorded),
            Err(cause) => self.report.refuse(&cause, name),
        }
    }

    /// Leaves out the tags that the event's type does not declare.
    fn leave_out(&mut self, ForeignEvent { event, .. }: &mut ForeignEvent, lists: &Lists) {
        let Some(schema) = lists.stack.catalog.schema(&event.event_type) else { return };
        let is_declared = |tag: &Tag| schema.tags.iter().any(|declared| declared.key == tag.key);
        for tag in event.tags.extract_if(.., |tag| !is_declared(tag)) {
            let key = (event.event_type.to_string(), tag.key.into_owned());
            *self.report.left_out.entry(key).or_default() += 1;
        }
    }
}

/// Fails if the event can't be imported, or if a slice or view of this stack can't read it.
fn check(recorded: &ForeignEvent, lists: &Lists, log: &DcbLog, clock: &Clock) -> Result<()> {
    let ForeignEvent { id, ms, event, metadata } = recorded;
    recorded.check_time(Clock::system().now_ms())?;
    clock.set(*ms);
    let envelope = Envelope { metadata: metadata.clone(), ..Envelope::default() };
    let event = log.importable(id, event.clone(), &envelope)?;
    check_readers(&event, lists)
}
