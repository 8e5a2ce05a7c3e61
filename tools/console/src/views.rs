//! The pages of views: the progress of each, its rows, and its rebuild.

use std::sync::Arc;

use axum::Form;
use axum::extract::{Query, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Redirect};
use futures::future::try_join_all;
use maud::{Markup, html};
use ringfence_core::visible_lines;
use ringfence_feed::{Checkpoint, FeedError, Index};
use ringfence_views::query_views::{Ask, Asked, token};
use ringfence_views::{Content, Definition, Parked, Registered, Shown, ViewRead, ViewStanding};
use serde_json::Value;

use crate::events::event_link;
use crate::frame::{self, Cost, Kind, Path, Problem, chip, encoded, given, state, url};
use crate::site::Site;
use ringfence_cli::checkpoint::place;
use ringfence_cli::shown::{cut, for_people};
use ringfence_cli::view;

/// The most characters of a row in a list.
const ROW_CHARS_MAX: usize = 240;
/// The most bytes of a row on its page.
const ROW_BYTES_MAX: usize = 16 * 1024;
/// The message when no flag names the table of the views.
pub(crate) const UNNAMED: &str = "The views and the checkpoints of their readers are in a table: name it with \
                                  --view-table, VIEW_TABLE or --stack.";

type Parameters = Query<Vec<(String, String)>>;

/// The progress of a reader, also in words.
pub(crate) struct Reached {
    pub(crate) checkpoint: Checkpoint,
    pub(crate) place: String,
}

impl Reached {
    pub(crate) async fn of(
        checkpoint: Checkpoint,
        index: &Index,
        end: Checkpoint,
    ) -> Result<Self, FeedError> {
        // A reader may have moved on after the end was read.
        let end = end.max(checkpoint);
        let behind = index.count(checkpoint, end).await?;
        Ok(Self { checkpoint, place: place(checkpoint, end, behind) })
    }
}

/// The views of the stack with their progress.
pub(crate) async fn page(State(site): State<Arc<Site>>) -> Result<Markup, Problem> {
    let index = site.index();
    let Some(reader) = site.views(&index) else {
        let main = html! { p { (UNNAMED) } };
        return Ok(frame::page(&site, "/views", "Views", Cost::default(), &main));
    };
    let views = site.lists.stack.rows();
    let names: Vec<_> = views.iter().map(|view| view.name).collect();
    let end = index.end().await?;
    let standing = reader.standing(&names, end).await?;
    let dues: Vec<_> = site.lists.stack.contexts.iter().flat_map(|it| &it.dues).collect();
    let is_due = |view: &Definition| dues.iter().any(|due| due.name == view.name);
    let rows = views.iter().zip(standing);
    let rows = rows.map(|(view, it)| of_view((view, is_due(view)), it, &index, end));
    let rows = try_join_all(rows).await?;
    let main = html! {
        @if views.is_empty() { p { "The stack has no views." } }
        @else {
            div.wide tabindex="0" role="region" aria-label="Views" {
                table.figures {
                    thead {
                        tr {
                            @for column in ["View", "Generation", "Checkpoint", "Lag", "Parked", "Rebuild"] {
                                th scope="col" { (column) }
                            }
                        }
                    }
                    tbody { @for row in &rows { (row) } }
                }
            }
            p.note { "The index ends at checkpoint " (end) "." }
        }
    };
    Ok(frame::page(&site, "/views", "Views", reader.meters(), &main))
}

async fn of_view(
    (view, is_due): (&Definition, bool),
    standing: Option<ViewStanding>,
    index: &Index,
    end: Checkpoint,
) -> Result<Markup, Problem> {
    let cells = match &standing {
        None => html! { td colspan="5" { (state("", "No projector has run it yet.")) } },
        Some(ViewStanding { registered, served, built }) => {
            let reached = Reached::of(*served, index, end).await?;
            html! {
                td { (generation(registered)) }
                td.number { (reached.checkpoint) }
                td { (reached.place) }
                td {
                    @match registered.parked + registered.parked_events {
                        0 => (state("well", "none")),
                        count => (state("wrong", &count.to_string())),
                    }
                }
                td { (rebuilding(registered, *built)) }
            }
        }
    };
    let kind = if is_due { Kind::Reaction } else { Kind::View };
    Ok(html! {
        tr {
            th scope="row" {
                (chip(kind, view.name, &view_url(view.name)))
                @if is_due { span.note { " its deadlines" } }
            }
            (cells)
        }
    })
}

/// The generation that is served.
fn generation(Registered { live, until, .. }: &Registered) -> Markup {
    html! {
        (live)
        @if let Some(until) = until { ", served from checkpoint " (until) " on" }
    }
}

/// The generation that is being built or deleted.
fn rebuilding(registered: &Registered, built: Option<Checkpoint>) -> Markup {
    let at = built.unwrap_or_default();
    html! {
        @match (registered.building, registered.retiring) {
            (Some(next), _) => { "generation " (next) " is at checkpoint " (at) }
            (None, Some(old)) => { "rows of generation " (old) " are left to delete" }
            (None, None) => { "none" }
        }
    }
}

fn view_url(view: &str) -> String {
    format!("/views/{}", encoded(view))
}

/// The view of this name.
fn named(site: &Site, name: &str) -> Result<Definition, Problem> {
    let found = site.lists.stack.rows().into_iter().find(|view| view.name == name);
    found.ok_or_else(|| Problem::nothing(format!("The stack has no view {name:?}.")))
}

fn unnamed() -> Problem {
    Problem::nothing(UNNAMED)
}

/// Why a read returned nothing.
fn not_served<T>(read: ViewRead<T>) -> Result<T, Problem> {
    let why = match read {
        ViewRead::Found(found) => return Ok(found),
        ViewRead::UnknownView => "The stack has no such view.".to_owned(),
        ViewRead::Building { until, at } => {
            format!("The view is new: it is served from checkpoint {until} on, and is at {at}.")
        }
        ViewRead::Behind { .. } | ViewRead::Ahead { .. } => {
            "The view does not show the event yet.".to_owned()
        }
    };
    Err(Problem::nothing(why))
}

/// Parses a query of a view, with the limits and tokens of its HTTP API.
fn asked(
    view: &Definition,
    parameters: &[(String, String)],
    names: &[&str],
) -> Result<Asked, Problem> {
    let fields = names.iter().filter_map(|name| Some((*name, given(parameters, name)?)));
    let fields = fields.chain([("view", view.name)]);
    let fields = fields.map(|(name, value)| (name.to_owned(), value.into()));
    let ask = Ask::parse(&Value::Object(fields.collect()));
    ask.map(|ask| ask.asked).map_err(|wrong| Problem::bad(format!("{}.", wrong.detail())))
}

/// Rows of a view whose ids begin with a text.
pub(crate) async fn rows(
    State(site): State<Arc<Site>>,
    Path(name): Path<String>,
    Query(parameters): Parameters,
) -> Result<Markup, Problem> {
    let view = named(&site, &name)?;
    let index = site.index();
    let reader = site.views(&index).ok_or_else(unnamed)?;
    let end = index.end().await?;
    let standing = reader.standing(&[view.name], end).await?.pop().flatten();
    let Asked::List(page) = asked(&view, &parameters, &["prefix", "after"])? else {
        unreachable!("no id is asked for")
    };
    let prefix = &*page.prefix;
    let listed = not_served(reader.list(view.name, &page, None).await?);
    let unread = match site.projector(site.index()) {
        Some(projector) => projector.parked_events(&view).await?,
        None => Vec::new(),
    };
    let path = view_url(view.name);
    let main = html! {
        @if let Some(ViewStanding { registered, served, built }) = &standing {
            @let reached = Reached::of(*served, &index, end).await?;
            dl {
                dt { "Generation" } dd { (generation(registered)) }
                dt { "Checkpoint" } dd { (reached.checkpoint) ", " (reached.place) }
                dt { "Parked rows" } dd { (registered.parked) }
                dt { "Parked events" } dd { (unread.len()) }
                dt { "Rebuild" } dd { (rebuilding(registered, *built)) }
            }
        }
        @for parked in &unread { p role="alert" { (why_parked(parked)) } }
        @if standing.as_ref().is_some_and(|it| it.registered.parked > 0) {
            p role="alert" {
                "Rows are parked. " code { "ringfence parked show " (view.name) } " reads all rows of the view, and lists these \
                 with their causes."
            }
        }
        @if site.may_write { (rebuild_form(&path)) }
        h2 { "Rows" }
        div.filters {
            form.filter method="get" action=(path) role="search" aria-label="Rows by the beginning of their ids" {
                label { "Ids that begin with" input name="prefix" value=(prefix) placeholder="any"; }
                button { "List" }
            }
            form.filter method="get" action={ (path) "/row" } role="search" aria-label="One row" {
                label { "Id" input name="id" required; }
                button { "Show" }
            }
        }
        @match &listed {
            Err(problem) => { p { (problem) } }
            Ok(listed) => {
                table.rows role="table" {
                    thead role="rowgroup" {
                        tr role="row" {
                            @for column in ["Id", "As of", "Row"] { th role="columnheader" scope="col" { (column) } }
                        }
                    }
                    tbody role="rowgroup" { @for row in &listed.rows { (line(&path, row)) } }
                }
                p.empty { "No row here." }
                nav.pages aria-label="More rows" {
                    @if page.after.is_some() { a href=(url(&path, [("prefix", prefix)])) rel="first" { "First" } }
                    @if let Some(next) = &listed.next {
                        a href=(url(&path, [("prefix", prefix), ("after", &*token(view.name, &page, next))])) rel="next" { "Next" }
                    }
                }
            }
        }
    };
    Ok(frame::page(&site, "/views", view.name, reader.meters(), &main))
}

fn rebuild_form(path: &str) -> Markup {
    html! {
        form.filter method="post" action={ (path) "/rebuild" } {
            button { "Rebuild" }
            label.choice { input type="checkbox" name="from-start" value="yes"; "Delete the rows of an unfinished rebuild" }
        }
        p.note {
            "A rebuild folds all rows from the first event on, with the view of this build. The old rows are served \
             until the new ones have caught up."
        }
    }
}

fn line(path: &str, Shown { id, content, as_of }: &Shown) -> Markup {
    html! {
        tr role="row" {
            td role="cell" { a href=(url(&format!("{path}/row"), [("id", &**id)])) { (id) } }
            td role="cell" { (events_until(*as_of)) }
            td.data role="cell" {
                @match content {
                    Content::Row(row) => code { (cut(&for_people(row).to_string(), ROW_CHARS_MAX)) },
                    Content::Parked(parked) => (why_parked(parked)),
                }
            }
        }
    }
}

/// A checkpoint, with a link to the events up to it.
fn events_until(checkpoint: Checkpoint) -> Markup {
    let text = checkpoint.to_string();
    html! { a href=(url("/events", [("before", &*text)])) { (text) } }
}

fn why_parked(Parked { event, cause }: &Parked) -> Markup {
    html! { "Parked: event " (event_link(event)) ": " (cause) }
}

/// The row with the id in the parameter `id`, if the view has it.
async fn found(
    site: &Site,
    view: &Definition,
    parameters: &[(String, String)],
) -> Result<(Shown, Cost), Problem> {
    let reader = site.views(&site.index()).ok_or_else(unnamed)?;
    let Asked::Row(id) = asked(view, parameters, &["id"])? else {
        return Err(Problem::bad("id: write the id of a row."));
    };
    let nothing = || Problem::nothing(format!("The view {} has no row {id:?}.", view.name));
    let found = not_served(reader.row(view.name, &id, None).await?)?.ok_or_else(nothing)?;
    Ok((found, reader.meters().into()))
}

/// One row.
pub(crate) async fn row(
    State(site): State<Arc<Site>>,
    Path(name): Path<String>,
    Query(parameters): Parameters,
) -> Result<Markup, Problem> {
    let view = named(&site, &name)?;
    let (Shown { id, content, as_of }, cost) = found(&site, &view, &parameters).await?;
    let path = view_url(view.name);
    let main = html! {
        dl {
            dt { "View" } dd { a href=(path) { (view.name) } }
            dt { "As of" } dd { "checkpoint " (events_until(as_of)) }
        }
        h2 { "Row" }
        @match &content {
            Content::Parked(parked) => p { (why_parked(parked)) },
            Content::Row(row) => {
                @let pretty = pretty(&for_people(row));
                @let shown = &pretty[..pretty.floor_char_boundary(ROW_BYTES_MAX)];
                pre tabindex="0" { code { (shown) } }
                @if shown.len() < pretty.len() {
                    p {
                        "These are the first " (shown.len()) " of " (pretty.len()) " bytes. "
                        a href=(url(&format!("{path}/row/whole"), [("id", &*id)])) { "The whole row" }
                    }
                }
            }
        }
    };
    Ok(frame::page(&site, "/views", &id, cost, &main))
}

fn pretty(row: &Value) -> String {
    visible_lines(&format!("{row:#}")).into_owned()
}

/// The whole row as a file of JSON.
pub(crate) async fn whole(
    State(site): State<Arc<Site>>,
    Path(name): Path<String>,
    Query(parameters): Parameters,
) -> Result<impl IntoResponse, Problem> {
    let view = named(&site, &name)?;
    match found(&site, &view, &parameters).await?.0.content {
        Content::Row(row) => Ok(([(CONTENT_TYPE, "application/json")], pretty(&row))),
        Content::Parked(Parked { cause, .. }) => {
            Err(Problem::nothing(format!("The row is parked: {cause}.")))
        }
    }
}

/// Starts the rebuild of a view, and redirects to the page of its progress.
pub(crate) async fn rebuild(
    State(site): State<Arc<Site>>,
    Path(name): Path<String>,
    Form(form): Form<Vec<(String, String)>>,
) -> Result<Redirect, Problem> {
    let view = named(&site, &name)?;
    let index = site.index();
    let end = index.end().await?;
    let projector = site.projector(index).ok_or_else(unnamed)?;
    let from_start = given(&form, "from-start") == Some("yes");
    let from = ("/views", view_url(view.name));
    let url = site.jobs.start(format!("Rebuild of {}", view.name), from, async move |job| {
        let rebuilt = view::run(&projector, end, &view, from_start, &|line| job.say(line)).await?;
        Ok(html! {
            p role="status" { (rebuilt) "." }
            @if rebuilt.parked > 0 {
                p role="alert" { (rebuilt.parked) " rows and events are parked. The page of the view has the causes." }
            }
        })
    });
    Ok(Redirect::to(&url))
}
