//! The dry run of a command, for a page.

use maud::{Markup, html};
use ringfence_core::visible;

use crate::frame::{boundary_url, encoded};
use ringfence_cli::explain::{Explanation, ReadBoundary, Writing, Written, counted};

/// A page names at most this many events.
const EVENTS_MAX: usize = 50;

pub(crate) fn markup(explained: &Explanation) -> Markup {
    let Explanation { principal, by, reads, events, answer, writes, .. } = explained;
    let Explanation { indexes, cost, conflicts, .. } = explained;
    html! {
        h2 { "What it would do now" }
        @if let Some(by) = by { p { "Given by " (by) "." } }
        @if let Some(principal) = principal { p { "For " (visible(principal)) "." } }
        @match &answer.message {
            None if answer.repeated => { p { "It has taken effect before, under this key." } }
            None => { p { strong { "It is accepted." } } }
            Some(message) => {
                p { strong { "It is rejected: " (message) } }
                pre { code { (answer.rejection.clone().unwrap_or_default()) } }
            }
        }
        ul.list {
            @for Written { event_type, partition, slot, data } in &answer.events {
                li {
                    strong { (event_type) } " as " code { (partition) "/" (slot) }
                    @if let Some(data) = data { pre.small tabindex="0" { code { (data) } } }
                }
            }
        }
        @for conflict in conflicts {
            p role="alert" { "While it was decided: " (conflict) ". So it was decided again." }
        }
        @if !answer.repeated { p { "Nothing was added to these boundaries since, so it would meet no conflict now." } }
        h2 { "Reads" }
        ul.list {
            @for ReadBoundary { boundary, by, types, seen } in reads {
                li {
                    a href=(boundary_url(boundary)) { (boundary) } ", by " (by)
                    @if !types.is_empty() { ", for " (types.join(", ")) }
                    ": " strong { (seen) }
                }
            }
        }
        @if !events.is_empty() {
            details {
                summary { "The events that it depends on: " (events.len()) }
                ul.list {
                    @for event in events.iter().rev().take(EVENTS_MAX) {
                        li {
                            a href=(event_url(&event.id)) { (event.event_type) } " " code { (event.id) }
                            @if let Some(origin) = &event.origin { span.note { " " (origin) } }
                        }
                    }
                    @if events.len() > EVENTS_MAX { li { "and earlier ones" } }
                }
            }
        }
        h2 { "Writes" }
        @if writes.is_empty() { p { "Nothing." } }
        @if writes.len() > 1 { p { "One transaction:" } }
        ul.list {
            @for Writing { item, does, requires, bytes, units } in writes {
                li {
                    code { (item) } " " (does.as_deref().unwrap_or("is checked"))
                    @if let Some(requires) = requires { ", if " strong { (requires) } }
                    @if *bytes > 0 { ", " (bytes) " bytes" }
                    ": " (counted(*units, "unit"))
                }
            }
            @for (index, units) in indexes { li { "the index " code { (index) } ": " (counted(*units, "unit")) } }
        }
        h2 { "Cost" }
        p {
            (counted(cost.read_units, "read unit")) " in " (counted(cost.read_requests.into(), "request")) ", "
            (counted(cost.write_units, "write unit")) " in " (counted(cost.write_requests.into(), "request"))
            ", by a function that has just started."
        }
    }
}

fn event_url(id: &str) -> String {
    let (partition, slot) = id.rsplit_once('/').unwrap_or((id, ""));
    format!("/events/{}/{slot}", encoded(partition))
}
