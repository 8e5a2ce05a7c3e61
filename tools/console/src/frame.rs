//! The common parts of all pages: head, navigation, cost, links, times, and the page of an error.

use std::iter::Sum;
use std::ops::Add;

use axum::extract::{self, FromRequestParts};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use maud::{DOCTYPE, Markup, PreEscaped, Render, html};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use ringfence_aws::{Clock, Meter, Units, Usage};
use ringfence_core::{rfc3339, visible_lines};
use ringfence_feed::FeedError;
use ringfence_reactors::ReactorError;
use ringfence_views::ViewError;
use serde::de::DeserializeOwned;

use crate::site::Site;

/// The pages of the navigation, and their titles.
const PAGES: [(&str, &str); 11] = [
    ("/", "Overview"),
    ("/map", "Map"),
    ("/events", "Events"),
    ("/types", "Types"),
    ("/slices", "Slices"),
    ("/views", "Views"),
    ("/lanes", "Lanes"),
    ("/deadlines", "Deadlines"),
    ("/dead-letters", "Dead letters"),
    ("/commands", "Commands"),
    ("/api", "API"),
];
pub(crate) const TROUBLE: (&str, &str) = ("/trouble", "Trouble");
/// The end of a function's log, on one machine.
pub(crate) const LOG_PATH: &str = "/trouble/log";

/// The requests to DynamoDB that a page has sent.
#[derive(Default)]
pub(crate) struct Cost {
    requests: u32,
    units: Units,
}

impl Cost {
    /// The cost of requests that only read.
    pub(crate) fn of_reads(requests: u32, read: f64) -> Self {
        Self { requests, units: Units { read, write: 0.0 } }
    }
}

impl From<Usage> for Cost {
    fn from(usage: Usage) -> Self {
        Self { requests: usage.reads + usage.writes, units: usage.total() }
    }
}

impl From<Option<Usage>> for Cost {
    fn from(usage: Option<Usage>) -> Self {
        usage.map(Self::from).unwrap_or_default()
    }
}

impl<'a, const N: usize> From<[&'a Meter; N]> for Cost {
    fn from(meters: [&'a Meter; N]) -> Self {
        meters.into_iter().map(|meter| Self::from(meter.snapshot())).sum()
    }
}

impl Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            requests: self.requests + other.requests,
            units: Units {
                read: self.units.read + other.units.read,
                write: self.units.write + other.units.write,
            },
        }
    }
}

impl Sum for Cost {
    fn sum<I: Iterator<Item = Self>>(costs: I) -> Self {
        costs.fold(Self::default(), Add::add)
    }
}

/// A page below `here`, which is a page of the navigation.
pub(crate) fn page(
    site: &Site,
    here: &str,
    title: &str,
    cost: impl Into<Cost>,
    main: &Markup,
) -> Markup {
    let cost = cost.into();
    let own = site.own.iter().map(|page| (page.path, page.title));
    let trouble = site.trouble.is_some().then_some(TROUBLE);
    let pages = PAGES.into_iter().chain(own).chain(trouble);
    let nav = html! {
        nav aria-label="Pages" {
            @for (path, name) in pages {
                a href=(path) aria-current=[(path == here).then_some("page")] { (name) }
            }
        }
    };
    let may = if site.may_write { "may change the stack" } else { "only reads" };
    document(
        title,
        &nav,
        main,
        &html! {
            @if cost.requests > 0 { (said(&cost)) " " }
            "This console " (may) "."
        },
    )
}

fn document(title: &str, nav: &Markup, main: &Markup, foot: &Markup) -> Markup {
    shown(&html! {
        (DOCTYPE)
        // Relative times follow the clock of the server.
        html lang="en" data-now=(Clock::system().now_ms()) {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · Ringfence" }
                link rel="stylesheet" href="/style.css";
                link rel="icon" href="/icon.svg";
                script src="/script.js" defer {}
            }
            body {
                a.skip href="#main" { "Skip to the content" }
                header {
                    a.name href="/" { "Ringfence" }
                    // The script asks this address for the verdict.
                    a.verdict href="/" data-verdict="/verdict" { "Is all well?" }
                    form method="get" action="/search" role="search" aria-label="Search" {
                        label.hidden for="q" { "An id or a name" }
                        input #q type="search" name="q" placeholder="Search for an id or a name";
                        button { "Search" }
                    }
                    (nav)
                }
                main #main { h1 { (title) } (main) }
                footer { (foot) }
            }
        }
    })
}

/// HTML that is safe to read: foreign text can't change the direction of a row or hide a part of itself. Values of
/// inputs stay unchanged, because they are sent again.
pub(crate) fn shown(html: &Markup) -> Markup {
    let mut shown = String::with_capacity(html.0.len());
    let mut is_input = false;
    // `maud` escapes < and > in texts and attributes, so each one left is the border of a tag.
    for part in html.0.split_inclusive('>') {
        let (text, tag) = part.split_at(part.find('<').unwrap_or(part.len()));
        shown.push_str(&if is_input { text.into() } else { visible_lines(text) });
        shown.push_str(tag);
        is_input = tag.starts_with("<textarea");
    }
    PreEscaped(shown)
}

fn said(Cost { requests, units }: &Cost) -> String {
    let plural = if *requests == 1 { "" } else { "s" };
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

/// A path with those parameters that have a value.
pub(crate) fn url<'a>(
    path: &str,
    parameters: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> String {
    let given = parameters.into_iter().filter(|(_, value)| !value.is_empty());
    let given: Vec<_> = given.map(|(name, value)| format!("{name}={}", encoded(value))).collect();
    if given.is_empty() { path.to_owned() } else { format!("{path}?{}", given.join("&")) }
}

/// The value of a parameter or a field, unless it is empty.
pub(crate) fn given<'a>(parameters: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let found = parameters.iter().find(|(parameter, _)| parameter == name);
    found.map(|(_, value)| &**value).filter(|value| !value.is_empty())
}

/// The page of a tag's boundary.
pub(crate) fn tag_url(tag: &ringfence_core::Tag) -> String {
    boundary_url(ringfence_core::BoundaryId::tag(&tag.key, &tag.value).as_str())
}

/// The page of a boundary, by its id.
pub(crate) fn boundary_url(id: &str) -> String {
    url("/boundary", [("id", id)])
}

/// The page of a slice, `<context>/<slice>`.
pub(crate) fn slice_url(slice: &str) -> String {
    format!("/slices/{slice}")
}

/// The kinds of things in a stack. Each has a colour and a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A slice to which callers give commands.
    Command,
    /// An event type, or an event.
    Event,
    /// A view.
    View,
    /// An automation, a deadline or a reactor.
    Reaction,
}

impl Kind {
    /// Its class in the style, and its name for people.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Event => "event",
            Self::View => "view",
            Self::Reaction => "reaction",
        }
    }
}

/// A link to a thing of this kind.
pub(crate) fn chip(kind: Kind, text: &str, url: &str) -> Markup {
    let class = format!("chip {}", kind.name());
    html! { a class=(class) href=(url) { span.hidden { (kind.name()) " " } (text) } }
}

/// A state with its mark. The class is `well`, `wrong`, or empty for what is neither.
pub(crate) fn state(class: &str, text: &str) -> Markup {
    html! { span class={ "state " (class) } { span class={ "dot " (class) } aria-hidden="true" {} (text) } }
}

/// How long ago a time is, with the time itself on hover. It is in milliseconds since 1970.
pub(crate) fn ago(at_ms: u64) -> Markup {
    let exact = rfc3339(at_ms);
    let relative = relative(at_ms, Clock::system().now_ms());
    html! { time datetime=(exact) title=(exact) { (relative) } }
}

fn relative(at_ms: u64, now_ms: u64) -> String {
    let seconds = at_ms.abs_diff(now_ms) / 1_000;
    let (count, unit) = match seconds {
        0..60 => (seconds, "s"),
        60..3_600 => (seconds / 60, "min"),
        3_600..172_800 => (seconds / 3_600, "h"),
        _ => (seconds / 86_400, "days"),
    };
    match at_ms > now_ms {
        _ if seconds == 0 => "now".to_owned(),
        true => format!("in {count} {unit}"),
        false => format!("{count} {unit} ago"),
    }
}

/// The parts of a page's path.
pub(crate) struct Path<T>(pub(crate) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path = extract::Path::from_request_parts(parts, state).await;
        let nothing = |why| Problem::nothing(format!("The console has no such page: {why}."));
        path.map(|extract::Path(parts)| Self(parts)).map_err(nothing)
    }
}

/// A page that can't be shown.
pub(crate) struct Problem {
    status: StatusCode,
    message: String,
    /// A link to continue, with its text.
    further: (String, &'static str),
}

impl Problem {
    fn new(status: StatusCode, message: impl Into<String>) -> Self {
        let further = ("/events".to_owned(), "The newest events");
        Self { status, message: message.into(), further }
    }

    /// The request can't be understood. The message names the parameter and its valid values.
    pub(crate) fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// Adds another link to continue.
    pub(crate) fn further(self, url: String, text: &'static str) -> Self {
        Self { further: (url, text), ..self }
    }

    /// The thing does not exist.
    pub(crate) fn nothing(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }
}

impl From<FeedError> for Problem {
    fn from(error: FeedError) -> Self {
        let message = format!("The index can't be read: {:#}.", anyhow::Error::from(error));
        Self::new(StatusCode::BAD_GATEWAY, message)
    }
}

impl From<ViewError> for Problem {
    fn from(error: ViewError) -> Self {
        anyhow::Error::from(error).context("The view can't be read").into()
    }
}

impl From<ReactorError> for Problem {
    fn from(error: ReactorError) -> Self {
        anyhow::Error::from(error).into()
    }
}

/// A source of the page has failed.
impl From<anyhow::Error> for Problem {
    fn from(error: anyhow::Error) -> Self {
        Self::new(StatusCode::BAD_GATEWAY, format!("{error:#}."))
    }
}

impl Render for Problem {
    fn render(&self) -> Markup {
        self.message.render()
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let title = self.status.canonical_reason().unwrap_or("Error");
        let main = html! {
            p role="alert" { (self.message) }
            p { a href=(self.further.0) { (self.further.1) } }
        };
        (self.status, document(title, &html! {}, &main, &html! {})).into_response()
    }
}

/// The answer for an unknown path.
pub(crate) async fn nothing() -> Problem {
    Problem::nothing("The console has no such page.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_time_has_the_largest_unit_that_says_enough() {
        let now = 1_000_000_000;
        for (at, text) in [
            (now - 999, "now"),
            (now - 59_999, "59 s ago"),
            (now - 60_000, "1 min ago"),
            (now - 172_799_000, "47 h ago"),
            (now - 172_800_000, "2 days ago"),
            (now + 3_600_000, "in 1 h"),
        ] {
            assert_eq!(relative(at, now), text);
        }
    }

    #[test]
    fn texts_are_made_visible_and_inputs_stay_as_they_are() {
        let hostile = "a>\u{202e}<b\n";
        let page = html! { p title=(hostile) { (hostile) b { (hostile) } } textarea name="f" { (hostile) } i { (hostile) } };
        let text = r"a&gt;\u202e&lt;b";
        let page = shown(&page).into_string();
        assert_eq!(page.matches(text).count(), 3, "{page}");
        assert!(page.contains("<textarea name=\"f\">a&gt;\u{202e}&lt;b\n</textarea>"), "{page}");
        assert!(page.starts_with("<p title=\"a&gt;"), "{page}");
    }
}
