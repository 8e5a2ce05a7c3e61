//! One ring of the doorbell: every view, its log line and its metrics.

use std::time::Duration;

use futures::future::{join, join_all};
use ringfence_dynamo::{Clock, rfc3339};
use ringfence_feed::Checkpoint;
use ringfence_lambda::chain;
use ringfence_views::{Definition, Generation, Projector, Ran, ViewError};
use serde_json::{Value, json};

/// What became of the views.
#[derive(Debug, Default)]
pub struct Round {
    /// A line of the log for each generation that was run, with the metrics of the served ones.
    pub lines: Vec<Value>,
    /// Served views that failed or did not reach the present in time, with the cause: the doorbell
    /// has to ring again.
    pub unfinished: Vec<String>,
}

struct Outcome {
    view: &'static str,
    /// `None` if it is not even known which there are.
    generation: Option<Generation>,
    live: bool,
    ran: Ran,
    error: Option<ViewError>,
}

/// Runs every view, each for itself, until nothing is left or the time is over. A generation that
/// is being built is kept current beside the one that is served; that it fails is not the
/// doorbell's concern, since a repeat would not help who rebuilds.
pub async fn run(
    projector: &Projector,
    views: &[Definition],
    time: Duration,
    clock: &Clock,
) -> Round {
    let all = join_all(views.iter().map(|view| run_view(projector, view, time))).await;
    let end = projector.end().await;
    let now_ms = clock.now_ms();
    let mut round = Round::default();
    for outcome in all.into_iter().flatten() {
        let Outcome { view, live, ran, .. } = &outcome;
        let mut line = line(&outcome, now_ms);
        if *live {
            // Where a view is that could not even be asked is not known.
            let known = outcome.error.is_none() || ran.checkpoint.is_some();
            let lag = match &end {
                Ok(end) if known => lag(projector, ran, *end, now_ms).await.ok(),
                _ => None,
            };
            measure(&mut line, lag, now_ms);
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

async fn run_view(projector: &Projector, view: &Definition, time: Duration) -> Vec<Outcome> {
    let registered = match projector.register(view).await {
        Ok(registered) => registered,
        Err(error) => {
            let (view, ran) = (view.name, Ran::default());
            return vec![Outcome { view, generation: None, live: true, ran, error: Some(error) }];
        }
    };
    let run = async |generation: Generation, live: bool| {
        let mut ran = Ran::default();
        let error = projector.run(view, generation, time, &mut ran).await.err();
        Outcome { view: view.name, generation: Some(generation), live, ran, error }
    };
    match registered.building {
        None => vec![run(registered.live, true).await],
        Some(building) => {
            let (live, building) = join(run(registered.live, true), run(building, false)).await;
            vec![live, building]
        }
    }
}

/// Events that the view does not show yet, and for how many milliseconds the first of them is
/// there.
async fn lag(
    projector: &Projector,
    ran: &Ran,
    end: Checkpoint,
    now_ms: u64,
) -> Result<(i64, u64), ViewError> {
    let at = ran.checkpoint.unwrap_or_default();
    let events = i64::from(end).saturating_sub(i64::from(at)).max(0);
    if events == 0 || ran.present {
        // What came since then rings the doorbell itself.
        return Ok((0, 0));
    }
    let next_ms = projector.next_ms(ran.checkpoint).await?;
    Ok((events, next_ms.map_or(0, |next_ms| now_ms.saturating_sub(next_ms))))
}

fn line(outcome: &Outcome, now_ms: u64) -> Value {
    let Outcome { view, generation, live, ran, error } = outcome;
    let (level, became) = match error {
        Some(_) => ("ERROR", "failed"),
        None if !ran.present => ("WARN", "behind"),
        None => ("INFO", "present"),
    };
    let mut line = json!({
        "timestamp": rfc3339(now_ms),
        "level": level,
        "message": format!("{view} {became}"),
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
        line["cause"] = chain(error).into();
    }
    line
}

/// Adds the metrics of a served view, in CloudWatch's embedded metric format. Without a lag, only
/// whether it failed is known.
fn measure(line: &mut Value, lag: Option<(i64, u64)>, now_ms: u64) {
    line["view_failed"] = u8::from(line["outcome"] == "failed").into();
    let mut metrics = vec![json!({ "Name": "view_failed", "Unit": "Count" })];
    let mut directives = Vec::new();
    if let Some((events, ms)) = lag {
        line["events_behind"] = events.into();
        line["ms_behind"] = ms.into();
        metrics.push(json!({ "Name": "events_behind", "Unit": "Count" }));
        metrics.push(json!({ "Name": "ms_behind", "Unit": "Milliseconds" }));
        // Of all views together, for an alarm that needs no change with a new one.
        let total = [json!({ "Name": "ms_behind", "Unit": "Milliseconds" })];
        directives.push(json!({ "Namespace": "Ringfence", "Dimensions": [[]], "Metrics": total }));
    }
    let of_view = json!({ "Namespace": "Ringfence", "Dimensions": [["view"]], "Metrics": metrics });
    directives.insert(0, of_view);
    line["_aws"] = json!({ "Timestamp": now_ms, "CloudWatchMetrics": directives });
}
