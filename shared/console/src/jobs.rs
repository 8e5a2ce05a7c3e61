//! Work that a page has started, such as a rebuild: it goes on in this process, and a page shows how far it is. It ends
//! with the console.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Result;
use axum::extract::State;
use axum::http::HeaderName;
use axum::response::IntoResponse;
use maud::{Markup, html};

use crate::frame::{self, Cost, Path, Problem};
use crate::site::Site;

/// How a browser is asked to come again.
const REFRESH: HeaderName = HeaderName::from_static("refresh");
/// Seconds until it comes again.
const AGAIN: &str = "1";

/// All jobs of this console, in the order of their starts.
#[derive(Default)]
pub(crate) struct Jobs(Mutex<Vec<Arc<Job>>>);

/// Work under way, or its end.
pub(crate) struct Job {
    title: String,
    /// The page that has started it, one of the navigation, and that page's own path.
    from: (&'static str, String),
    state: Mutex<JobState>,
}

enum JobState {
    /// How far it is.
    Goes(String),
    /// What came of it, or why it failed.
    Ended(Result<Markup, String>),
}

impl Jobs {
    /// Starts work in a task of its own, unless work of this title is under way; the URL of its page.
    pub(crate) fn start<F>(
        &self,
        title: String,
        from: (&'static str, String),
        work: impl FnOnce(Arc<Job>) -> F,
    ) -> String
    where
        F: Future<Output = Result<Markup>> + Send + 'static,
    {
        let mut jobs = locked(&self.0);
        let goes = |job: &Arc<Job>| job.title == title && job.goes();
        let number = jobs.iter().position(goes).unwrap_or_else(|| {
            let state = Mutex::new(JobState::Goes("It begins.".to_owned()));
            let job = Arc::new(Job { title, from, state });
            let work = tokio::spawn(work(job.clone()));
            jobs.push(job.clone());
            tokio::spawn(async move {
                let ended = match work.await {
                    Ok(ended) => ended.map_err(|error| format!("{error:#}")),
                    Err(error) => Err(error.to_string()),
                };
                *locked(&job.state) = JobState::Ended(ended);
            });
            jobs.len() - 1
        });
        format!("/jobs/{number}")
    }
}

impl Job {
    /// From now on its page says this of its progress.
    pub(crate) fn say(&self, how_far: String) {
        *locked(&self.state) = JobState::Goes(how_far);
    }

    fn goes(&self) -> bool {
        matches!(*locked(&self.state), JobState::Goes(_))
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic can't leave a state half-written.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The page of a job. It comes again by itself until the job has ended.
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

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    const FROM: (&str, String) = ("/views", String::new());

    #[tokio::test]
    async fn work_of_a_title_is_started_again_only_after_its_end() {
        let jobs = Jobs::default();
        let start = |title: &str| {
            let (end, ended) = oneshot::channel::<()>();
            let work = async move |_: Arc<Job>| Ok(ended.await.map(|()| html! { "done" })?);
            (jobs.start(title.to_owned(), FROM, work), end)
        };
        let (first, end) = start("a");
        assert_eq!((&*first, &*start("a").0, &*start("b").0), ("/jobs/0", "/jobs/0", "/jobs/1"));
        end.send(()).expect("it goes on");
        while locked(&jobs.0)[0].goes() {
            tokio::task::yield_now().await;
        }
        assert_eq!(start("a").0, "/jobs/2");
    }

    #[tokio::test]
    async fn work_that_panics_has_ended() {
        let jobs = Jobs::default();
        jobs.start("a".to_owned(), FROM, async |_| panic!("at the disco"));
        while locked(&jobs.0)[0].goes() {
            tokio::task::yield_now().await;
        }
    }
}
