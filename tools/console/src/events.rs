//! The page of events: the newest first, with links to older ones, and new ones live.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Query, State};
use axum::http::HeaderMap;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures::{Stream, StreamExt, stream};
use maud::{Markup, html};
use ringfence_core::{SequencedEvent, visible};
use ringfence_feed::{Checkpoint, Entry, FeedError, FeedStep, Index, Until};

use crate::filter::{Filter, Form};
use crate::frame::{self, Problem, boundary_url, shown};
use crate::site::Site;
use ringfence_cli::place::CheckpointName;
use ringfence_cli::{listed, readable};

/// The number of events on a page, if its URL does not set it.
const LIMIT: usize = 100;
/// The most events of a page.
const LIMIT_MAX: usize = 10_000;
/// A page with a filter reads at most this many events.
const LOOKED_MAX: usize = 10_000;
/// The most characters of a payload in a row.
const DATA_CHARS_MAX: usize = 240;
/// At most this many waiting events are sent together.
const TOGETHER_MAX: usize = 100;
/// A browser reconnects after this time.
const AGAIN: Duration = Duration::from_millis(500);

type Parameters = Query<Vec<(String, String)>>;

/// The most bytes of a page's rows. A larger page ends before its limit, and the next page continues.
const ROWS_BYTES_MAX: usize = 1024 * 1024;

/// The rows that were found, and how far the search went.
struct Found {
    rows: Vec<Markup>,
    looked_at: usize,
    /// The checkpoint before the last event that was read.
    reached: Checkpoint,
}

pub(crate) async fn page(
    State(site): State<Arc<Site>>,
    Query(parameters): Parameters,
) -> Result<Markup, Problem> {
    let filter = Filter::of(Form::of(&parameters))?;
    let given = |name: &str| Some(&*parameters.iter().find(|(it, _)| it == name)?.1);
    let limit = given("limit").map_or(Ok(LIMIT), limit)?;
    let index = site.index();
    let end = index.end().await?;
    let before = match given("before") {
        None => end,
        Some(text) => before(text, &index).await?,
    };
    let found = look(&site, &index, &filter, before, limit).await?;
    let is_newest = given("before").is_none();
    let form = filter.form();
    let limit_text = limit.to_string();
    let reached = found.reached.to_string();
    let older = [("before", &*reached), ("limit", &*limit_text)];
    let has_older = found.reached > Checkpoint::START;
    let end = end.to_string();
    let live = is_newest.then(|| form.url("/events/live", &[("after", &*end)]));
    let main = html! {
        (form.markup(&site.lists.stack, limit))
        @if let Some(boundary) = form.boundary() {
            p.note { "The index is searched for them. To read them without a search: " a href=(boundary) { "the boundary" } "." }
        }
        @if is_newest {
            p.status role="status" {
                noscript { "New events appear only with JavaScript. Load the page again to see them." }
            }
        }
        table.events role="table" {
            thead role="rowgroup" {
                tr role="row" {
                    @for column in ["Time (UTC)", "Type", "Context", "Partition", "Payload"] {
                        th role="columnheader" scope="col" { (column) }
                    }
                }
            }
            tbody role="rowgroup" data-live=[live] data-rows-max=(limit) {
                @for row in &found.rows { (row) }
            }
        }
        p.empty { "No event here." }
        nav.pages aria-label="Older and newer events" {
            @if !is_newest { a href=(form.url("/events", &[("limit", &*limit_text)])) rel="first" { "Newest" } }
            @if has_older { a href=(form.url("/events", &older)) rel="next" { "Further back" } }
            span { (looked(&found, form.is_empty(), has_older)) }
        }
    };
    Ok(frame::page(&site, "/events", "Events", Some(index.usage()), &main))
}

fn looked(found: &Found, is_all: bool, has_older: bool) -> String {
    let (shown, looked_at) = (found.rows.len(), found.looked_at);
    let to = match has_older {
        true => format!("back to checkpoint {}", found.reached),
        false => "back to the first".to_owned(),
    };
    let plural = if looked_at == 1 { "" } else { "s" };
    match is_all {
        true => format!("{shown} event{plural}, {to}."),
        false => format!("{shown} of {looked_at} event{plural}, {to}."),
    }
}

fn limit(text: &str) -> Result<usize, Problem> {
    let wrong = || Problem::bad(format!("limit: write a number from 1 to {LIMIT_MAX}."));
    text.parse().ok().filter(|limit| (1..=LIMIT_MAX).contains(limit)).ok_or_else(wrong)
}

async fn before(text: &str, index: &Index) -> Result<Checkpoint, Problem> {
    let place: Checkpoint =
        text.parse().map_err(|error| Problem::bad(format!("before: {error}.")))?;
    let at = CheckpointName::At(place).checkpoint(index).await;
    at.map_err(|error| Problem::bad(format!("before: {error:#}.")))
}

/// Searches for events before a checkpoint, until it has found enough, has read the most, or is at the first event. It
/// keeps one answer of the index and the rows in memory.
async fn look(
    site: &Site,
    index: &Index,
    filter: &Filter,
    before: Checkpoint,
    limit: usize,
) -> Result<Found, FeedError> {
    let mut found = Found { rows: Vec::new(), looked_at: 0, reached: before };
    let (mut steps, mut bytes) = (index.read_back_where(before, filter.wants()), 0);
    while found.rows.len() < limit && found.looked_at < LOOKED_MAX && bytes < ROWS_BYTES_MAX {
        let Some(step) = steps.next().await else {
            found.reached = Checkpoint::START;
            break;
        };
        let (checkpoint, known) = FeedStep::or_known(step)?;
        found.looked_at += 1;
        found.reached = before_entry(checkpoint);
        let entry = known.map(readable);
        if let Some(entry) = entry.filter(|entry| filter.matches(&entry.event)) {
            let row = row(site, entry);
            bytes += row.0.len();
            found.rows.push(row);
        }
    }
    Ok(found)
}

/// The checkpoint before the entry that ends at one. Checkpoints of one epoch differ by one.
pub(crate) fn before_entry(checkpoint: Checkpoint) -> Checkpoint {
    checkpoint.previous().unwrap_or_default()
}

/// The page of an event.
pub(crate) fn event_url(checkpoint: Checkpoint) -> String {
    format!("/events/{checkpoint}")
}

/// A row, with the payload in the newest version of its type.
fn row(site: &Site, Entry { checkpoint, event }: Entry) -> Markup {
    let event = site.lists.shown(event, true);
    let partition = event.partition.as_str();
    html! {
        tr role="row" {
            td role="cell" { (time(&event)) }
            td role="cell" { a href=(event_url(checkpoint)) { (event.event_type) } (event.version()) }
            td role="cell" { (event.context) }
            td role="cell" {
                a href=(boundary_url(partition)) { (partition) } " / " (event.slot)
            }
            td.data role="cell" { code { (cut(&event.data.to_string(), DATA_CHARS_MAX)) } }
        }
    }
}

/// The time of an event, for a person and for a program.
pub(crate) fn time(event: &SequencedEvent) -> Markup {
    let at = event.recorded_at();
    let shown = at.trim_end_matches('Z').replace('T', " ");
    html! { time datetime=(at) { (shown) } }
}

/// The first characters of a text.
pub(crate) fn cut(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// Sends the rows of new events, from the parameter `after` on, or from the end of a lost connection on. Rows that are
/// sent together are ordered from new to old.
pub(crate) async fn live(
    State(site): State<Arc<Site>>,
    Query(parameters): Parameters,
    headers: HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Problem> {
    let filter = Filter::of(Form::of(&parameters))?;
    let after = parameters.iter().find(|(name, _)| name == "after").map(|(_, value)| &**value);
    let last = headers.get("last-event-id").and_then(|last| last.to_str().ok());
    let after = last.or(after).and_then(|text| text.parse().ok());
    let after = after.ok_or_else(|| Problem::bad("after: write a checkpoint."))?;
    let entries = site.index().read(after, Until::Watched);
    let sent = entries.ready_chunks(TOGETHER_MAX).flat_map(move |together| {
        let mut failed = None;
        let keep = |entry| match listed(entry) {
            Ok(entry) => Some(entry),
            Err(error) => {
                failed = Some(format!("{:#}", anyhow::Error::new(error)));
                None
            }
        };
        let entries: Vec<_> = together.into_iter().map_while(keep).collect();
        let last = entries.last().map(|entry| entry.checkpoint.to_string());
        let wanted = entries.into_iter().rev().filter(|entry| filter.matches(&entry.event));
        let rows: String = wanted.map(|entry| shown(&row(&site, entry)).into_string()).collect();
        let new = last.map(|last| Event::default().id(last).retry(AGAIN).data(rows));
        // The stream ends with its first error, which the page shows, and the browser reconnects.
        let failed = failed.map(|why| Event::default().event("failed").data(visible(&why)));
        stream::iter(new.into_iter().chain(failed).map(Ok))
    });
    Ok(Sse::new(sent).keep_alive(KeepAlive::default()))
}
