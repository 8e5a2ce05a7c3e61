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
use ringfence_feed::{Checkpoint, Entry, FeedError, Index, Until};
use ringfence_stack::Stack;
use serde_json::Value;

use crate::filter::{Filter, Form};
use crate::frame::{self, Problem, ago, boundary_url, chip, encoded, given, shown, slice_url};
use crate::node::slice_kind;
use crate::site::Site;
use ringfence_cli::place::CheckpointName;
use ringfence_cli::shown::{cut, for_people};
use ringfence_cli::{listed, readable};

/// The number of events on a page, if its URL does not set it.
const LIMIT: usize = 30;
/// The most events of a page.
const LIMIT_MAX: usize = 10_000;
/// A page looks at no more entries of the index.
const LOOKED_MAX: usize = 10_000;
/// With a filter it looks at so many at once.
const LOOKED_AT_ONCE: usize = 200;
/// A page ends when it has taken so many read units, unless a person asks for more.
const UNITS_MAX: f64 = 15.0;
/// The most events that are read at once.
const GROUP_MAX: usize = 10;
/// The same if a person asks for more.
const GROUP_FAR_MAX: usize = 100;
/// The parameter of a page that takes more read units.
const FURTHER: &str = "further";
/// The most characters of a payload in a row.
pub(crate) const DATA_CHARS_MAX: usize = 240;
/// At most this many waiting events are sent together.
const TOGETHER_MAX: usize = 100;
/// A browser reconnects after this time.
const AGAIN: Duration = Duration::from_millis(500);

type Parameters = Query<Vec<(String, String)>>;

/// The most bytes of a page's rows. A larger page ends before its limit, and the next page continues.
const ROWS_BYTES_MAX: usize = 1024 * 1024;

/// Contexts get one of so many colours.
const CONTEXT_COLOURS: usize = 8;

/// The rows that were found, and how far the search went.
struct Found {
    rows: Vec<Markup>,
    /// The times of the newest and the oldest row, in milliseconds since 1970.
    times: Option<(u64, u64)>,
    looked_at: usize,
    /// The checkpoint before the last event that was read.
    reached: Checkpoint,
}

pub(crate) async fn page(
    State(site): State<Arc<Site>>,
    Query(parameters): Parameters,
) -> Result<Markup, Problem> {
    let filter = Filter::of(Form::of(&parameters))?;
    let given = |name| given(&parameters, name);
    let limit = given("limit").map_or(Ok(LIMIT), limit)?;
    let index = site.index();
    let end = index.end().await?;
    let before = match given("before") {
        None => end,
        Some(text) => before(text, &index).await?,
    };
    let is_far = limit > LIMIT || given(FURTHER) == Some("true");
    let found = look(&site, &index, &filter, before, (limit, is_far)).await?;
    let is_newest = given("before").is_none();
    let form = filter.form();
    let limit_text = limit.to_string();
    let reached = found.reached.to_string();
    let older = [("before", &*reached), ("limit", &*limit_text)];
    let further = [&older[..], &[(FURTHER, "true")]].concat();
    let has_older = found.reached > Checkpoint::START;
    let is_short = has_older && found.rows.len() < limit && !is_far;
    let end = end.to_string();
    let live = is_newest.then(|| form.url("/events/live", &[("after", &*end)]));
    let main = html! {
        (form.markup(&site.lists.stack, limit))
        @if let Some(boundary) = form.boundary() {
            p.note {
                "The index is searched for them. To read them without a search: "
                a href=(boundary) { "the boundary" } "."
            }
        }
        @if is_newest {
            p.status role="status" {
                noscript { "New events appear only with JavaScript. Load the page again to see them." }
            }
        }
        table.events role="table" {
            thead role="rowgroup" {
                tr role="row" {
                    @for column in ["Recorded", "Type", "Context", "Partition", "Principal", "Payload"] {
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
            @if is_short {
                span {
                    a href=(form.url("/events", &further)) { "Look at " (LOOKED_MAX) " events" }
                    ", for up to " (LOOKED_MAX / 2) " read units"
                }
            }
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
    let rate = rate(shown, found.times);
    match is_all {
        true => format!("{shown} event{plural}{rate}, {to}."),
        false => format!("{shown} of {looked_at} event{plural}{rate}, {to}."),
    }
}

/// How many of these events there were in a minute, in words; empty if they say nothing about it.
fn rate(events: usize, times: Option<(u64, u64)>) -> String {
    let Some((newest, oldest)) =
        times.filter(|(newest, oldest)| newest.saturating_sub(*oldest) >= 1_000)
    else {
        return String::new();
    };
    let rate = (events - 1) as f64 * 60_000.0 / (newest - oldest) as f64;
    if rate < 10.0 { format!(", {rate:.1} a minute") } else { format!(", {rate:.0} a minute") }
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

/// Searches for events before a checkpoint, until it has found enough, has read the most, or is at the first event.
async fn look(
    site: &Site,
    index: &Index,
    filter: &Filter,
    before: Checkpoint,
    (limit, is_far): (usize, bool),
) -> Result<Found, FeedError> {
    let mut found = Found { rows: Vec::new(), times: None, looked_at: 0, reached: before };
    let (wants, mut bytes, mut wanted) = (filter.wants(), 0, Vec::new());
    let group_max = if is_far { GROUP_FAR_MAX } else { GROUP_MAX };
    while found.looked_at < LOOKED_MAX {
        let left = LOOKED_MAX - found.looked_at;
        let most = if filter.form().is_empty() { limit - found.rows.len() } else { LOOKED_AT_ONCE };
        let references = index.references(found.reached, most.min(left), false).await?;
        let Some(last) = references.last().map(|(checkpoint, _)| *checkpoint) else {
            found.reached = Checkpoint::START;
            return Ok(found);
        };
        for (checkpoint, reference) in references {
            found.looked_at += 1;
            found.reached = before_entry(checkpoint);
            if wants(&reference) {
                wanted.push((checkpoint, reference));
            }
            if wanted.len() < group_max.min(limit - found.rows.len()) && checkpoint != last {
                continue;
            }
            for entry in index.events(std::mem::take(&mut wanted)).await? {
                let entry = readable(entry);
                if !filter.matches(&entry.event) {
                    continue;
                }
                let at = entry.event.at;
                found.times = Some((found.times.map_or(at, |(newest, _)| newest), at));
                let row = row(site, entry);
                bytes += row.0.len();
                found.rows.push(row);
            }
            let is_dear = !is_far && index.usage().total().read > UNITS_MAX;
            if found.rows.len() == limit || bytes >= ROWS_BYTES_MAX || is_dear {
                return Ok(found);
            }
        }
    }
    Ok(found)
}

/// The checkpoint before the entry that ends at one. Checkpoints of one epoch differ by one.
pub(crate) fn before_entry(checkpoint: Checkpoint) -> Checkpoint {
    checkpoint.previous().unwrap_or_default()
}

/// The page that leads to the event with this id.
pub(crate) fn url_of_id(id: &str) -> Option<String> {
    let (partition, slot) = id.rsplit_once('/')?;
    let slot: u64 = slot.parse().ok()?;
    Some(format!("/events/{}/{slot}", encoded(partition)))
}

/// The id of an event, with a link to its page.
pub(crate) fn event_link(id: &str) -> Markup {
    html! { @match url_of_id(id) { Some(url) => { a href=(url) { (id) } }, None => { (id) } } }
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
            td role="cell" { (ago(event.at)) }
            td role="cell" {
                a.chip.event href=(event_url(checkpoint)) { (event.event_type) } (event.version())
            }
            td role="cell" { (context(&site.lists.stack, &event.context)) }
            td role="cell" {
                a href=(boundary_url(partition)) { (partition) } " / " (event.slot)
            }
            td role="cell" { (visible(event.metadata.origin().principal.unwrap_or_default())) }
            td.data role="cell" { code { (cut(&one_line(&event.data), DATA_CHARS_MAX)) } }
        }
    }
}

/// The name of a context in its colour. Colours follow the order of the stack's contexts.
pub(crate) fn context(stack: &Stack, name: &str) -> Markup {
    let place = stack.contexts.iter().position(|context| context.name == name);
    let class = place.map(|place| format!("context context-{}", place % CONTEXT_COLOURS));
    html! { span class=[class] { (name) } }
}

/// The name of a slice, with a link to its page if this build has the slice.
pub(crate) fn slice_chip(stack: &Stack, context: &str, slice: &str) -> Markup {
    let mut slices = stack.slices();
    let name = format!("{context}/{slice}");
    match slices.find(|(of, it)| of.name == context && it.name == slice) {
        Some((of, it)) => chip(slice_kind(of, it), &name, &slice_url(&name)),
        None => html! { (name) },
    }
}

/// The time of an event, for a person and for a program.
pub(crate) fn time(event: &SequencedEvent) -> Markup {
    let at = event.recorded_at();
    let shown = at.trim_end_matches('Z').replace('T', " ");
    html! { time datetime=(at) { (shown) } }
}

/// JSON in one line that can be broken between its values.
pub(crate) fn one_line(data: &Value) -> String {
    let pretty = format!("{:#}", for_people(data));
    pretty.lines().map(str::trim_start).collect::<Vec<_>>().join(" ")
}

/// Sends the rows of new events, from the parameter `after` on, or from the end of a lost connection on. Rows that are
/// sent together are ordered from new to old.
pub(crate) async fn live(
    State(site): State<Arc<Site>>,
    Query(parameters): Parameters,
    headers: HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Problem> {
    let filter = Filter::of(Form::of(&parameters))?;
    let after = given(&parameters, "after");
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_json_has_no_break_of_its_own() {
        let data = serde_json::json!({ "a": [1, "b\nc"], "d": {} });
        assert_eq!(one_line(&data), r#"{ "a": [ 1, "b\nc" ], "d": {} }"#);
    }

    #[test]
    fn the_rate_is_that_of_the_events_between_the_first_and_the_last() {
        assert_eq!(rate(3, Some((61_000, 1_000))), ", 2.0 a minute");
        assert_eq!(rate(100, Some((1_000, 0))), ", 5940 a minute");
        assert_eq!((rate(1, Some((1, 1))), rate(0, None)), (String::new(), String::new()));
    }
}
