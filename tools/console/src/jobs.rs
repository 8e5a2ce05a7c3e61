//! The page of a job.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderName;
use axum::response::IntoResponse;
use maud::html;

use crate::frame::{self, Cost, Path, Problem};
use crate::job::{JobState, locked};
use crate::site::Site;

/// The header that makes a browser load the page again.
const REFRESH: HeaderName = HeaderName::from_static("refresh");
/// Seconds until the browser loads the page again.
const AGAIN: &str = "1";

/// The page of a job. It reloads until the job has ended.
pub(crate) async fn page(
    State(site): State<Arc<Site>>,
    Path(number): Path<String>,
) -> Result<impl IntoResponse, Problem> {
    let number = number.parse().ok();
    let found = number.and_then(|number: usize| locked(&site.jobs.0).get(number).cloned());
    let job = found.ok_or_else(|| Problem::nothing("This console has no such job."))?;
    let (here, path) = &job.from;
    let (refresh, shown) = match &*locked(&job.state) {
        JobState::Goes(how_far) => {
            let shown = html! {
                p role="status" { (how_far) }
                p.note { "It ends with this console. The page comes again each second." }
            };
            (Some([(REFRESH, AGAIN)]), shown)
        }
        JobState::Ended(Ok(end)) => (None, html! { (end) p { a href=(path) { "Back" } } }),
        JobState::Ended(Err(why)) => {
            let shown = html! {
                p role="alert" { "It failed: " (why) }
                p { a href=(path) { "Back" } }
            };
            (None, shown)
        }
    };
    Ok((refresh, frame::page(&site, here, &job.title, Cost::default(), &shown)))
}
