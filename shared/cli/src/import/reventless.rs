//! `ringfence import --from reventless`: the events of a table of Reventless' DCB log.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::process::ExitCode;

use anyhow::{Context, Error, Result};
use ringfence::{Envelope, Tag};
use ringfence_dcb_log::DcbLog;
use ringfence_dynamo::{Clock, Item, Retry, Table};
use ringfence_schemas::Unreadable;
use serde_json::{Value, json};

use super::{Arguments, items};
use crate::Lists;
use crate::layout::Layout;
use crate::out::{serialize_as, write_line};
use crate::progress;
use crate::recorded::{ForeignEvent, Imports};

/// What the source has.
#[derive(Default)]
struct Found {
    /// How many events it has.
    read: usize,
    /// Those that can be imported, in the order in which they are imported.
    events: Vec<ForeignEvent>,
    /// Tags that their types do not declare, by type and key: how many.
    left_out: BTreeMap<(String, String), u64>,
    /// The items that can't be imported, by the cause.
    broken: BTreeMap<String, Vec<String>>,
}

pub(super) async fn import(arguments: &Arguments, lists: &Lists) -> Result<ExitCode> {
    let client = arguments.dynamo.client().await?;
    arguments.table.check(&client).await?;
    Layout::Reventless.check(&client, &arguments.source).await?;
    let clock = Clock::fixed(0);
    let log = arguments.table.log_at(client.clone(), &lists.stack.catalog, clock.clone());
    let source = Table::new(client, &arguments.source);
    let mut found = Found::read(&source, lists, &log, &clock).await?;
    let mut imports = Imports::default();
    let events = std::mem::take(&mut found.events);
    if found.broken.is_empty() && !arguments.dry_run {
        imports.import(events, &log, &clock).await?;
    }
    let is_well = found.broken.is_empty();
    let done = Done { found, imports, is_dry_run: arguments.dry_run };
    Ok(arguments.output.end(&done, is_well))
}

impl Found {
    async fn read(source: &Table, lists: &Lists, log: &DcbLog, clock: &Clock) -> Result<Self> {
        let mut found = Self::default();
        let mut start = None;
        loop {
            let scan = || {
                let start = start.clone();
                source.scan(|scan| {
                    items::events(scan).consistent_read(true).set_exclusive_start_key(start)
                })
            };
            let page = Retry::default().run(scan).await;
            let page = page.with_context(|| format!("reading table {}", source.name()))?;
            for item in page.items.unwrap_or_default() {
                found.add(item, lists, log, clock);
            }
            progress::show(format_args!("{} events read", found.read));
            start = page.last_evaluated_key;
            if start.is_none() {
                break;
            }
        }
        progress::clear();
        found.events.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        found.broken.values_mut().for_each(|items| items.sort_unstable());
        for pair in found.events.windows(2) {
            if let [ForeignEvent { id, .. }, next] = pair
                && *id == next.id
            {
                let cause = "two events have this position, and only one of them would be imported";
                found.broken.entry(cause.to_owned()).or_default().push(id.clone());
            }
        }
        Ok(found)
    }

    fn add(&mut self, item: Item, lists: &Lists, log: &DcbLog, clock: &Clock) {
        self.read += 1;
        let name = items::name(&item);
        let checked = items::recorded(item).and_then(|mut recorded| {
            self.leave_out(&mut recorded, lists);
            check(&recorded, lists, log, clock)?;
            Ok(recorded)
        });
        match checked {
            Ok(recorded) => self.events.push(recorded),
            Err(cause) => self.broken.entry(format!("{cause:#}")).or_default().push(name),
        }
    }

    /// An event of this stack has the tags that its type declares.
    fn leave_out(&mut self, ForeignEvent { event, .. }: &mut ForeignEvent, lists: &Lists) {
        let Some(schema) = lists.stack.catalog.schema(&event.event_type) else { return };
        let is_declared = |tag: &Tag| schema.tags.iter().any(|declared| declared.key == tag.key);
        for tag in event.tags.extract_if(.., |tag| !is_declared(tag)) {
            let key = (event.event_type.to_string(), tag.key.into_owned());
            *self.left_out.entry(key).or_default() += 1;
        }
    }
}

/// What became of the source's events.
struct Done {
    found: Found,
    imports: Imports,
    is_dry_run: bool,
}

impl Display for Done {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { found: Found { read, left_out, broken, .. }, imports, is_dry_run } = self;
        for ((event_type, tag), times) in left_out {
            write_line!(
                f,
                "left out  tag {tag}, which {event_type} does not declare: {times} times"
            )?;
        }
        for (cause, items) in broken {
            let more = match items.len() - 1 {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            write_line!(f, "broken    {}{more}: {cause}", items[0])?;
        }
        let items: usize = broken.values().map(Vec::len).sum();
        match (items, is_dry_run) {
            (0, false) => write_line!(f, "{imports}"),
            (0, true) => write_line!(f, "{read} events can be imported"),
            (items, _) => {
                write_line!(f, "{items} events can't be imported, and nothing is written")
            }
        }
    }
}

serialize_as!(Done, |Done { found: Found { read, left_out, broken, .. }, imports, .. }| {
    let left_out = left_out.iter().map(
        |((event_type, tag), times)| json!({ "type": event_type, "tag": tag, "times": times }),
    );
    let broken = broken.iter().map(|(cause, items)| json!({ "cause": cause, "items": items }));
    json!({
        "events": read,
        "imported": imports.imported,
        "before": imports.before,
        "leftOut": left_out.collect::<Value>(),
        "broken": broken.collect::<Value>(),
    })
});

/// Fails if the event can't be imported, or if a slice or view of this stack could not read it then.
fn check(recorded: &ForeignEvent, lists: &Lists, log: &DcbLog, clock: &Clock) -> Result<()> {
    let ForeignEvent { id, ms, event, metadata } = recorded;
    recorded.check_time(Clock::system().now_ms())?;
    clock.set(*ms);
    let envelope = Envelope { metadata: metadata.clone(), ..Envelope::default() };
    let event = log.importable(id, event.clone(), &envelope)?;
    match lists.readers.unreadable(&lists.stack.catalogs, &event).into_iter().next() {
        None => Ok(()),
        Some(Unreadable { reader, why, .. }) => {
            Err(Error::from(why).context(format!("{reader} can't read {}", event.event_type)))
        }
    }
}
