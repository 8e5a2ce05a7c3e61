//! The page of lanes: the progress of each reactor and ordered automation, and its lanes that wait or are parked.

use std::sync::Arc;

use axum::Form;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use ringfence_core::{BoundaryId, rfc3339, visible};
use ringfence_feed::Checkpoint;
use ringfence_reactors::{ParkedLane, ReactorError, ReactorTable, Unpark};

use crate::frame::{self, Cost, Path, Problem, encoded, given};
use crate::site::Site;
use crate::views::UNNAMED;
use ringfence_cli::checkpoint::place;
use ringfence_cli::lanes::{next, readers};

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
            h2 { (name) }
            p {
                @match standing.checkpoint {
                    None => { "It has not run yet." }
                    Some(at) => { "Checkpoint " (at) ", " (place) ", since " time datetime=(standing.updated_at) { (standing.updated_at) } "." }
                }
            }
            @for lane in lanes { (of_lane(site, name, lane)) }
            @if lanes.is_empty() { p.note { "No lane waits." } }
        }
    };
    let cost: Cost = [index.meter(), table.meter()].into();
    Ok(frame::page(site, PATH, "Lanes", cost, &main))
}

fn of_lane(site: &Site, reactor: &str, lane: &ParkedLane) -> Markup {
    let ParkedLane { lane: name, event, cause, tries, at_ms, .. } = lane;
    html! {
        h3 { (name) }
        p {
            "Event " a href={ "/events/" (encoded(event)) } { (event) } ": " (visible(cause)) ". Tried " (tries)
            " times, the last time at " (rfc3339(*at_ms)) "; " (next(lane)) "."
        }
        @if site.may_write {
            form.filter method="post" action={ (PATH) "/" (encoded(reactor)) } {
                input type="hidden" name="lane" value=(name);
                input type="hidden" name="event" value=(event);
                button name="ask" value="retry" { "Retry" }
                label { "Why it is skipped " input name="why"; }
                button name="ask" value="skip" { "Skip the event" }
            }
        }
    }
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
        (Some("skip"), "") => return Err(Problem::bad("Say why the event is skipped.".to_owned())),
        (Some("skip"), why) => Unpark::Skip(why.to_owned()),
        _ => Unpark::Retry,
    };
    match table(&site)?.ask(&reactor, &lane, event, &ask).await {
        Ok(()) => Ok(Redirect::to(PATH).into_response()),
        Err(moved @ (ReactorError::NotParked { .. } | ReactorError::AskedSince { .. })) => {
            Ok((StatusCode::CONFLICT, lanes(&site, Some(&moved)).await?).into_response())
        }
        Err(error) => Err(error.into()),
    }
}
