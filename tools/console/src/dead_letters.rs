//! Dead letters and failed batches in queues and buckets.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Result;
use axum::extract::{Query, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use futures::future::join_all;
use maud::{Markup, html};
use ringfence_aws::ms_of_rfc3339;
use ringfence_core::visible_lines;
use ringfence_feed::Partition;

use crate::commands::link;
use crate::frame::{
    self, Kind as Of, Path, Problem, ago, boundary_url, chip, encoded, given, slice_url, url,
};
use crate::site::Site;
use ringfence_cli::dead_letter::{To, Work};
use ringfence_cli::kept::{DeadLetterBox, Kept, Receive};
use ringfence_cli::shown::{cut, for_people};
use ringfence_cli::stack::Named;
use ringfence_cli::work::{Tried, WHY_BYTES_MAX, look};

pub(crate) const PATH: &str = "/dead-letters";
/// The most dead letters of a queue or bucket that are shown.
pub(crate) const DEAD_LETTERS_MAX: usize = 10;
/// The most characters of a dead letter in a row.
const BODY_CHARS_MAX: usize = 240;
/// The most partitions of a dead letter that have links.
const LINKS_MAX: usize = 5;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Queue,
    Bucket,
}

/// A queue or a bucket of the stack.
#[derive(Clone)]
pub(crate) struct Place {
    kind: Kind,
    pub(crate) named: Named,
}

/// A dead letter in its place.
struct Letter {
    tried: Tried,
    /// `None` if it can't be read now.
    body: Option<String>,
    at_ms: Option<u64>,
    /// What a redrive will do, and links to what the dead letter is about.
    work: Option<(String, Markup)>,
}

/// The content of a queue or bucket: the first dead letters, and whether there may be more.
struct Look {
    dead_letters: Vec<Letter>,
    may_have_more: bool,
}

impl Place {
    /// The queues and buckets that the flags name.
    fn all(site: &Site) -> Vec<Self> {
        let of = |kind, all: &[Named]| {
            all.iter().map(move |named| Self { kind, named: named.clone() }).collect::<Vec<_>>()
        };
        [of(Kind::Queue, &site.flags.queues), of(Kind::Bucket, &site.flags.buckets)].concat()
    }

    pub(crate) fn find(site: &Site, kind: &str, name: &str) -> Result<Self, Problem> {
        let all = Self::all(site).into_iter();
        let found = all.clone().find(|place| place.path() == kind && place.named.name == name);
        found.ok_or_else(|| Problem::nothing(format!("No flag names {kind} {name:?}.")))
    }

    /// Its kind, as a part of a URL.
    fn path(&self) -> &'static str {
        match self.kind {
            Kind::Queue => "queues",
            Kind::Bucket => "buckets",
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("{PATH}/{}/{}", self.path(), encoded(&self.named.name))
    }

    pub(crate) fn title(&self) -> String {
        match self.kind {
            Kind::Queue => format!("Queue {}", self.named.name),
            Kind::Bucket => format!("Bucket of {}", self.named.name),
        }
    }

    /// Whether its dead letters can be redriven.
    pub(crate) fn has_work(&self) -> bool {
        self.kind == Kind::Queue || To::of_function(&self.named.name).is_some()
    }

    pub(crate) async fn open(&self, site: &Site, receive: Receive) -> Result<DeadLetterBox> {
        let Named { name, at } = &self.named;
        match self.kind {
            Kind::Queue => Ok(DeadLetterBox::queue(&site.config, at, receive)),
            Kind::Bucket => DeadLetterBox::bucket(&site.config, at, To::of_function(name)).await,
        }
    }

    async fn look(&self, site: &Site) -> Result<Look> {
        let mut store = self.open(site, Receive::Look).await?;
        let mut dead_letters = Vec::new();
        while dead_letters.len() <= DEAD_LETTERS_MAX {
            let some = store.next().await?;
            if some.is_empty() {
                break;
            }
            dead_letters.extend(some.into_iter().map(Letter::of));
        }
        // A look at a queue returns no more than its first messages.
        let may_have_more = match self.kind {
            Kind::Queue => dead_letters.len() >= DEAD_LETTERS_MAX,
            Kind::Bucket => dead_letters.len() > DEAD_LETTERS_MAX,
        };
        dead_letters.truncate(DEAD_LETTERS_MAX);
        Ok(Look { dead_letters, may_have_more })
    }

    fn markup(&self, site: &Site, looked: &Result<Look>) -> Markup {
        let (dead_letters, may_have_more) = match looked {
            Err(error) => {
                return html! { h2 { (self.title()) } p role="alert" { (format!("{error:#}")) } };
            }
            Ok(look) => (&look.dead_letters, look.may_have_more),
        };
        let mut groups = BTreeMap::<_, Vec<_>>::new();
        for letter in dead_letters {
            groups.entry(letter.group()).or_default().push(letter);
        }
        html! {
            h2 { (self.title()) }
            @for group in groups.values() { (self.group(site, group)) }
            @if may_have_more { p.note { "It may keep more. They are shown when these are gone." } }
            @if site.may_write && dead_letters.iter().any(|letter| letter.work.is_some()) {
                form method="post" action={ (self.url()) "/redrive" } {
                    input type="hidden" name="all" value="yes";
                    button { "Redrive all of " (self.named.name) }
                }
            }
        }
    }

    /// Dead letters with one cause, and the form for those that a person chooses.
    fn group(&self, site: &Site, letters: &[&Letter]) -> Markup {
        let Some(Letter { tried, work, body, .. }) = letters.first() else { return html! {} };
        let cause = tried.kept.as_deref().or(tried.fate.cause()).unwrap_or("It does not say why");
        let failed =
            letters.iter().filter_map(|it| ms_of_rfc3339(it.tried.history.first_failed.as_ref()?));
        let kept = letters.iter().filter_map(|letter| letter.at_ms);
        let (first, last) = (failed.chain(kept.clone()).min(), kept.max());
        let tries = letters.iter().map(|letter| letter.tried.history.tries).max().unwrap_or(0);
        let count = letters.len();
        let main = html! {
            h3 { (cause) }
            p.note {
                (count) @if count == 1 { " dead letter" } @else { " dead letters" }
                @if let Some(name) = &tried.whose.function { " of " (link(site, tried.whose.in_stack(&site.lists.stack).unwrap_or(name))) }
                @if let Some(rule) = &tried.whose.rule { ", rule " (rule) }
                @if tries > 1 { ", tried " (tries) " times" }
                @if let Some(first) = first.filter(|_| first != last) { ", first " (ago(first)) }
                @if let Some(last) = last { ", last " (ago(last)) }
            }
            ul.list { @for letter in letters { li { (self.line(letter, site.may_write && letter.body.is_some())) } } }
            @match work {
                Some((does, _)) => { p { "A redrive " (does) "." } }
                None if body.is_none() => { p { "It can't be read now, so it stays. Look again later." } }
                None => { p { "It can't be redriven, so a person deletes it." } }
            }
        };
        let name = &self.named.name;
        html! {
            @match (site.may_write, work) {
                (true, None) if body.is_none() => section.letters { (main) },
                (false, _) => section.letters { (main) },
                (true, Some(_)) => form.letters method="post" action={ (self.url()) "/redrive" } {
                    (main)
                    button aria-label={ "Redrive the chosen dead letters of " (name) ": " (cause) } { "Redrive" }
                },
                (true, None) => form.letters method="post" action={ (self.url()) "/delete" } {
                    (main)
                    (reason(&format!("{name}: {cause}")))
                },
            }
        }
    }

    fn line(&self, Letter { tried, body, at_ms, work }: &Letter, can_choose: bool) -> Markup {
        let name = &*tried.name;
        let whole = url(&format!("{}/dead-letter", self.url()), [("name", name)]);
        html! {
            @if can_choose {
                input type="checkbox" name="name" value=(name) checked aria-label={ "Choose " (name) };
            }
            div {
                a href=(whole) { (name) }
                @if let Some(at_ms) = at_ms { " " (ago(*at_ms)) }
                @if let Some((_, links)) = work { " " (links) }
                @if let Some(body) = body { br; code { (cut(&in_words(body), BODY_CHARS_MAX)) } }
            }
        }
    }
}

impl Letter {
    fn of(kept: Kept) -> Self {
        let work = kept.dead_letter.as_ref().ok().map(|it| (it.work.to_string(), links(&it.work)));
        let Kept { name, body, dead_letter, at_ms, .. } = kept;
        Self { tried: look(dead_letter, name), body, at_ms, work }
    }

    /// What dead letters of a group have in common.
    fn group(&self) -> (bool, Option<String>, Option<String>, Option<String>, Option<String>) {
        let Tried { whose, kept, fate, .. } = &self.tried;
        let does = self.work.as_ref().map(|(does, _)| does.clone());
        let cause = kept.clone().or_else(|| fate.cause().map(str::to_owned));
        (does.is_none(), cause, whose.function.clone(), whose.rule.clone(), does)
    }
}

/// A body with its personal values in words, if it is JSON.
fn in_words(body: &str) -> String {
    let json = serde_json::from_str(body);
    json.map_or_else(|_| body.to_owned(), |json| for_people(&json).to_string())
}

/// Links to the event, the command or the boundaries of a dead letter.
fn links(work: &Work) -> Markup {
    match work {
        Work::Repeat(entry) => {
            let (partition, slot) = entry.id.rsplit_once('/').unwrap_or((&entry.id, ""));
            let url = format!("/events/{}/{}", encoded(partition), encoded(slot));
            chip(Of::Event, &entry.detail_type, &url)
        }
        Work::Queue(queued) => chip(Of::Command, &queued.slice, &slice_url(&queued.slice)),
        Work::Index(partitions) => html! {
            @for Partition { id, .. } in partitions.iter().take(LINKS_MAX) {
                a href=(boundary_url(id.as_str())) { (id) } " "
            }
        },
        Work::Publish(_) | Work::PublishStored(_) => html! {},
    }
}

/// The field of a reason, and the button that deletes.
pub(crate) fn reason(what: &str) -> Markup {
    html! {
        div.buttons {
            label { "Why (kept in the console's log, with the body)" input name="why" required maxlength=(WHY_BYTES_MAX); }
            button aria-label={ "Delete the chosen dead letters of " (what) } { "Delete" }
        }
    }
}

/// The content of all queues and buckets.
pub(crate) async fn page(State(site): State<Arc<Site>>) -> Markup {
    let places = Place::all(&site);
    let looked = join_all(places.iter().map(|place| place.look(&site))).await;
    let is_empty = |it: &Result<Look>| it.as_ref().is_ok_and(|look| look.dead_letters.is_empty());
    let empty = places.iter().zip(&looked).filter(|(_, it)| is_empty(it));
    let empty: Vec<_> = empty.map(|(place, _)| place.title()).collect();
    let how = "Name queues and buckets with --queue NAME=URL and --bucket FUNCTION=NAME, or with --stack.";
    let main = html! {
        @if places.is_empty() { p { (how) } }
        @for (place, looked) in places.iter().zip(&looked).filter(|(_, it)| !is_empty(it)) {
            (place.markup(&site, looked))
        }
        @if !empty.is_empty() { p.note { "Nothing is kept in: " (empty.join(", ")) "." } }
    };
    frame::page(&site, PATH, "Dead letters", None, &main)
}

/// The whole dead letter of the parameter `name`.
pub(crate) async fn whole(
    State(site): State<Arc<Site>>,
    Path((kind, store)): Path<(String, String)>,
    Query(parameters): Query<Vec<(String, String)>>,
) -> Result<impl IntoResponse, Problem> {
    let place = Place::find(&site, &kind, &store)?;
    let unnamed = || Problem::bad("name: write the name of a dead letter.");
    let name = given(&parameters, "name").ok_or_else(unnamed)?;
    let kept = place.open(&site, Receive::Look).await?.find(name).await?;
    let kept = kept.ok_or_else(|| Problem::nothing(missing(name)))?;
    let body = kept
        .body
        .ok_or_else(|| Problem::bad(format!("{name} can't be read now: look again later.")))?;
    let body = visible_lines(&body).into_owned();
    Ok(([(CONTENT_TYPE, "text/plain; charset=utf-8")], body))
}

pub(crate) fn missing(name: &str) -> String {
    format!(
        "The dead letter {name} is not there: its work may be done, another redrive may have it, or SQS did not show it now."
    )
}
