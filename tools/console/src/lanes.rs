//! The page of lanes: the progress of each reactor and ordered automation, and its lanes that wait or are parked.

use std::sync::Arc;

use axum::Form;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use ringfence_aws::ms_of_rfc3339;
use ringfence_core::{BoundaryId, visible};
use ringfence_feed::Checkpoint;
use ringfence_reactors::{ParkedLane, ReactorError, ReactorTable, Unpark};

use crate::frame::{self, Cost, Path, Problem, ago, encoded, given, state, url};
use crate::site::Site;
use crate::views::UNNAMED;
use ringfence_cli::checkpoint::place;
use ringfence_cli::explain::counted;
use ringfence_cli::lanes::{next, readers};
use ringfence_cli::work::ensure_why;

const PATH: &str = "/lanes";

fn table(site: &Site) -> Result<ReactorTable, Problem> {
    site.reactors().ok_or_else(|| Problem::nothing(UNNAMED))
}

/// The reactors and ordered automations, with their progress and their lanes that wait or are parked.
pub(crate) async fn page(State(site): State<Arc<Site>>) -> Result<Markup, Problem> {
    lanes(&site, None).await
}

/// The same page, below the reason for which a request was refused.
async fn lanes(site: &Site, refused: Option<&ReactorError>) -> Result<Markup, Problem> {
    let names = readers(&site.lists.stack);
    let (table, index) = (table(site)?, site.index());
    let mut found = Vec::new();
    for name in &names {
        found.push((*name, table.standing(name).await?, table.parked(name).await?));
    }
    // Read after the checkpoints, so no checkpoint is beyond it.
    let end = index.end().await?;
    let mut places = Vec::new();
    for (_, standing, _) in &found {
        let at = standing.checkpoint.unwrap_or(Checkpoint::START);
        places.push(place(at, end, index.count(at, end).await?));
    }
    let main = html! {
        @if let Some(refused) = refused { p role="alert" { (visible(&refused.to_string())) "." } }
        @if names.is_empty() { p { "The stack has no reactors and no ordered automations." } }
        @for ((name, standing, lanes), place) in found.iter().zip(&places) {
            @let parked = lanes.iter().filter(|lane| is_parked(lane)).count();
            h2 { (name) }
            p {
                @match (parked, standing.checkpoint) {
                    (0, None) => (state("", "has not run yet")),
                    (0, Some(_)) => (state("well", "no lane is parked")),
                    (1, _) => (state("wrong", "1 lane is parked")),
                    (count, _) => (state("wrong", &format!("{count} lanes are parked"))),
                }
                @if let Some(at) = standing.checkpoint {
                    span.note {
                        " " (place) ", checkpoint " (at)
                        @if let Some(ms) = ms_of_rfc3339(&standing.updated_at) { ", " (ago(ms)) }
                    }
                }
            }
            @if !lanes.is_empty() { ul.list.lanes { @for lane in lanes { li { (of_lane(site, name, lane)) } } } }
        }
    };
    let cost: Cost = [index.meter(), table.meter()].into();
    Ok(frame::page(site, PATH, "Lanes", cost, &main))
}

/// Whether only a person can help a lane.
fn is_parked(lane: &ParkedLane) -> bool {
    lane.next_ms.is_none() && lane.asked.is_none()
}

fn of_lane(site: &Site, reactor: &str, lane: &ParkedLane) -> Markup {
    let ParkedLane { lane: name, cause, tries, at_ms, asked, .. } = lane;
    let url = format!("{PATH}/{}", encoded(reactor));
    html! {
        div {
            strong { (name) } " "
            @match (asked, lane.next_ms) {
                (None, Some(next_ms)) => { (state("", "is tried again")) " " (ago(next_ms)) }
                (None, None) => (state("wrong", "is parked")),
                (Some(_), _) => (state("", &next(lane))),
            }
            br;
            (event_link(lane)) ": " (visible(cause))
            span.note { " Tried " (counted(f64::from(*tries), "time")) ", last " (ago(*at_ms)) "." }
        }
        @if site.may_write && asked.is_none() {
            form.buttons method="post" action=(url) {
                (fields(lane))
                button name="ask" value="retry" aria-label={ "Retry lane " (name) " of " (reactor) } { "Retry" }
                a.button href=(skip_url(reactor, lane)) aria-label={ "Skip the event of lane " (name) " of " (reactor) } {
                    "Skip the event …"
                }
            }
        }
    }
}

fn event_link(ParkedLane { event, .. }: &ParkedLane) -> Markup {
    let (partition, slot) = event.rsplit_once('/').unwrap_or((event, ""));
    html! { a href={ "/events/" (encoded(partition)) "/" (encoded(slot)) } { (event) } }
}

fn skip_url(reactor: &str, ParkedLane { lane, event, .. }: &ParkedLane) -> String {
    let path = format!("{PATH}/{}/skip", encoded(reactor));
    url(&path, [("lane", lane.as_str()), ("event", event)])
}

/// The fields that name a lane and its event.
fn fields(ParkedLane { lane, event, .. }: &ParkedLane) -> Markup {
    html! {
        input type="hidden" name="lane" value=(lane);
        input type="hidden" name="event" value=(event);
    }
}

/// Asks once more before an event is skipped, and asks for the reason.
pub(crate) async fn skip(
    State(site): State<Arc<Site>>,
    Path(reactor): Path<String>,
    Query(parameters): Query<Vec<(String, String)>>,
) -> Result<Markup, Problem> {
    let table = table(&site)?;
    let (lane, event) = (given(&parameters, "lane"), given(&parameters, "event"));
    let mut lanes = table.parked(&reactor).await?.into_iter();
    let is_it = |it: &ParkedLane| Some(it.lane.as_str()) == lane && Some(&*it.event) == event;
    let gone = || {
        let problem =
            Problem::nothing(format!("The lane of {reactor} does not wait for this event."));
        problem.further(PATH.to_owned(), "All lanes")
    };
    let found = lanes.find(is_it).ok_or_else(gone)?;
    let main = html! {
        p {
            strong { (reactor) } " will never handle event " (event_link(&found)) " of lane " strong { (found.lane) }
            ": all of its effects are left out. Later events of the lane are handled. This can't be undone."
        }
        p { "It failed: " (visible(&found.cause)) }
        @if site.may_write {
            form.buttons method="post" action={ (PATH) "/" (encoded(&reactor)) } {
                (fields(&found))
                label { "Why it is skipped (stays in the table)" input name="why" required; }
                button name="ask" value="skip" { "Skip the event " (found.event) }
                a.button href=(PATH) { "Back" }
            }
        }
    };
    Ok(frame::page(&site, PATH, "Skip an event?", [table.meter()], &main))
}

/// Records a person's request for a lane. The reactor acts on it within a minute. If the lane has moved on, the page
/// says so.
pub(crate) async fn ask(
    State(site): State<Arc<Site>>,
    Path(reactor): Path<String>,
    Form(form): Form<Vec<(String, String)>>,
) -> Result<Response, Problem> {
    let lane = BoundaryId::stored(given(&form, "lane").unwrap_or_default());
    let event = given(&form, "event").unwrap_or_default();
    let ask = match (given(&form, "ask"), given(&form, "why").unwrap_or_default()) {
        (Some("skip"), why) => {
            ensure_why(why).map_err(|wrong| Problem::bad(format!("{wrong}.")))?;
            Unpark::Skip(why.to_owned())
        }
        (Some("retry"), _) => Unpark::Retry,
        _ => return Err(Problem::bad("ask: write retry or skip.")),
    };
    match table(&site)?.ask(&reactor, &lane, event, &ask).await {
        Ok(()) => Ok(Redirect::to(PATH).into_response()),
        Err(moved @ (ReactorError::NotParked { .. } | ReactorError::AskedSince { .. })) => {
            Ok((StatusCode::CONFLICT, lanes(&site, Some(&moved)).await?).into_response())
        }
        Err(error) => Err(error.into()),
    }
}
