//! Work that a page has started, such as a rebuild. It runs in this process, a page shows its progress, and it ends
//! with the console.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Result;
use maud::Markup;

/// All jobs of this console, in the order of their starts.
#[derive(Default)]
pub(crate) struct Jobs(pub(crate) Mutex<Vec<Arc<Job>>>);

/// Running or finished work.
pub(crate) struct Job {
    pub(crate) title: String,
    /// The page that started it: its page of the navigation, and its path.
    pub(crate) from: (&'static str, String),
    pub(crate) state: Mutex<JobState>,
}

pub(crate) enum JobState {
    /// It runs; its progress.
    Goes(String),
    /// Its result, or why it failed.
    Ended(Result<Markup, String>),
}

impl Jobs {
    /// Starts work in a new task, unless work of this title is running. Returns the URL of its page.
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
    /// Sets the progress that its page shows.
    pub(crate) fn say(&self, how_far: String) {
        *locked(&self.state) = JobState::Goes(how_far);
    }

    fn goes(&self) -> bool {
        matches!(*locked(&self.state), JobState::Goes(_))
    }
}

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic can't leave this state half-written.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use maud::html;
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
