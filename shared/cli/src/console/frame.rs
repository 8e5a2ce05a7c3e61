//! What all pages have: head, navigation, what the page cost, links, and the page of an error.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use maud::{DOCTYPE, Markup, html};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use ringfence_dynamo::Meter;
use ringfence_feed::FeedError;

use crate::console::site::Site;

/// The pages of the navigation, and their titles.
const PAGES: [(&str, &str); 3] =
    [("/events", "Events"), ("/slices", "Slices"), ("/boundary", "Boundary")];
pub(crate) const TROUBLE: (&str, &str) = ("/trouble", "Trouble");

/// A page below `here`, one of the navigation. `meter` knows what it cost, if it read anything.
pub(crate) fn page(
    site: &Site,
    here: &str,
    title: &str,
    meter: Option<&Meter>,
    main: &Markup,
) -> Markup {
    let cost = meter.map(cost).unwrap_or_default();
    let trouble = site.has_trouble.then_some(&TROUBLE);
    let nav = html! {
        nav aria-label="Pages" {
            @for (path, name) in PAGES.iter().chain(trouble) {
                a href=(path) aria-current=[(*path == here).then_some("page")] { (name) }
            }
        }
    };
    let may = if site.may_write { "may change the stack" } else { "only reads" };
    document(title, &nav, main, &html! { (cost) " This console " (may) "." })
}

fn document(title: &str, nav: &Markup, main: &Markup, foot: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · Ringfence" }
                link rel="stylesheet" href="/style.css";
                script src="/script.js" defer {}
            }
            body {
                a.skip href="#main" { "Skip to the content" }
                header { a.name href="/" { "Ringfence" } (nav) }
                main #main { h1 { (title) } (main) }
                footer { (foot) }
            }
        }
    }
}

fn cost(meter: &Meter) -> String {
    let usage = meter.snapshot();
    let requests = usage.reads + usage.writes;
    let plural = if requests == 1 { "" } else { "s" };
    let units = usage.total();
    let written = match units.write > 0.0 {
        true => format!(" and {} write units", units.write),
        false => String::new(),
    };
    format!(
        "This page took {requests} request{plural} to DynamoDB and {} read units{written}.",
        units.read
    )
}

/// A part of a URL, percent-encoded.
pub(crate) fn encoded(part: &str) -> String {
    utf8_percent_encode(part, NON_ALPHANUMERIC).to_string()
}

/// A path with these parameters, as far as they have a value.
pub(crate) fn url<'a>(
    path: &str,
    parameters: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> String {
    let given = parameters.into_iter().filter(|(_, value)| !value.is_empty());
    let given: Vec<_> = given.map(|(name, value)| format!("{name}={}", encoded(value))).collect();
    if given.is_empty() { path.to_owned() } else { format!("{path}?{}", given.join("&")) }
}

/// The boundary of a tag.
pub(crate) fn tag_url(tag: &ringfence::Tag) -> String {
    boundary_url(&format!("{}:{}", tag.key, tag.value))
}

/// The page of a boundary, by its tags or by its id.
pub(crate) fn boundary_url(boundary: &str) -> String {
    url("/boundary", [("tag", boundary)])
}

/// The page of a slice, `<context>/<slice>`.
pub(crate) fn slice_url(slice: &str) -> String {
    format!("/slices/{slice}")
}

/// Why a page can't be shown.
pub(crate) struct Problem {
    status: StatusCode,
    message: String,
}

impl Problem {
    /// The request can't be understood; the message names the parameter and what it takes.
    pub(crate) fn bad(message: impl Into<String>) -> Self {
        Self { status: StatusCode::BAD_REQUEST, message: message.into() }
    }

    /// There is no such thing.
    pub(crate) fn nothing(message: impl Into<String>) -> Self {
        Self { status: StatusCode::NOT_FOUND, message: message.into() }
    }
}

impl From<FeedError> for Problem {
    fn from(error: FeedError) -> Self {
        let message = format!("The index can't be read: {:#}", anyhow::Error::from(error));
        Self { status: StatusCode::BAD_GATEWAY, message }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let title = self.status.canonical_reason().unwrap_or("Error");
        let main = html! {
            p role="alert" { (self.message) }
            p { a href="/events" { "The newest events" } }
        };
        (self.status, document(title, &html! {}, &main, &html! {})).into_response()
    }
}

/// The answer where there is no page.
pub(crate) async fn nothing() -> Problem {
    Problem::nothing("The console has no such page.")
}
