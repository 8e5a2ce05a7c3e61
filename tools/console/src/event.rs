//! The page of one event: payload, tags, metadata, its slice and command, its cause and its effects.

use std::sync::Arc;

use axum::extract::{Query, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Redirect};
use maud::{Markup, html};
use ringfence_aws::Clock;
use ringfence_core::{BoundaryId, Origin, SequencedEvent, visible, visible_lines};
use ringfence_feed::{Checkpoint, Entry, Index, Reference};
use ringfence_stack::Stack;

use crate::events::{before_entry, context, event_url, slice_chip, time};
use crate::flow::{self, Found, Reach};
use crate::followed::{Effects, Followed, States};
use crate::frame::{self, Cost, Kind, Path, Problem, boundary_url, chip, given, tag_url};
use crate::site::Site;
use crate::touched::{Rows, Touched};
use crate::types::type_url;
use ringfence_cli::listed;
use ringfence_cli::shown::for_people;
use serde_json::Value;

/// The most bytes of a payload on the page.
const PAYLOAD_BYTES_MAX: usize = 16 * 1024;
/// The query of a page that shows the payload as it is stored.
const AS_STORED: &str = "?newest=false";
/// The parameter of a page that reads the states of effects and rows, whatever they cost.
const STATES: &str = "states";
/// The read units that a page takes if nobody asks for more.
const UNITS_MAX: f64 = 20.0;
/// A search for an event by its id reads at most this many events of the index.
const LOOKED_MAX: usize = 10_000;
/// It reads so many at once, because the event is usually near the last one of its partition.
const LOOKED_AT_ONCE: usize = 200;

pub(crate) async fn page(
    State(site): State<Arc<Site>>,
    Path(checkpoint): Path<String>,
    Query(parameters): Query<Vec<(String, String)>>,
) -> Result<Markup, Problem> {
    let reach = Reach::of(&parameters)?;
    let is_newest = is_newest(&parameters)?;
    let index = site.index();
    let nothing = || Problem::nothing(format!("No event has the checkpoint {checkpoint}."));
    let at: Checkpoint = checkpoint.parse().map_err(|_| nothing())?;
    let stack = &site.lists.stack;
    let found = flow::find(&index, stack, at, &reach).await?.ok_or_else(nothing)?;
    let event = &site.lists.shown(found.entry.event.clone(), is_newest);
    let url = event_url(at);
    let newest = if is_newest { "" } else { AS_STORED };
    let followed = followed(&site, &index, &found, &parameters).await?;
    let pretty = pretty(&for_people(&event.data));
    let shown = head(&pretty);
    let older = Some(before_entry(at)).filter(|before| *before > Checkpoint::START);
    let main = html! {
        dl {
            dt { "Id" } dd { code { (event.id()) } }
            dt { "Recorded" } dd { (time(event)) " UTC, " (frame::ago(event.at)) }
            dt { "Type" } dd { (chip(Kind::Event, &event.event_type, &type_url(&event.event_type))) }
            dt { "Context" } dd { (context(stack, &event.context)) }
            dt { "Partition" }
            dd { a href=(boundary_url(event.partition.as_str())) { (event.partition) } }
            dt { "Tags" }
            dd {
                @if event.tags.is_empty() { "none" }
                ul.tags {
                    @for tag in &event.tags {
                        li { a href=(tag_url(tag)) { (tag.key) ":" (tag.value) } }
                    }
                }
            }
            dt { "Slice" } dd { (slice(&site.lists.stack, event)) }
            dt { "By" } dd { (by(&site.lists.stack, event)) }
            dt { "Principal" } dd { (principal(event)) }
            dt { "Command" } dd { code { (event.metadata.text("commandId").unwrap_or("unknown")) } }
            dt { "Checkpoint" } dd { (at) }
        }
        h2 { "Payload" (event.version()) }
        @if event.stored.is_some() {
            p { a href={ (url) (AS_STORED) } { "The payload as it is stored" } }
        }
        @if !is_newest { p { a href=(url) { "The payload in the newest version" } } }
        pre tabindex="0" { code { (shown) } }
        @if shown.len() < pretty.len() {
            p {
                "These are the first " (shown.len()) " of " (pretty.len()) " bytes. "
                a href={ (url) "/payload" (newest) } { "The whole payload" }
            }
        }
        h2 { "What caused what" }
        (found.markup(stack, &followed.followed))
        @if let Some(units) = followed.unread {
            p.note {
                "The states of effects and rows are not read. "
                a href=(frame::url(&url, [(STATES, "true")])) { "Read them" }
                ", for about " (units) " read units."
            }
        }
        p { a href=(frame::url("/map", [("event", &*checkpoint.to_string())])) { "Replay it on the map" } }
        h2 { "Metadata" }
        @if event.metadata.iter().next().is_none() { p { "The event has none." } }
        dl {
            @for (key, value) in event.metadata.iter() {
                dt { (key) }
                dd { code { (value.as_str().map_or_else(|| value.to_string(), str::to_owned)) } }
            }
        }
        nav.pages aria-label="Other events" {
            @if let Some(older) = older { a href=(event_url(older)) rel="prev" { "The event before" } }
        }
    };
    let cost = Cost::from(index.usage()) + followed.cost;
    Ok(frame::page(&site, "/events", &event.event_type, cost, &main))
}

/// What followed the events of a flow, and what that cost.
struct Read {
    followed: Followed,
    /// The read units for the states, if these are not read because the page would cost too much.
    unread: Option<f64>,
    cost: Cost,
}

async fn followed(
    site: &Site,
    index: &Index,
    found: &Found,
    parameters: &[(String, String)],
) -> Result<Read, Problem> {
    let (stack, flow) = (&site.lists.stack, &found.flow);
    let (touched, effects) = (Touched::of(stack, flow), Effects::of(stack, flow));
    let units = touched.units() + effects.units();
    let is_asked = given(parameters, STATES) == Some("true");
    let is_cheap = index.usage().total().read + units <= UNITS_MAX;
    let tables = site.views(&site.index()).zip(site.reactors());
    let unread = (tables.is_some() && !is_asked && !is_cheap).then_some(units);
    let (mut rows, mut states, mut cost) = (None, None, Cost::default());
    if let Some((views, reactors)) = tables.filter(|_| unread.is_none()) {
        rows = Some(Rows::read(&views, &touched).await?);
        states = Some(States::read(&reactors, &effects).await?);
        cost = Cost::from(views.meters()) + Cost::from([reactors.meter()]);
    }
    let mut followed = Followed::default();
    touched.add_to(&mut followed, rows.as_ref(), Clock::system().now_ms());
    effects.add_to(&mut followed, states.as_ref());
    Ok(Read { followed, unread, cost })
}

/// The whole payload as a file of JSON.
pub(crate) async fn payload(
    State(site): State<Arc<Site>>,
    Path(checkpoint): Path<String>,
    Query(parameters): Query<Vec<(String, String)>>,
) -> Result<impl IntoResponse, Problem> {
    let entry = entry(&site.index(), &checkpoint).await?;
    let event = site.lists.shown(entry.event, is_newest(&parameters)?);
    Ok(([(CONTENT_TYPE, "application/json")], pretty(&event.data)))
}

/// Whether to show the payload in the newest version of its type. Otherwise it is shown as it is stored.
fn is_newest(parameters: &[(String, String)]) -> Result<bool, Problem> {
    let wrong = |_| Problem::bad("newest: write true or false.");
    given(parameters, "newest").map_or(Ok(true), |text| text.parse().map_err(wrong))
}

/// Redirects to the page of the event with this id.
pub(crate) async fn find(
    State(site): State<Arc<Site>>,
    Path((partition, slot)): Path<(String, u64)>,
) -> Result<Redirect, Problem> {
    let index = site.index();
    let partition = BoundaryId::stored(partition);
    let nothing = |why: &str| Problem::nothing(format!("The event {partition}/{slot} {why}."));
    let indexed = index.indexed(&partition, slot).await?;
    let after = indexed.ok_or_else(|| nothing("is not in the index"))?;
    let (mut before, mut looked) = (after, 0);
    while looked < LOOKED_MAX {
        let references = index.references(before, LOOKED_AT_ONCE, false).await?;
        let is_it =
            |(_, it): &&(Checkpoint, Reference)| (&it.partition.id, it.slot) == (&partition, slot);
        if let Some((checkpoint, _)) = references.iter().find(is_it) {
            return Ok(Redirect::to(&event_url(*checkpoint)));
        }
        let Some((last, _)) = references.last() else { break };
        (before, looked) = (before_entry(*last), looked + references.len());
    }
    let why = format!("is not among the {LOOKED_MAX} events before the last of its partition");
    Err(nothing(&why))
}

/// The entry that ends at a checkpoint.
async fn entry(index: &Index, checkpoint: &str) -> Result<Entry, Problem> {
    let nothing = || Problem::nothing(format!("No event has the checkpoint {checkpoint}."));
    let at: Checkpoint = checkpoint.parse().map_err(|_| nothing())?;
    if at > index.end().await? {
        return Err(nothing());
    }
    let found = index.before(at, 1).await?.pop().map(listed).transpose()?;
    found.filter(|entry| entry.checkpoint == at).ok_or_else(nothing)
}

fn pretty(data: &Value) -> String {
    visible_lines(&format!("{data:#}")).into_owned()
}

/// The beginning of a payload, as long as the page shows it.
fn head(pretty: &str) -> &str {
    &pretty[..pretty.floor_char_boundary(PAYLOAD_BYTES_MAX)]
}

/// The slice that wrote an event, or all that write its type if the event does not name its slice.
fn slice(stack: &Stack, event: &SequencedEvent) -> Markup {
    if let Some(slice) = event.metadata.origin().slice {
        return slice_chip(stack, &event.context, slice);
    }
    let writers: Vec<_> = writers(stack, event).collect();
    html! {
        "not recorded: an older version wrote the event, or it was imported. "
        @match &*writers {
            [] => { "No slice of this build writes the type." }
            several => { "The type is written by " (several.join(", ")) "." }
        }
    }
}

/// The sender of an event's command: a caller, or a part of the stack.
fn by(stack: &Stack, event: &SequencedEvent) -> Markup {
    let Origin { slice, by, .. } = event.metadata.origin();
    match (by, slice) {
        (Some(by), _) => slice_chip(stack, &event.context, by),
        (None, Some(_)) => html! { "a caller" },
        (None, None) => html! { "not recorded" },
    }
}

fn principal(event: &SequencedEvent) -> Markup {
    match event.metadata.origin() {
        Origin { principal: Some(principal), .. } => html! { code { (visible(principal)) } },
        Origin { slice: Some(_), .. } => html! { "none: the caller is not known" },
        Origin { .. } => html! { "not recorded" },
    }
}

/// The slices that write the type of an event.
fn writers<'a>(
    stack: &'a Stack,
    event: &'a SequencedEvent,
) -> impl Iterator<Item = &'static str> + 'a {
    let of_context = stack.slices().filter(|(context, _)| context.name == event.context);
    let writes =
        of_context.filter(|(_, slice)| slice.writes.iter().any(|it| *it == event.event_type));
    writes.map(|(_, slice)| slice.name)
}
