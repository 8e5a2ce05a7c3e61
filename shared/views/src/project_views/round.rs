//! One run after a notification: every view, and the log line with its metrics.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::time::Duration;

use futures::future::{join, join_all};
use ringfence_aws::Clock;
use ringfence_feed::Until;
use ringfence_lambda::{Links, LogLine};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::report::{Alone, NAME, Report};
use crate::together::Group;
use crate::{Definition, Projector, Ran, ViewError};

/// How long a view that is present waits while others are behind.
const TURN: Duration = Duration::from_secs(1);

/// The result of one run of all views.
#[derive(Debug)]
pub struct Round {
    /// The log line: metrics of the served views together, and figures of each view that new events touched or that
    /// goes alone.
    pub line: LogLine,
    /// Served views that failed or did not reach the present in time, with the cause. They need another notification.
    pub unfinished: Vec<String>,
}

/// Runs every view, until nothing is left or the time is over. Views that are current move together, and read the index
/// once. Each other one goes alone. Only its rebuild writes a generation that is being built.
///
/// The next notification comes only when all are done. So while one view is behind or fails, the others go on, and a
/// view that fails is tried again until the time is over. `until` is how far the notification asks to go.
pub async fn run_views(
    projector: &Projector,
    views: &[Definition],
    until: Until,
    time: Duration,
    clock: &Clock,
    request_id: &str,
) -> Round {
    let began = clock.begin();
    let turns = &Turns::new(time);
    let goes_alone = |view: &'static str| turns.goes_alone(view);
    let (mut group, mut ran) = (Group::new(projector, views, &goes_alone, until), Ran::default());
    let together = async {
        let error = turns.run(&mut ran, async |ran| group.run(ran).await).await;
        turns.alone.send_modify(|alone| alone.is_over = true);
        error
    };
    let alone = views.iter().map(|view| async {
        match turns.is_alone(view.name).await {
            true => Some(run_view(projector, view, turns).await),
            false => None,
        }
    });
    let (error, alone) = join(together, join_all(alone)).await;
    let alone: Vec<_> = alone.into_iter().flatten().collect();
    let current: Vec<_> = alone.iter().filter_map(Alone::current).collect();
    // If they can't join now, they go alone after the next notification.
    drop(timeout(TURN, projector.join(&current)).await);

    let mut report = Report::new(projector, clock.now_ms());
    report.together(&group.members, &ran, error).await;
    (report.unnotified, report.left) = (group.unnotified, group.left);
    for alone in &alone {
        report.alone(alone).await;
    }
    let (mut line, unfinished) = report.end();
    let all = [&ran].into_iter().chain(alone.iter().map(|alone| &alone.ran));
    let links = all.map(|ran| &ran.links).find(|links| **links != Links::default());
    let (links, lasted_ms) = (links.cloned().unwrap_or_default(), began.lasted_ms(clock));
    links.trace(&mut line, NAME, request_id, began.at_ms, lasted_ms);
    Round { line, unfinished }
}

/// The runs of one notification, which end together.
struct Turns {
    /// How long there is.
    time: Duration,
    /// When the time is over.
    end: Instant,
    /// How many are still behind, or have failed.
    behind: watch::Sender<usize>,
    alone: watch::Sender<GoesAlone>,
}

/// The views that go alone.
#[derive(Default)]
struct GoesAlone {
    views: BTreeSet<&'static str>,
    /// Whether no other view will.
    is_over: bool,
}

impl Turns {
    /// With one run, of the views that move together.
    fn new(time: Duration) -> Self {
        let end = sleep(time).deadline();
        Self { time, end, behind: watch::Sender::new(1), alone: watch::Sender::default() }
    }

    /// Lets a view go alone, in a run of its own.
    fn goes_alone(&self, view: &'static str) {
        let is_new = self.alone.send_if_modified(|alone| alone.views.insert(view));
        self.behind.send_modify(|behind| *behind += usize::from(is_new));
    }

    /// Waits until a view is to go alone; false if it never is.
    async fn is_alone(&self, view: &'static str) -> bool {
        let mut alone = self.alone.subscribe();
        let known = alone.wait_for(|alone| alone.is_over || alone.views.contains(view)).await;
        known.is_ok_and(|alone| alone.views.contains(view))
    }

    /// Runs a generation until it is present, and then every second while others are behind. One that has failed is
    /// tried again every second.
    async fn run(
        &self,
        ran: &mut Ran,
        mut run: impl AsyncFnMut(&mut Ran) -> Result<(), ViewError>,
    ) -> Option<ViewError> {
        let (mut error, mut counts, mut was_present) = (None, true, false);
        let turns = async {
            let mut others = self.behind.subscribe();
            loop {
                was_present = std::mem::take(&mut ran.present);
                error = run(ran).await.err();
                was_present = ran.present;
                let is_behind = error.is_some();
                if is_behind != counts {
                    self.behind.send_modify(|behind| match is_behind {
                        true => *behind += 1,
                        false => *behind -= 1,
                    });
                    counts = is_behind;
                }
                if error.is_none() && !ran.present {
                    break;
                }
                if timeout(TURN, others.wait_for(|behind| *behind == 0)).await.is_ok() {
                    break;
                }
            }
        };
        if timeout_at(self.end, turns).await.is_err() {
            // The last run was cut off. The events that it has not applied bring another notification.
            ran.present = was_present;
        }
        error
    }

    /// Waits for a second; false if the time is over.
    async fn wait(&self) -> bool {
        timeout_at(self.end, sleep(TURN)).await.is_ok()
    }
}

async fn run_view<'a>(projector: &Projector, view: &'a Definition, turns: &Turns) -> Alone<'a> {
    let registered = loop {
        match projector.register(view).await {
            Ok(registered) => break registered,
            Err(_) if turns.wait().await => {}
            Err(error) => return Alone::unknown(view, error),
        }
    };
    let (mut ran, generation) = (Ran::default(), registered.live);
    let is_served = Cell::new(registered.until.is_none());
    let once = async |ran: &mut Ran| {
        let ran_well = projector.run(view, generation, turns.time, ran).await;
        if is_served.get() {
            return ran_well;
        }
        let served = projector.serve(view, &registered, ran).await;
        is_served.set(served.is_ok() && ran.present);
        ran_well.and(served)
    };
    let error = turns.run(&mut ran, once).await;
    let parked = registered.parked + registered.parked_events;
    let parked = Some(parked + ran.parked + ran.unread.len() as u64);
    let may_join = registered.building.is_none() && is_served.get();
    Alone { view, generation: Some(generation), may_join, parked, ran, error }
}
