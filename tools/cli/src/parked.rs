//! `ringfence parked show`, `retry` and `skip-event`.

use std::fmt::{self, Display, Formatter};
use std::process::ExitCode;

use anyhow::{Result, ensure};
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use ringfence_aws::Clock;
use ringfence_core::visible;
use ringfence_views::{Definition, Parked, Projector};
use serde_json::{Value, json};

use crate::machine::dynamo_client;
use crate::out::{Output, serialize_as, write_line};
use crate::tables::{FeedTables, ViewTable};
use crate::view::definition;
use crate::{Lists, progress, remark};

#[derive(Args)]
struct Tables {
    #[command(flatten)]
    index: FeedTables,
    #[command(flatten)]
    views: ViewTable,
}

impl Tables {
    async fn projector(&self, lists: &Lists) -> Result<Projector> {
        let client = dynamo_client().await?;
        let index = self.index.index(client.clone()).await?;
        let catalogs = lists.stack.catalogs.clone();
        Ok(Projector::new(client, index, &self.views.view_table, catalogs, Clock::system()))
    }
}

#[derive(Args)]
#[command(after_help = "\
A row is parked if an event makes it too large, if DynamoDB can't store it, or if the stored row does not match the
view's row type. It is served as an error until it is folded again. An event is parked if the view can't read it. Its
rows are served without it until it is folded in its place. Mend the view, deploy, and retry: `retry` folds with the
views of this build. It reads the index once for each 100 rows of a view, so for many rows `ringfence replay view` is
faster.

Examples:
  ringfence parked show
  ringfence parked retry catalog-products")]
pub(crate) struct Arguments {
    #[command(flatten)]
    tables: Tables,
    /// The view; all views, if none is named.
    view: Option<String>,
    #[command(flatten)]
    output: Output,
}

#[derive(Args)]
#[command(after_help = "\
The rows of the view stay without the event. A rebuild does not park the event again, and folds it if the view can read
it by then. The reason stays in the table.

Example:
  ringfence parked skip-event customers 'customers#a#b/1' --why 'a test by hand'")]
pub(crate) struct Skip {
    #[command(flatten)]
    tables: Tables,
    /// The view.
    view: String,
    /// The event, as `ringfence parked show` prints it.
    event: String,
    /// The reason to skip the event.
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    why: String,
}

impl Arguments {
    fn definitions(&self, lists: &Lists) -> Result<Vec<Definition>> {
        match &self.view {
            None => Ok(lists.stack.rows()),
            Some(view) => Ok(vec![definition(view, lists)?]),
        }
    }
}

pub(crate) async fn show(arguments: &Arguments, lists: &Lists) -> Result<ExitCode> {
    let projector = arguments.tables.projector(lists).await?;
    let mut left = Left::default();
    for view in arguments.definitions(lists)? {
        left.add(view.name, projector.parked(&view).await?, projector.parked_events(&view).await?);
    }
    Ok(arguments.output.end(&left, left.parked.is_empty()))
}

pub(crate) async fn retry(arguments: &Arguments, lists: &Lists) -> Result<ExitCode> {
    let projector = arguments.tables.projector(lists).await?;
    let (mut left, mut again) = (Left::default(), Again::default());
    for view in arguments.definitions(lists)? {
        let show = |at| progress::show(format_args!("{}: read to checkpoint {at}", view.name));
        let retried = projector.retry(&view, &show).await?;
        again.rows += retried.shown;
        again.events += retried.events;
        left.add(view.name, retried.left, retried.events_left);
    }
    left.again = Some(again);
    Ok(arguments.output.end(&left, left.parked.is_empty()))
}

pub(crate) async fn skip(arguments: &Skip, lists: &Lists) -> Result<ExitCode> {
    let Skip { tables, view, event, why } = arguments;
    let definition = definition(view, lists)?;
    let is_skipped = tables.projector(lists).await?.skip(&definition, event, why).await?;
    ensure!(
        is_skipped,
        "event {event} is not parked: `ringfence parked show {view}` shows the events"
    );
    remark!("{view} goes on without event {event}");
    Ok(ExitCode::SUCCESS)
}

/// The parked rows and events.
#[derive(Default)]
struct Left {
    /// The result of a retry; `None` without one.
    again: Option<Again>,
    /// Each with the name of its view and the row, if it is one.
    parked: Vec<(&'static str, Option<String>, Parked)>,
}

/// What a retry has folded again.
#[derive(Default)]
struct Again {
    rows: u64,
    events: u64,
}

impl Left {
    fn add(&mut self, view: &'static str, rows: Vec<(String, Parked)>, events: Vec<Parked>) {
        self.parked.extend(rows.into_iter().map(|(row, parked)| (view, Some(row), parked)));
        self.parked.extend(events.into_iter().map(|parked| (view, None, parked)));
    }
}

impl Display for Left {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (view, row, Parked { event, cause }) in &self.parked {
            let row = row.as_ref().map(|row| format!(" {}", visible(row))).unwrap_or_default();
            write_line!(f, "{view}{row}: event {}: {}", visible(event), visible(cause))?;
        }
        let left = self.parked.len();
        match &self.again {
            None => write_line!(f, "{left} parked"),
            Some(Again { rows, events }) => {
                write_line!(f, "{rows} rows shown again, {events} events folded, {left} left")
            }
        }
    }
}

serialize_as!(Left, |Left { again, parked }| {
    let rows = parked.iter().map(|(view, row, Parked { event, cause })| {
        json!({ "view": view, "row": row, "event": event, "cause": cause })
    });
    let mut json = json!({ "parked": rows.collect::<Value>() });
    if let Some(Again { rows, events }) = again {
        (json["shown"], json["folded"]) = (json!(rows), json!(events));
    }
    json
});
