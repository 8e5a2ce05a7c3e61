//! Answers questions.

use std::time::Duration;

use ringfence_aws::{Failure, GaveUp};
use ringfence_core::{VaultError, personal};
use ringfence_lambda::{
    Call, Issuers, Level, LogLine, MetricUnit, Problem, Sender, chain, http, principal, request,
};
use serde_json::{Value, json};
use tokio::time::{error::Elapsed, timeout};

use crate::{Content, Listed, Shown, ViewError, ViewRead, ViewReader, WAIT_SLOTS_MAX, Wait};

use super::ask::{Ask, Asked, token};
use super::caller::Caller;

/// The view does not show the event yet for which the caller waits.
const BEHIND: &str = "view-behind";
/// The view does not yet show the events that were there when it was deployed.
const BUILDING: &str = "view-building";
/// The row could not be written.
const PARKED: &str = "row-parked";

/// An answer, and its line of the log.
#[derive(Debug)]
pub struct Answered {
    /// The answer, as its caller understands it.
    pub answer: Value,
    /// Whether the caller is API Gateway.
    pub is_http: bool,
    /// The view, if the question named one.
    pub view: Option<String>,
    /// `found`, or the problem's name.
    pub outcome: &'static str,
    /// The cause of a failure, for the log alone.
    pub cause: Option<String>,
}

impl Answered {
    /// The line of the log, at `now_ms` since 1970, of a call that took `duration_ms`. An HTTP answer
    /// of 503 or 500 that has its own alarm is measured as `views_not_ready`, so that the alarm of failed requests can
    /// leave it out. That alarm counts the answers of API Gateway, which never sees a direct invoke.
    #[must_use]
    pub fn line(&self, call: &Call, now_ms: u64, duration_ms: u64) -> LogLine {
        let level = if self.cause.is_some() { Level::ERROR } else { Level::INFO };
        let mut json = json!({
            "function": call.function,
            "function_request_id": call.request_id,
            "view": self.view,
            "outcome": self.outcome,
            "duration_ms": duration_ms,
        });
        if let Some(cause) = &self.cause {
            json["cause"] = cause.as_str().into();
        }
        let mut line = LogLine::new(now_ms, level, format!("query {}", self.outcome), json);
        if self.is_http && [BEHIND, BUILDING, PARKED].contains(&self.outcome) {
            line.measure(&["function"], [("views_not_ready", MetricUnit::Count, 1)]);
        }
        line
    }
}

/// The part of the time that is kept for the read after a wait.
const READ_TIME: Duration = Duration::from_millis(500);

/// Answers a question. If the reader has a vault, the personal data of rows are open in the answer. It waits for at most
/// `time`, and then reads for at most half a second.
pub async fn answer(
    reader: &ViewReader,
    issuers: &Issuers,
    payload: &Value,
    request_id: &str,
    time: Duration,
) -> Answered {
    let is_http = Sender::of(payload) == Sender::Http;
    let asked = match is_http {
        true => request(payload.clone())
            .and_then(|asks| Ok((principal(&asks, issuers)?, Ask::of_request(&asks)?))),
        // Only operators invoke directly.
        false => Ask::parse(payload).map(|ask| (None, ask)),
    };
    let (mut view, mut cause) = (None, None);
    let answer = match asked {
        Err(problem) => Err(problem),
        Ok((principal, mut ask)) => {
            let caller = Caller(principal.as_ref());
            if let Some(wait) = &mut ask.wait {
                wait.most = wait.most.min(time);
            }
            view = Some(ask.view.clone());
            let read = async {
                let mut answer = read(reader, caller, &ask).await?;
                let mut damaged = None;
                if let (Ok(answer), Some(vault)) = (&mut answer, reader.vault()) {
                    match vault.open(vec![answer]).await {
                        // All others are open, and this one is null.
                        Err(error @ VaultError::Damaged { .. }) => damaged = Some(chain(&error)),
                        opened => opened?,
                    }
                    personal::show(answer);
                }
                Ok((answer, damaged))
            };
            match within(time + READ_TIME, read).await {
                Ok((answer, damaged)) => {
                    cause = damaged;
                    answer
                }
                Err(error) => {
                    cause = Some(chain(&error));
                    Err(failed(&error, request_id))
                }
            }
        }
    };
    let outcome = answer.as_ref().map_or_else(|problem| problem.kind, |_| "found");
    let answer =
        if is_http { json!(http(answer)) } else { answer.unwrap_or_else(Problem::document) };
    Answered { answer, is_http, view, outcome, cause }
}

/// The result of a read, if the table answers within `time`. Lambda would end the process.
///
/// # Errors
/// The errors of the read; after the time, one that is transient.
pub async fn within<T>(
    time: Duration,
    read: impl Future<Output = Result<T, ViewError>>,
) -> Result<T, ViewError> {
    let late = |source: Elapsed| {
        let failure = Failure::Unknown { source: source.into() };
        ViewError::Store {
            operation: "reading a view",
            source: GaveUp { failure, attempts: 1, unknown: None },
        }
    };
    timeout(time, read).await.unwrap_or_else(|source| Err(late(source)))
}

async fn read(
    reader: &ViewReader,
    caller: Caller<'_>,
    ask: &Ask,
) -> Result<Result<Value, Problem>, ViewError> {
    let (view, wait) = (&*ask.view, ask.wait.as_ref());
    let definition = reader.view(view);
    if let Err(problem) = caller.check(definition) {
        return Ok(Err(problem));
    }
    Ok(match &ask.asked {
        Asked::Row(id) => found(view, wait, reader.row(view, id, wait).await?).and_then(|row| {
            let missing = || {
                let detail = format!("view {view} has no row {id:?}");
                Problem::new(404, "row-not-found", "There is no such row", detail)
            };
            match caller.row(definition, row).ok_or_else(missing)? {
                Shown { id, content: Content::Parked(_), as_of } => {
                    Err(parked(view).with(json!({ "id": id, "asOf": as_of })))
                }
                row => Ok(item(view, row)),
            }
        }),
        Asked::List(page) => {
            found(view, wait, caller.list(reader, view, page, wait).await?).map(|list| {
                let Listed { rows, next, as_of } = list;
                let items: Value = rows.into_iter().map(|row| item(view, row)).collect();
                let mut answer = json!({ "items": items });
                if let Some(as_of) = as_of {
                    answer["asOf"] = json!(as_of);
                }
                if let Some(next) = next {
                    answer["next"] = token(view, page, &next).into();
                }
                answer
            })
        }
    })
}

/// A row. If it is parked, the problem is in its place, so that the other rows can be read.
fn item(view: &str, Shown { id, content, as_of }: Shown) -> Value {
    match content {
        Content::Row(row) => json!({ "id": id, "row": row, "asOf": as_of }),
        Content::Parked(_) => {
            json!({ "id": id, "problem": parked(view).document(), "asOf": as_of })
        }
    }
}

/// 500: only those who run the stack learn why.
fn parked(view: &str) -> Problem {
    let detail = format!("view {view} could not keep the row; those who run the stack can mend it");
    Problem::new(500, PARKED, "The row can't be shown", detail)
}

/// The answer of a view, or the problem that a caller gets.
///
/// # Errors
/// The view is unknown, is being built, or does not show the event for which the caller waited.
pub fn found<T>(view: &str, wait: Option<&Wait>, read: ViewRead<T>) -> Result<T, Problem> {
    match read {
        ViewRead::Found(answer) => Ok(answer),
        ViewRead::UnknownView => {
            let detail = format!("there is no view {view:?}");
            Err(Problem::new(404, "view-not-found", "There is no such view", detail))
        }
        ViewRead::Building { until, at } => {
            let detail = format!(
                "view {view} is at checkpoint {at}, and is served from checkpoint {until} on"
            );
            let building = json!({ "view": view, "asOf": at, "until": until });
            Err(Problem::new(503, BUILDING, "The view is being built", detail).with(building))
        }
        ViewRead::Behind { until, at } => {
            let waited = wait.map_or(0, |wait| wait.most.as_millis());
            let place = at.unwrap_or_default();
            let detail = match until {
                None => "the event is not in the index yet".to_owned(),
                Some(until) => {
                    format!("the event is before checkpoint {until}, view {view} is at {place}")
                }
            };
            let detail = format!("{detail}; waited {waited} ms");
            let title = "The view does not show the event yet";
            let behind = json!({ "view": view, "asOf": at, "until": until });
            Err(Problem::new(503, BEHIND, title, detail).with(behind))
        }
        ViewRead::Ahead { last } => {
            let end = match last {
                Some(last) => format!("event {last}, the last one of the partition in the index"),
                None => {
                    "the beginning, since the partition has no event in the index yet".to_owned()
                }
            };
            let detail = format!(
                "slot: lies more than {WAIT_SLOTS_MAX} events after {end}, so the answer did not wait; take the slot \
                 from the command's answer, and if it is that one, ask again later"
            );
            let title = "The view does not show the event yet";
            Err(Problem::new(503, BEHIND, title, detail).with(json!({ "view": view })))
        }
    }
}

/// The problem that a caller gets if a view can't be read.
#[must_use]
pub fn failed(error: &ViewError, request_id: &str) -> Problem {
    if error.is_transient() {
        let detail = "send the request again".to_owned();
        Problem::new(503, "unavailable", "The view table does not answer", detail)
    } else {
        Problem::internal(request_id)
    }
}
