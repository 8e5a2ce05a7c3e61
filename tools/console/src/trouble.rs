//! The page of troubles, which only a stack on one machine has: failures that no caller sees.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Query, State};
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures::{Stream, StreamExt};
use maud::{Markup, html};
use ringfence_aws::Clock;
use ringfence_core::visible_lines;

use crate::commands::link;
use crate::frame::{self, Problem, ago, given, url};
use crate::site::{Site, Trouble};

/// The page of a log has at most its last lines of so many bytes.
const LOG_BYTES_MAX: u64 = 64 * 1024;

/// Equal troubles.
#[derive(Debug, PartialEq)]
struct Several {
    text: Arc<str>,
    count: usize,
    /// The ages of the first and the last one.
    first: Duration,
    last: Duration,
}

fn of(site: &Site) -> Result<&Trouble, Problem> {
    let nothing = || Problem::nothing("Only a stack on one machine has this page.");
    site.trouble.as_ref().ok_or_else(nothing)
}

/// Counts equal troubles once. The latest come first.
fn counted(troubles: Vec<(Duration, Arc<str>)>) -> Vec<Several> {
    let mut found: Vec<Several> = Vec::new();
    for (age, text) in troubles {
        let place = found.iter().position(|it| it.text == text);
        let earlier = place.map(|place| found.remove(place));
        let (count, first) = earlier.map_or((0, age), |it| (it.count, it.first));
        found.push(Several { text, count: count + 1, first, last: age });
    }
    found.reverse();
    found
}

/// The function that a trouble names.
fn function(text: &str) -> Option<&str> {
    let (_, after) = text.split_once("function ")?;
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let name = &after[..after.find(|c| !is_of_name(c)).unwrap_or(after.len())];
    Some(name).filter(|name| !name.is_empty())
}

pub(crate) async fn page(State(site): State<Arc<Site>>) -> Result<Markup, Problem> {
    let Trouble { routes, troubles } = of(&site)?;
    let all = counted(troubles().0);
    let main = html! {
        p { "Failures that no caller learns of: functions that fail or give no answer." }
        noscript { p.note { "Load the page again to see later failures." } }
        div #trouble aria-live="polite" {
            @if all.is_empty() { p { "No failure since the stack was started." } }
            @else { ul.list { @for it in &all { li { (several(&site, it)) } } } }
        }
        details {
            summary { "Routes of the HTTP API (" (routes.len()) ")" }
            ul #routes { @for route in routes { li { code { (route) } } } }
        }
    };
    Ok(frame::page(&site, frame::TROUBLE.0, frame::TROUBLE.1, None, &main))
}

fn several(site: &Site, Several { text, count, first, last }: &Several) -> Markup {
    let now_ms = Clock::system().now_ms();
    let at = |age: &Duration| {
        let age_ms = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
        ago(now_ms.saturating_sub(age_ms))
    };
    html! {
        p.note {
            @if let Some(name) = function(text) { (link(site, name)) " " }
            @if *count > 1 { strong { (count) " times" } ", first " (at(first)) ", last " }
            (at(last))
            @if let Some(name) = function(text) {
                ", " a href=(url(frame::LOG_PATH, [("function", name)])) { "its log" }
            }
        }
        (text)
    }
}

/// The end of a function's log.
pub(crate) async fn log(
    State(site): State<Arc<Site>>,
    Query(parameters): Query<Vec<(String, String)>>,
) -> Result<Markup, Problem> {
    of(&site)?;
    let name = given(&parameters, "function").unwrap_or_default();
    let log = site.flags.commands.log_of(name, LOG_BYTES_MAX)?;
    let (log, is_cut) =
        log.ok_or_else(|| Problem::nothing(format!("The stack has no log of {name:?}.")))?;
    let title = format!("The log of {name}");
    let main = html! {
        @if is_cut { p.note { "These are its last lines, of " (LOG_BYTES_MAX) " bytes at most." } }
        pre tabindex="0" { code { (visible_lines(&log)) } }
    };
    Ok(frame::page(&site, frame::TROUBLE.0, &title, None, &main))
}

/// A server-sent event for each new trouble.
pub(crate) async fn notices(
    State(site): State<Arc<Site>>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>> + use<>>, Problem> {
    let (_, later) = (of(&site)?.troubles)();
    let signals = later.map(|()| Ok(Event::default().data("new")));
    Ok(Sse::new(signals).keep_alive(KeepAlive::default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_troubles_are_counted_once_and_the_latest_come_first() {
        let seconds = Duration::from_secs;
        let all = [(9, "a"), (8, "b"), (7, "a"), (6, "c")];
        let all = all.map(|(age, text)| (seconds(age), Arc::from(text))).to_vec();
        let several = |text: &str, count, first, last| Several {
            text: text.into(),
            count,
            first: seconds(first),
            last: seconds(last),
        };
        let found = [several("c", 1, 6, 6), several("a", 2, 9, 7), several("b", 1, 8, 8)];
        assert_eq!(counted(all), found);
    }

    #[test]
    fn a_trouble_names_its_function() {
        assert_eq!(function("function place-order failed: {}"), Some("place-order"));
        assert_eq!(function("there is no function x"), Some("x"));
        assert_eq!(function("function  failed"), None);
        assert_eq!(function("the bus is away"), None);
    }
}
