//! `ringfence import --from castore-legacy`: a table of Castore's older layout, which has the events of one store, into
//! the aggregate log.

use std::pin::pin;

use anyhow::{Context, Error, Result, ensure};
use futures::TryStreamExt;
use ringfence_aggregate_log::{AggregateTable, event_of_image, name_of};
use ringfence_aws::{Clock, Item};
use ringfence_core::{LogKind, SequencedEvent};
use ringfence_stack::ContextInfo;

use super::arguments::Arguments;
use super::report::{Report, check_readers};
use crate::Lists;
use crate::layout::Layout;
use crate::line::check_slot;
use crate::machine::dynamo_client;
use crate::paced::paced;
use crate::progress;

/// The number of events between two updates of the progress.
const PROGRESS_EVENTS: u64 = 100;
/// Events that are put at the same time.
const PUTS_MAX: usize = 16;

/// Copies the events as they are: version, timestamp, payload and metadata.
pub(super) async fn import(arguments: &Arguments, lists: &Lists) -> Result<Report> {
    let context = arguments.context.as_deref();
    let context = context.context("name the context whose events the table has: --context")?;
    let context = lists.context_on(context, LogKind::Aggregates)?;
    let table = arguments.tables.streams.aggregates()?;
    let client = dynamo_client().await?;
    Layout::Aggregates.check(&client, table).await?;
    Layout::AggregatesOfOneStore.check(&client, &arguments.source).await?;
    let clock = Clock::system();
    let source =
        AggregateTable::legacy(client.clone(), &arguments.source, context.name, clock.clone())?;
    let mut report = Report::default();
    let mut items = pin!(source.scan());
    while let Some(item) = items.try_next().await? {
        report.read += 1;
        let name = name_of(&item);
        if let Err(cause) = check(item, context, lists) {
            report.refuse(&cause, name);
        }
        show("read", report.read);
    }
    progress::clear();
    if report.broken.is_empty() && !arguments.dry_run {
        let table = AggregateTable::new(client, table, clock);
        let items = source.scan().map_err(Error::new);
        let mut puts = pin!(items.map_ok(|item| put(&table, item)).try_buffer_unordered(PUTS_MAX));
        let imports = &mut report.imports;
        while let Some(is_new) = puts.try_next().await? {
            imports.imported += u64::from(is_new);
            imports.before += u64::from(!is_new);
            show("imported", imports.imported + imports.before);
        }
    }
    Ok(report)
}

/// Puts an event. Returns false if it is there already.
async fn put(table: &AggregateTable, item: Item) -> Result<bool> {
    paced(async || Ok(table.import(item.clone()).await?)).await
}

fn show(done: &str, events: u64) {
    if events.is_multiple_of(PROGRESS_EVENTS) {
        progress::show(format_args!("{events} events {done}"));
    }
}

/// Fails if the context does not have the event, or if a slice or view of this stack can't read it.
fn check(item: Item, context: &ContextInfo, lists: &Lists) -> Result<()> {
    let event = SequencedEvent::from(event_of_image(item)?);
    check_slot("version", event.slot)?;
    let is_known = context.event_types.iter().any(|known| **known == *event.event_type);
    ensure!(is_known, "the context {} has no event type {}", context.name, event.event_type);
    check_readers(&event, lists)
}
