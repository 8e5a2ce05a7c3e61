//! The page of a boundary: its length, the slices that depend on it, its latest events, and its conflicts.

use std::sync::Arc;

use axum::extract::{Query, State};
use maud::{Markup, html};
use ringfence_aws::ms_of_rfc3339;
use ringfence_core::{Boundary, BoundaryId};
use ringfence_stack::Stack;

use crate::events::{DATA_CHARS_MAX, one_line, slice_chip};
use crate::frame::{self, Problem, ago, encoded, given, url};
use crate::site::Site;
use ringfence_cli::boundary::{Look, Met, Reach, look};
use ringfence_cli::shown::{ShownEvent, cut};

/// The page shows this many of the latest events.
const EVENTS_MAX: u32 = 100;

pub(crate) async fn page(
    State(site): State<Arc<Site>>,
    Query(parameters): Query<Vec<(String, String)>>,
) -> Result<Markup, Problem> {
    // A person separates several tags by spaces, but an id may have spaces too.
    let written = parameters.iter().filter(|(name, _)| name == "tag");
    let written = written.flat_map(|(_, value)| value.split_whitespace());
    let names: Vec<_> =
        given(&parameters, "id").into_iter().chain(written).map(str::to_owned).collect();
    let found = match &names[..] {
        [] => None,
        names => {
            Some(look(&site.lists, &site.logs, &site.flags.commands, names, EVENTS_MAX, true).await)
        }
    };
    let search = match &names[..] {
        [name] => search(name),
        _ => None,
    };
    let found = found.transpose().map_err(|error| {
        let problem = Problem::bad(format!("{error:#}."));
        match &search {
            Some(search) => problem.further(search.clone(), "Search the index for it"),
            None => problem,
        }
    })?;
    let title = if names.is_empty() { "Boundary".to_owned() } else { names.join(" and ") };
    let main = html! {
        form.filter method="get" action="/boundary" role="search" aria-label="Boundary" {
            label { "Tags, or the name of a partition"
                input name="tag" value=(names.join(" ")) placeholder="orderId:ord-1 productId:p-1" size="40";
            }
            button { "Look" }
        }
        @match &found {
            None => {
                p {
                    "A boundary is what a decision depends on: a tag, a set of tags, or a stream. Write one tag, or "
                    "several with spaces between them for the events that have all of them. "
                    code { "customers#ada" } " is a stream of the aggregate log, " code { "carts-1" }
                    " one of the document log, " code { "$type:InvoiceCreated" } " a type that is read alone."
                }
            }
            Some(look) => {
                (shown(&site.lists.stack, look))
                @if let Some(search) = search {
                    p { a href=(search) { "Search the index for all events with this tag" } }
                }
            }
        }
    };
    Ok(frame::page(&site, "/boundary", &title, None, &main))
}

/// The page that searches for events with a tag; `None` if the name is not a tag.
fn search(name: &str) -> Option<String> {
    let Boundary::Tag(tag) = BoundaryId::stored(name).decode()? else { return None };
    let tag = format!("{}:{}", tag.key, tag.value);
    Some(url("/events", [("tag", &*tag)]))
}

fn shown(stack: &Stack, look: &Look) -> Markup {
    html! {
        dl {
            @for (boundary, Reach { next_slot, counts }) in &look.boundaries {
                dt { code { (boundary) } }
                dd {
                    @if let Some(slot) = next_slot { p { "Its next slot is " strong { (slot) } "." } }
                    @if !counts.is_empty() {
                        p { "Its fence counts" }
                        ul { @for (name, count) in counts { li { (count) " " (name) } } }
                    }
                }
            }
        }
        h2 { "Decisions that depend on it" }
        @if look.slices.is_empty() { p { "No slice of this build reads it." } }
        div.chips {
            @for (context, slice) in look.slices.iter().filter_map(|name| name.split_once('/')) {
                (slice_chip(stack, context, slice))
            }
        }
        h2 { "Conflicts of the last day" }
        @match look.conflicts.as_deref() {
            None => {
                p { "Name the functions' logs to see them: --log-group, --logs or --stack." }
            }
            Some([]) => { p { "None." } }
            Some(conflicts) => {
                ul.list {
                    @for Met { at, slice, boundary, outcome, attempts } in conflicts {
                        li { @match ms_of_rfc3339(at) { Some(ms) => (ago(ms)), None => (at) } " " (slice) " on " code { (boundary) } ": " (outcome)
                            " after " (attempts) " attempts" }
                    }
                }
            }
        }
        h2 { "Its latest events" }
        @if look.events.is_empty() { p { "It has no events." } }
        ol.list { @for event in &look.events { li { (row(event)) } } }
    }
}

fn row(event: &ShownEvent) -> Markup {
    let url = format!("/events/{}/{}", encoded(event.partition.as_str()), event.slot);
    html! {
        a.chip.event href=(url) { (event.event_type) } (event.version()) " " code { (event.id()) } " " (ago(event.at))
        div { code { (cut(&one_line(&event.data), DATA_CHARS_MAX)) } }
    }
}
