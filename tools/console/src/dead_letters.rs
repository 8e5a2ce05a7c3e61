//! Dead letters and failed batches in queues and buckets, and their redrive.

use std::sync::Arc;

use anyhow::{Result, bail};
use axum::Form;
use axum::extract::{Query, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Redirect};
use futures::future::join_all;
use maud::{Markup, html};
use ringfence_core::visible_lines;

use crate::events::cut;
use crate::frame::{self, Path, Problem, encoded, given, url};
use crate::site::Site;
use ringfence_cli::dead_letter::To;
use ringfence_cli::kept::{DeadLetterBox, Receive};
use ringfence_cli::stack::Named;
use ringfence_cli::work::{Fate, SENT, Tried, each, look};

const PATH: &str = "/dead-letters";
/// The most dead letters of a queue or bucket that are shown.
const DEAD_LETTERS_MAX: usize = 10;
/// The most characters of a dead letter in a row.
const BODY_CHARS_MAX: usize = 240;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Queue,
    Bucket,
}

/// A queue or a bucket of the stack.
#[derive(Clone)]
struct Place {
    kind: Kind,
    named: Named,
}

/// The content of a queue or bucket: the first dead letters with their bodies, and whether there may be more.
struct Look {
    dead_letters: Vec<(Tried, String)>,
    may_have_more: bool,
}

impl Place {
    /// The queues and buckets that the flags name.
    fn all(site: &Site) -> Vec<Self> {
        let of = |kind, all: &[Named]| {
            all.iter().map(move |named| Self { kind, named: named.clone() }).collect::<Vec<_>>()
        };
        [of(Kind::Queue, &site.queues), of(Kind::Bucket, &site.buckets)].concat()
    }

    fn find(site: &Site, kind: &str, name: &str) -> Result<Self, Problem> {
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

    fn url(&self) -> String {
        format!("{PATH}/{}/{}", self.path(), encoded(&self.named.name))
    }

    fn title(&self) -> String {
        match self.kind {
            Kind::Queue => format!("Queue {}", self.named.name),
            Kind::Bucket => format!("Bucket of {}", self.named.name),
        }
    }

    /// Whether its dead letters can be redriven.
    fn has_work(&self) -> bool {
        self.kind == Kind::Queue || To::of_function(&self.named.name).is_some()
    }

    async fn open(&self, site: &Site, receive: Receive) -> Result<DeadLetterBox> {
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
            dead_letters.extend(
                some.into_iter().map(|kept| (look(kept.dead_letter, kept.name), kept.body)),
            );
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
        let may_redrive = site.may_write && self.has_work();
        html! {
            h2 { (self.title()) }
            @match looked {
                Err(error) => p role="alert" { (format!("{error:#}")) },
                Ok(Look { dead_letters, .. }) if dead_letters.is_empty() => p { "It keeps nothing." },
                Ok(Look { dead_letters, may_have_more }) => {
                    table.dead-letters role="table" {
                        thead role="rowgroup" {
                            tr role="row" {
                                @for column in ["Name", "Cause", "Body"] {
                                    th role="columnheader" scope="col" { (column) }
                                }
                            }
                        }
                        tbody role="rowgroup" {
                            @for (dead_letter, body) in dead_letters { (self.line(dead_letter, body, may_redrive)) }
                        }
                    }
                    @if *may_have_more { p.note { "It may keep more. They are shown when these are gone." } }
                    @if may_redrive { (self.form(None)) }
                }
            }
        }
    }

    fn line(&self, dead_letter: &Tried, body: &str, may_redrive: bool) -> Markup {
        let whole = url(&format!("{}/dead-letter", self.url()), [("name", &*dead_letter.name)]);
        html! {
            tr role="row" {
                td role="cell" { a href=(whole) { (dead_letter.name) } }
                td role="cell" {
                    (why(dead_letter))
                    @if may_redrive { (self.form(Some(&dead_letter.name))) }
                }
                td.data role="cell" { code { (cut(body, BODY_CHARS_MAX)) } }
            }
        }
    }

    /// The form that redrives the dead letter of this name, or all.
    fn form(&self, dead_letter: Option<&str>) -> Markup {
        html! {
            form method="post" action={ (self.url()) "/redrive" } {
                @if let Some(name) = dead_letter { input type="hidden" name="name" value=(name); }
                button {
                    @match dead_letter { Some(_) => "Redrive", None => { "Redrive all of " (self.named.name) } }
                }
            }
        }
    }
}

/// Why a dead letter was kept, its function, its past failures, and why it stays.
fn why(Tried { whose, history, kept, fate, .. }: &Tried) -> Markup {
    html! {
        @if let Some(kept) = kept { (kept) }
        @else if fate.cause().is_none() { "It does not say why." }
        span.note { (whose.to_string()) (history.to_string()) }
        @if let Some(cause) = fate.cause() { span.bad { " It stays: " (cause) "." } }
    }
}

/// The content of all queues and buckets.
pub(crate) async fn page(State(site): State<Arc<Site>>) -> Markup {
    let places = Place::all(&site);
    let looked = join_all(places.iter().map(|place| place.look(&site))).await;
    let how = "Name queues and buckets with --queue NAME=URL and --bucket FUNCTION=NAME, or with --stack.";
    let main = html! {
        @if places.is_empty() { p { (how) } }
        @for (place, looked) in places.iter().zip(&looked) { (place.markup(&site, looked)) }
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
    let missing = || Problem::bad("name: write the name of a dead letter.");
    let name = given(&parameters, "name").ok_or_else(missing)?;
    let kept = place.open(&site, Receive::Look).await?.find(name).await?;
    let kept = kept.ok_or_else(|| Problem::nothing(gone(name)))?;
    let body = visible_lines(&kept.body).into_owned();
    Ok(([(CONTENT_TYPE, "text/plain; charset=utf-8")], body))
}

fn gone(name: &str) -> String {
    format!(
        "The dead letter {name} is not there: its work may be done, another redrive may have it, or SQS did not show it now."
    )
}

/// Starts the redrive of the dead letter in the field `name`, or of all, and redirects to the page of its progress.
pub(crate) async fn redrive(
    State(site): State<Arc<Site>>,
    Path((kind, store)): Path<(String, String)>,
    Form(form): Form<Vec<(String, String)>>,
) -> Result<Redirect, Problem> {
    let place = Place::find(&site, &kind, &store)?;
    if !place.has_work() {
        let why = format!("failed batches of {} need no redrive: delete them.", place.named.name);
        return Err(Problem::bad(why));
    }
    let does = site.does()?;
    let name = given(&form, "name").map(str::to_owned);
    let title = match &name {
        Some(name) => format!("{}: redrive of {name}", place.title()),
        None => format!("{}: redrive", place.title()),
    };
    let of_job = site.clone();
    let url = site.jobs.start(title, (PATH, PATH.to_owned()), async move |job| {
        let mut tried = Vec::new();
        match name {
            Some(name) => {
                // A look hides no message, so a redrive of one dead letter hides no other.
                let mut store = place.open(&of_job, Receive::Look).await?;
                let Some(kept) = store.find(&name).await? else { bail!(gone(&name)) };
                tried.push(does.redrive(&store, kept).await);
            }
            None => {
                let mut store = place.open(&of_job, Receive::Work).await?;
                let on_tried = |dead_letter| {
                    tried.push(dead_letter);
                    job.say(format!("{} tried.", tried.len()));
                };
                if let Err(error) = each(&mut store, Some(&does), on_tried).await {
                    return Ok(html! {
                        p role="alert" { "It ended early: " (format!("{error:#}")) }
                        (outcome(&tried))
                    });
                }
            }
        }
        Ok(outcome(&tried))
    });
    Ok(Redirect::to(&url))
}

/// The results of dead letters.
fn outcome(tried: &[Tried]) -> Markup {
    let count = |is_it: fn(&Fate) -> bool| tried.iter().filter(|it| is_it(&it.fate)).count();
    let (done, sent) =
        (count(|fate| matches!(fate, Fate::Done)), count(|fate| matches!(fate, Fate::Sent)));
    html! {
        p role="status" {
            (done) " done, "
            @if sent > 0 { (sent) " sent again, " }
            (tried.len() - done - sent) " left."
        }
        @if sent > 0 { p { (SENT) ". " a href=(PATH) { "Look again" } } }
        ul {
            @for dead_letter in tried {
                li {
                    code { (dead_letter.name) } ": "
                    @match dead_letter.fate {
                        Fate::Done => "done",
                        Fate::Sent => "sent again",
                        _ => (why(dead_letter)),
                    }
                }
            }
        }
    }
}
