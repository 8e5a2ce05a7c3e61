//! The page of troubles, which only a stack on one machine has: failures that no caller sees.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures::{Stream, StreamExt, stream};
use maud::{Markup, html};
use ringfence_core::visible_lines;
use serde_json::json;

use crate::frame::{self, Problem};
use crate::site::{Site, Trouble};

fn of(site: &Site) -> Result<&Trouble, Problem> {
    let nothing = || Problem::nothing("Only a stack on one machine has this page.");
    site.trouble.as_ref().ok_or_else(nothing)
}

pub(crate) async fn page(State(site): State<Arc<Site>>) -> Result<Markup, Problem> {
    let Trouble { routes, troubles } = of(&site)?;
    let (latest, _) = troubles();
    let main = html! {
        p {
            "Failures that no caller learns of: functions that fail or give no answer. Their logs say why. "
            "Work that they gave up is in " a href="/dead-letters" { "Dead letters" } "."
        }
        noscript { p { "Later failures appear only with JavaScript. Load the page again to see them." } }
        ul #trouble role="log" { @for text in latest.iter().rev() { li { (text) } } }
        h2 { "Routes of the HTTP API" }
        ul #routes { @for route in routes { li { code { (route) } } } }
    };
    Ok(frame::page(&site, frame::TROUBLE.0, frame::TROUBLE.1, None, &main))
}

/// The latest troubles and all later ones, as server-sent events.
pub(crate) async fn notices(
    State(site): State<Arc<Site>>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>> + use<>>, Problem> {
    let (latest, later) = (of(&site)?.troubles)();
    // As JSON, because a text can have several lines.
    let sent = |text: Arc<str>| Ok(Event::default().data(json!(visible_lines(&text)).to_string()));
    Ok(Sse::new(stream::iter(latest).chain(later).map(sent)).keep_alive(KeepAlive::default()))
}
