//! From the question to the answer.

use std::time::Duration;

use ringfence_lambda::{Problem, chain, http};
use ringfence_views::{Listed, Read, Shown, ViewError, ViewReader, Wait};
use serde_json::{Value, json};

use crate::ask::{Ask, Asked, token};

/// An answer, and what the log says of it.
#[derive(Debug)]
pub struct Answered {
    /// The answer, as its caller understands it.
    pub answer: Value,
    /// The view, if the question named one.
    pub view: Option<String>,
    /// `found`, or the problem's name.
    pub outcome: &'static str,
    /// What went wrong, for the log alone.
    pub cause: Option<String>,
}

/// Answers a question within `time`.
pub async fn answer(
    reader: &ViewReader,
    payload: &Value,
    request_id: &str,
    time: Duration,
) -> Answered {
    let is_http = payload.pointer("/requestContext/http").is_some();
    let (mut view, mut cause) = (None, None);
    let answer = match Ask::parse(payload) {
        Err(problem) => Err(problem),
        Ok(mut ask) => {
            if let Some(wait) = &mut ask.wait {
                wait.most = wait.most.min(time);
            }
            view = Some(ask.view.clone());
            match read(reader, &ask).await {
                Ok(answer) => answer,
                Err(error) => {
                    cause = Some(chain(&error));
                    Err(failed(&error, request_id))
                }
            }
        }
    };
    let outcome = answer.as_ref().map_or_else(|problem| problem.kind, |_| "found");
    let answer = if is_http { http(answer) } else { answer.unwrap_or_else(Problem::document) };
    Answered { answer, view, outcome, cause }
}

async fn read(reader: &ViewReader, ask: &Ask) -> Result<Result<Value, Problem>, ViewError> {
    let (view, wait) = (&*ask.view, ask.wait.as_ref());
    Ok(match &ask.asked {
        Asked::Row(id) => known(view, wait, reader.row(view, id, wait).await?).and_then(|row| {
            let missing = || {
                let detail = format!("view {view} has no row {id:?}");
                Problem::new(404, "row-not-found", "There is no such row", detail)
            };
            row.map(shown).ok_or_else(missing)
        }),
        Asked::List(page) => known(view, wait, reader.list(view, page, wait).await?).map(|list| {
            let Listed { rows, next, as_of } = list;
            let mut answer = json!({
                "items": rows.into_iter().map(shown).collect::<Vec<_>>(),
                "asOf": as_of,
            });
            if let Some(next) = next {
                answer["next"] = token(view, &page.prefix, &next).into();
            }
            answer
        }),
    })
}

fn shown(row: Shown) -> Value {
    json!({ "id": row.id, "row": row.row, "asOf": row.as_of })
}

/// The answer, or why there is none yet.
fn known<T>(view: &str, wait: Option<&Wait>, read: Read<T>) -> Result<T, Problem> {
    match read {
        Read::Found(answer) => Ok(answer),
        Read::UnknownView => {
            let detail = format!("there is no view {view:?}, or it was never run");
            Err(Problem::new(404, "view-not-found", "There is no such view", detail))
        }
        Read::Behind { until, at } => {
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
            Err(Problem::new(503, "view-behind", title, detail).with(behind))
        }
    }
}

fn failed(error: &ViewError, request_id: &str) -> Problem {
    if error.is_transient() {
        let detail = "send the request again".to_owned();
        Problem::new(503, "unavailable", "The view table does not answer", detail)
    } else {
        Problem::internal(request_id)
    }
}
