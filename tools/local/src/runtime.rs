//! Lambda's APIs over HTTP: the runtime API, from which each process of a function takes its invocations, and the
//! invoke API for AWS clients.

use std::{
    collections::{BTreeMap, VecDeque},
    convert::Infallible,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::{
    Json, Router,
    body::Bytes,
    extract::{DefaultBodyLimit, Path, State},
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde_json::{Value, json};
use tokio::{
    sync::{Notify, Semaphore, oneshot, watch},
    time::timeout,
};

use crate::{
    clock,
    invoke::{InvokeError, PAYLOAD_BYTES_MAX},
    template::{ACCOUNT, REGION},
};

/// The longest wait for a process that takes an invocation. The function's timeout begins after it.
const START_MAX: Duration = Duration::from_secs(60);

/// A function with its processes.
pub(crate) struct Running {
    pub(crate) timeout: Duration,
    pub(crate) invocations: Arc<Invocations>,
    pub(crate) binary: PathBuf,
    /// The most invocations at once. Further ones wait, whereas AWS refuses them.
    pub(crate) most: usize,
    pub(crate) free: Arc<Semaphore>,
    /// How many processes it has.
    pub(crate) processes: watch::Sender<usize>,
}

/// The functions by their names.
pub(crate) type ByName = BTreeMap<String, Running>;

/// The path of the runtime API for the processes of a function; the number of the process follows.
pub(crate) fn path_of(function: &str) -> String {
    format!("/.rt/{function}")
}

/// The routes of both APIs.
pub(crate) fn router(functions: Arc<ByName>) -> Router {
    let runtime = Router::new()
        .route("/invocation/next", get(next))
        .route("/invocation/{id}/response", post(response))
        .route("/invocation/{id}/error", post(error))
        .route("/init/error", post(init_error));
    Router::new()
        .nest("/.rt/{function}/{process}/2018-06-01/runtime", runtime)
        .route("/2015-03-31/functions/{function}/invocations", post(invoke))
        .layer(DefaultBodyLimit::disable())
        .with_state(functions)
}

/// The answer of a function: its bytes, or the error document of its runtime.
type Answer = Result<Bytes, Value>;

/// The end of an invocation.
pub(crate) enum Outcome {
    Answered(Answer),
    TimedOut,
}

/// The invocations of one function, and its processes.
#[derive(Default)]
pub(crate) struct Invocations {
    queue: Mutex<Queue>,
    changed: Notify,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Invocation>,
    processes: BTreeMap<u64, Process>,
    started: u64,
}

struct Invocation {
    id: String,
    payload: String,
    begin: oneshot::Sender<()>,
    answer: oneshot::Sender<Answer>,
}

/// A running process. If this is dropped, it is killed, and its invocation gets no answer.
struct Process {
    _alive: oneshot::Sender<Infallible>,
    /// The id of its invocation, and the sender for the answer.
    current: Option<(String, oneshot::Sender<Answer>)>,
}

impl Invocations {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of a new process, and the signal that ends it.
    pub(crate) fn add_process(&self) -> (u64, oneshot::Receiver<Infallible>) {
        let mut queue = self.queue();
        queue.started += 1;
        let number = queue.started;
        let (alive, end) = oneshot::channel();
        queue.processes.insert(number, Process { _alive: alive, current: None });
        (number, end)
    }

    /// A process has ended.
    pub(crate) fn remove_process(&self, number: u64) {
        self.queue().processes.remove(&number);
    }

    pub(crate) fn has_process(&self) -> bool {
        !self.queue().processes.is_empty()
    }

    /// Kills a process, one with an invocation if there is any. False without a process.
    pub(crate) fn kill(&self) -> bool {
        let mut queue = self.queue();
        let busy = queue.processes.iter().find(|(_, process)| process.current.is_some());
        let number = busy.or(queue.processes.first_key_value()).map(|(number, _)| *number);
        number.is_some_and(|number| queue.processes.remove(&number).is_some())
    }

    /// Waits for a process that takes the payload, and from then on at most `limit` for the answer. A process that is
    /// late is killed, as on AWS.
    pub(crate) async fn invoke(&self, payload: String, limit: Duration) -> Outcome {
        let failed = |kind: &str, message: String| {
            Outcome::Answered(Err(json!({ "errorType": kind, "errorMessage": message })))
        };
        let id = clock::id();
        let (begin, begun) = oneshot::channel();
        let (answer, answered) = oneshot::channel();
        self.queue().waiting.push_back(Invocation { id: id.clone(), payload, begin, answer });
        self.changed.notify_waiters();
        // If it can't start, the answer has the reason.
        if timeout(START_MAX, begun).await.is_err() {
            let message = format!("no process took it within {START_MAX:?}: see its log");
            return failed("Runtime.InitError", message);
        }
        match timeout(limit, answered).await {
            Ok(Ok(answer)) => Outcome::Answered(answer),
            Ok(Err(_)) => {
                failed("Runtime.ExitError", "its process ended before it answered".to_owned())
            }
            Err(_) => {
                let is_late = |process: &Process| {
                    process.current.as_ref().is_some_and(|(current, _)| *current == id)
                };
                self.queue().processes.retain(|_, process| !is_late(process));
                Outcome::TimedOut
            }
        }
    }

    /// The next invocation for a process: its id and payload; `None` if the process has ended.
    async fn next(&self, number: u64) -> Option<(String, String)> {
        loop {
            let changed = self.changed.notified();
            {
                let queue = &mut *self.queue();
                let process = queue.processes.get_mut(&number)?;
                while let Some(Invocation { id, payload, begin, answer }) =
                    queue.waiting.pop_front()
                {
                    // The caller of an invocation that was given up no longer waits.
                    if begin.send(()).is_ok() {
                        process.current = Some((id.clone(), answer));
                        return Some((id, payload));
                    }
                }
            }
            changed.await;
        }
    }

    /// Takes the answer of a process to an invocation. Returns whether the caller still waits.
    fn answer(&self, number: u64, id: &str, answer: Answer) -> bool {
        let mut queue = self.queue();
        let process = queue.processes.get_mut(&number);
        let current = process.and_then(|process| process.current.take_if(|(of, _)| of == id));
        current.is_some_and(|(_, to)| to.send(answer).is_ok())
    }

    /// Fails the invocation for which a process could not start.
    fn fail_start(&self, error: Value) {
        if let Some(first) = self.queue().waiting.pop_front() {
            let _ = first.answer.send(Err(error));
        }
    }
}

impl Running {
    /// Runs the function of this name with a payload.
    pub(crate) async fn invoke(&self, name: &str, payload: String) -> Result<Value, InvokeError> {
        let function = || name.to_owned();
        if payload.len() > PAYLOAD_BYTES_MAX {
            return Err(InvokeError::TooLarge { bytes: payload.len() });
        }
        // The semaphore is never closed. If it were, there would be no limit.
        let place = self.free.clone().acquire_owned().await.ok();
        let busy = self.most - self.free.available_permits();
        self.processes.send_if_modified(|processes| {
            let more = busy > *processes;
            *processes = busy.max(*processes);
            more
        });
        // If the caller leaves, the function still runs, within the same time limit.
        let (invocations, timeout) = (self.invocations.clone(), self.timeout);
        let invocation = async move {
            let _place = place;
            invocations.invoke(payload, timeout).await
        };
        match tokio::spawn(invocation).await.expect("it does not panic") {
            Outcome::Answered(Ok(answer)) => serde_json::from_slice(&answer).map_err(|_| {
                let error = json!(String::from_utf8_lossy(&answer));
                InvokeError::Function { function: function(), error }
            }),
            Outcome::Answered(Err(error)) => {
                Err(InvokeError::Function { function: function(), error })
            }
            Outcome::TimedOut => {
                Err(InvokeError::TimedOut { function: function(), timeout: self.timeout })
            }
        }
    }
}

type Functions = State<Arc<ByName>>;

async fn next(
    State(functions): Functions,
    Path((function, process)): Path<(String, u64)>,
) -> Response {
    let Some(running) = functions.get(&function) else { return unknown(&function) };
    let Some((id, payload)) = running.invocations.next(process).await else {
        return StatusCode::GONE.into_response();
    };
    // As on AWS it is by the machine's clock, and not by the stack's.
    let deadline = clock::now() + running.timeout;
    let arn = format!("arn:aws:lambda:{REGION}:{ACCOUNT}:function:{function}");
    let headers = [
        ("content-type", "application/json".to_owned()),
        ("lambda-runtime-aws-request-id", id),
        ("lambda-runtime-deadline-ms", deadline.timestamp_millis().to_string()),
        ("lambda-runtime-invoked-function-arn", arn),
    ];
    (headers, payload).into_response()
}

type OfInvocation = Path<(String, u64, String)>;

async fn response(state: Functions, path: OfInvocation, body: Bytes) -> Response {
    let answer = match body.len() {
        ..=PAYLOAD_BYTES_MAX => Ok(body),
        bytes => Err(json!({
            "errorType": "Function.ResponseSizeTooLarge",
            "errorMessage": format!("the answer has {bytes} bytes, more than {PAYLOAD_BYTES_MAX}"),
        })),
    };
    answered(&state, &path, answer)
}

async fn error(state: Functions, path: OfInvocation, body: Bytes) -> Response {
    answered(&state, &path, Err(document(&body)))
}

fn answered(
    functions: &ByName,
    (function, process, id): &(String, u64, String),
    answer: Answer,
) -> Response {
    let Some(running) = functions.get(function) else { return unknown(function) };
    match running.invocations.answer(*process, id, answer) {
        true => StatusCode::ACCEPTED.into_response(),
        false => StatusCode::GONE.into_response(),
    }
}

async fn init_error(
    State(functions): Functions,
    Path((function, _)): Path<(String, u64)>,
    body: Bytes,
) -> Response {
    let Some(running) = functions.get(&function) else { return unknown(&function) };
    running.invocations.fail_start(document(&body));
    StatusCode::ACCEPTED.into_response()
}

/// An error document, or the text if it is not one.
fn document(body: &[u8]) -> Value {
    serde_json::from_slice(body).unwrap_or_else(|_| json!(String::from_utf8_lossy(body)))
}

async fn invoke(
    State(functions): Functions,
    Path(function): Path<String>,
    payload: String,
) -> Response {
    let Some(running) = functions.get(&function) else { return unknown(&function) };
    let failed =
        |error: Value| ([("x-amz-function-error", "Unhandled")], Json(error)).into_response();
    match running.invoke(&function, payload).await {
        Ok(answer) => Json(answer).into_response(),
        Err(InvokeError::Function { error, .. }) => failed(error),
        Err(error @ InvokeError::TimedOut { .. }) => {
            failed(json!({ "errorType": "Sandbox.Timedout", "errorMessage": error.to_string() }))
        }
        Err(error) => refusal(StatusCode::PAYLOAD_TOO_LARGE, "RequestTooLargeException", &error),
    }
}

fn unknown(function: &str) -> Response {
    let error = InvokeError::Unknown { function: function.to_owned() };
    refusal(StatusCode::NOT_FOUND, "ResourceNotFoundException", &error)
}

fn refusal(status: StatusCode, code: &'static str, error: &InvokeError) -> Response {
    let body = json!({ "Type": "User", "Message": error.to_string() });
    (status, [("x-amzn-errortype", code)], Json(body)).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(3);

    fn error(outcome: Outcome) -> Value {
        match outcome {
            Outcome::Answered(Err(error)) => error,
            _ => panic!("it failed"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_invocation_that_no_process_takes_fails_with_the_reason_or_after_its_wait() {
        let invocations = Invocations::default();
        let reported = async { invocations.fail_start(json!("no table")) };
        let (failed, ()) = tokio::join!(invocations.invoke("1".to_owned(), LIMIT), reported);
        assert_eq!(error(failed), "no table");
        let failed = error(invocations.invoke("2".to_owned(), LIMIT).await);
        assert_eq!(failed["errorMessage"], "no process took it within 60s: see its log");
        // It was given up, so a later process takes the next one.
        let (number, _end) = invocations.add_process();
        let taken = async {
            let (id, payload) = invocations.next(number).await.expect("it runs");
            assert_eq!(payload, "3");
            assert!(!invocations.answer(number, "another", Ok(Bytes::new())));
            invocations.answer(number, &id, Ok("three".into()))
        };
        let (answer, taken) = tokio::join!(invocations.invoke("3".to_owned(), LIMIT), taken);
        assert!(matches!(answer, Outcome::Answered(Ok(answer)) if answer == "three") && taken);
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_that_is_late_or_has_ended_takes_nothing_more() {
        let invocations = Invocations::default();
        let (number, end) = invocations.add_process();
        let (late, _) = tokio::join!(invocations.invoke("1".to_owned(), LIMIT), async {
            invocations.next(number).await.expect("it runs")
        },);
        assert!(matches!(late, Outcome::TimedOut));
        assert!(end.await.is_err() && invocations.next(number).await.is_none());
    }
}
