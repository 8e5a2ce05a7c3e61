//! One run after a notification: every view, its log line and its metrics.

use std::cell::Cell;
use std::time::Duration;

use futures::future::{join, join_all};
use ringfence_aws::Clock;
use ringfence_feed::Checkpoint;
use ringfence_lambda::{Level, LogLine, MetricUnit, chain};
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::{Definition, Generation, Parked, Projector, Ran, ViewError};

/// How long a view that is present waits while others are behind.
const TURN: Duration = Duration::from_secs(1);

/// The result of one run of all views.
#[derive(Debug, Default)]
pub struct Round {
    /// A log line for each generation that was run, with metrics of the served ones.
    pub lines: Vec<LogLine>,
    /// Served views that failed or did not reach the present in time, with the cause. They need another notification.
    pub unfinished: Vec<String>,
}

struct Outcome {
    view: &'static str,
    /// `None` if the generations could not be read.
    generation: Option<Generation>,
    live: bool,
    /// How many rows and events of the generation are parked, if that is known.
    parked: Option<u64>,
    ran: Ran,
    error: Option<ViewError>,
}

/// Runs every view on its own, until nothing is left or the time is over. A generation that is being built is kept
/// current beside the served one. The next notification comes only when all are done. So while one view is behind or
/// fails, the others go on, and a view that fails is tried again until the time is over. A generation that is being
/// built is not tried again: a repeat would not help the rebuild, so it asks for no further notification either.
pub async fn run_views(
    projector: &Projector,
    views: &[Definition],
    time: Duration,
    clock: &Clock,
    request_id: &str,
) -> Round {
    let began = clock.begin();
    let turns = &Turns::new(views.len(), time);
    let all = join_all(views.iter().map(|view| run_view(projector, view, turns))).await;
    let end = projector.end().await;
    let (now_ms, lasted_ms) = (clock.now_ms(), began.lasted_ms(clock));
    let mut round = Round::default();
    for outcome in all.into_iter().flatten() {
        let Outcome { view, live, ran, .. } = &outcome;
        let mut line = line(&outcome, now_ms);
        let run = outcome.generation.map_or_else(
            || (*view).to_owned(),
            |Generation(generation)| format!("{view}#{generation}"),
        );
        ran.links.trace(&mut line, &run, request_id, began.at_ms, lasted_ms);
        if *live {
            // Without an answer the view's checkpoint is not known.
            let known = outcome.error.is_none() || ran.checkpoint.is_some();
            let lag = match &end {
                Ok(end) if known => lag(projector, ran, *end, now_ms).await.ok(),
                _ => None,
            };
            measure(&mut line, lag, outcome.parked);
            match &outcome.error {
                Some(error) => round.unfinished.push(format!("{view}: {}", chain(error))),
                None if !ran.present => round.unfinished.push(format!("{view}: behind")),
                None => {}
            }
        }
        round.lines.push(line);
    }
    round
}

/// The runs of one notification, which end together.
struct Turns {
    time: Duration,
    /// When the time is over.
    end: Instant,
    /// How many are still behind, or have failed.
    behind: watch::Sender<usize>,
}

impl Turns {
    fn new(runs: usize, time: Duration) -> Self {
        Self { time, end: sleep(time).deadline(), behind: watch::Sender::new(runs) }
    }

    /// Runs a generation until it is present, and then every second while others are behind. One that has failed is
    /// tried again every second.
    async fn run(
        &self,
        ran: &mut Ran,
        is_live: bool,
        run: impl AsyncFn(&mut Ran) -> Result<(), ViewError>,
    ) -> Option<ViewError> {
        let (mut error, mut counts, mut was_present) = (None, true, false);
        let turns = async {
            let mut others = self.behind.subscribe();
            loop {
                was_present = std::mem::take(&mut ran.present);
                error = run(ran).await.err();
                was_present = ran.present;
                let is_behind = is_live && error.is_some();
                if is_behind != counts {
                    self.behind.send_modify(|behind| match is_behind {
                        true => *behind += 1,
                        false => *behind -= 1,
                    });
                    counts = is_behind;
                }
                if error.is_some() && !is_live || error.is_none() && !ran.present {
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

async fn run_view(projector: &Projector, view: &Definition, turns: &Turns) -> Vec<Outcome> {
    let registered = loop {
        match projector.register(view).await {
            Ok(registered) => break registered,
            Err(_) if turns.wait().await => {}
            Err(error) => {
                let (view, ran, parked) = (view.name, Ran::default(), None);
                let error = Some(error);
                return vec![Outcome { view, generation: None, live: true, parked, ran, error }];
            }
        }
    };
    let run = async |generation: Generation, live: bool| {
        let mut ran = Ran::default();
        let is_served = Cell::new(!live || registered.until.is_none());
        let once = async |ran: &mut Ran| {
            let ran_well = projector.run(view, generation, turns.time, ran).await;
            if is_served.get() {
                return ran_well;
            }
            let served = projector.serve(view, &registered, ran).await;
            is_served.set(served.is_ok() && ran.present);
            ran_well.and(served)
        };
        let error = turns.run(&mut ran, live, once).await;
        let parked = registered.parked + registered.parked_events;
        let parked = live.then(|| parked + ran.parked + ran.unread.len() as u64);
        Outcome { view: view.name, generation: Some(generation), live, parked, ran, error }
    };
    match registered.building {
        None => vec![run(registered.live, true).await],
        Some(building) => {
            turns.behind.send_modify(|behind| *behind += 1);
            let (live, building) = join(run(registered.live, true), run(building, false)).await;
            vec![live, building]
        }
    }
}

/// How many events the view does not show yet, and for how many milliseconds the first of them has been
/// there.
async fn lag(
    projector: &Projector,
    ran: &Ran,
    end: Checkpoint,
    now_ms: u64,
) -> Result<(u64, u64), ViewError> {
    if ran.present {
        // Later events bring another notification.
        return Ok((0, 0));
    }
    let events = projector.events_after(ran.checkpoint, end).await?;
    if events == 0 {
        return Ok((0, 0));
    }
    let next_ms = projector.next_ms(ran.checkpoint).await?;
    Ok((events, next_ms.map_or(0, |next_ms| now_ms.saturating_sub(next_ms))))
}

fn line(outcome: &Outcome, now_ms: u64) -> LogLine {
    let Outcome { view, generation, live, parked: _, ran, error } = outcome;
    let (level, became) = match error {
        Some(_) => (Level::ERROR, "failed"),
        None if !ran.unread.is_empty() => (Level::ERROR, "parked events"),
        None if ran.parked > 0 => (Level::ERROR, "parked rows"),
        None if !ran.present => (Level::WARN, "behind"),
        None => (Level::INFO, "present"),
    };
    let mut json = json!({
        "view": view,
        "generation": generation.map(|generation| generation.0),
        "live": live,
        "outcome": became,
        "checkpoint": ran.checkpoint,
        "events": ran.events,
        "rows": ran.rows,
        "batches": ran.batches,
        "overtaken": ran.overtaken,
    });
    if let Some(error) = error {
        json["cause"] = chain(error).into();
    }
    let rows = ran.examples.iter().map(|(row, parked)| (Some(row), parked));
    let events = ran.unread.iter().map(|parked| (None, parked));
    let parked = rows.chain(events).map(
        |(row, Parked { event, cause })| json!({ "row": row, "event": event, "cause": cause }),
    );
    let parked: Vec<_> = parked.collect();
    if !parked.is_empty() {
        json["parked"] = parked.into();
    }
    LogLine::new(now_ms, level, format!("{view} {became}"), json)
}

/// Measures the lag of a served view, and how many rows and events are parked, if they are known. All views share the two
/// metrics, so a new view needs no new alarm and costs nothing a month. The line names the view.
fn measure(line: &mut LogLine, lag: Option<(u64, u64)>, parked: Option<u64>) {
    if let Some((events, _)) = lag {
        line.json["events_behind"] = events.into();
    }
    let lag = lag.map(|(_, ms)| ("view_lag", MetricUnit::Milliseconds, ms));
    let parked = parked.map(|rows| ("rows_parked", MetricUnit::Count, rows));
    line.measure(&[], lag.into_iter().chain(parked));
}
