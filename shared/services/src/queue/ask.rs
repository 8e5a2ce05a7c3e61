//! Requests of callers: `POST /commands/<context>/<slice>` puts a command into the queue, `GET /commands/<id>` tells
//! its state.

use std::error::Error;
use std::time::Duration;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use ringfence_aws::Clock;
use ringfence_core::{KeyReused, Principal, chain};
use ringfence_lambda::slice::QueuedCommand;
use ringfence_lambda::{ApiGatewayV2httpRequest, ApiGatewayV2httpResponse};
use ringfence_lambda::{Issuers, Problem, http, principal, request};
use serde_json::Value;
use tokio::time::timeout;

use crate::queue::answers::{AnswersError, CommandAnswer, CommandAnswers};
use crate::queue::commands::OpenSlice;
use crate::queue::run::say;
use crate::queue::sqs::{COMMAND_BYTES_MAX, CommandQueue, ID_CHARS_MAX, body};

/// Answers requests.
pub(crate) struct Asked<'a> {
    pub(crate) slices: &'a [OpenSlice],
    pub(crate) answers: &'a CommandAnswers,
    pub(crate) queue: &'a dyn CommandQueue,
    pub(crate) issuers: &'a Issuers,
    pub(crate) clock: &'a Clock,
    pub(crate) request_id: &'a str,
    /// The time for the answer.
    pub(crate) time: Duration,
}

/// The characters of an id that need no encoding in a path. A dot does: clients resolve the parts `.` and `..`, even if
/// they are percent-encoded once.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'~');

impl Asked<'_> {
    /// The answer to a request of the HTTP API.
    pub(crate) async fn answer(&self, payload: Value) -> ApiGatewayV2httpResponse {
        let request = match request(payload) {
            Ok(request) => request,
            Err(problem) => return http(Err(problem)),
        };
        let is_get = request.request_context.http.method == "GET";
        let answered = match is_get {
            true => self.look(&request).await,
            false => self.take(request).await,
        };
        let is_pending = answered.as_ref().is_ok_and(|answer| !answer.state.is_answered());
        let location =
            answered.as_ref().map(|answer| format!("/commands/{}", in_path(&answer.command_id)));
        let location = location.ok();
        let mut answer = http(answered.map(|answer| answer.document()));
        if is_pending && !is_get {
            answer.status_code = 202;
        }
        if let Some(location) = location.filter(|_| !is_get) {
            answer.headers.insert("location", location.parse().expect("the id is percent-encoded"));
        }
        answer
    }

    /// Puts the command of a request into the queue, if it has no answer yet.
    async fn take(&self, request: ApiGatewayV2httpRequest) -> Result<CommandAnswer, Problem> {
        let name = format!("{}/{}", part(&request, "context"), part(&request, "slice"));
        let slice = self.slices.iter().find(|slice| slice.name == name);
        let slice = slice.ok_or_else(Problem::slice_not_found)?;
        let queued = slice.hosted.take(request, self.issuers, self.request_id).await?;
        let bytes = body(&queued).len();
        if bytes > COMMAND_BYTES_MAX {
            let detail = format!(
                "body: the command is a message of {bytes} bytes, limit {COMMAND_BYTES_MAX}; the queue takes no more, so \
                 send it to /{name}"
            );
            return Err(Problem::too_large(detail));
        }
        let pending = CommandAnswer::pending(&queued, self.clock.now_ms());
        let put = timeout(self.time, self.put(&queued, pending)).await;
        put.unwrap_or_else(|late| Err(self.unknown(&queued, &late)))
    }

    /// Puts a command that waits into the queue, unless it was tried or answered.
    async fn put(
        &self,
        queued: &QueuedCommand,
        pending: CommandAnswer,
    ) -> Result<CommandAnswer, Problem> {
        let known = self.answers.begin(&pending, self.clock.now_ms()).await;
        let known = known.map_err(|error| self.failed(&error))?;
        if known.as_ref().is_some_and(|known| known.sha256 != pending.sha256) {
            return Err(Problem::key_reused(&KeyReused { key: pending.command_id, event: None }));
        }
        let answer = known.unwrap_or(pending);
        // A command that was tried stays in the queue until it has its answer or is given up.
        if answer.state.is_answered() || answer.tries > 0 {
            return Ok(answer);
        }
        let sent = self.queue.send(queued).await;
        sent.map_err(|error| self.unknown(queued, &*error))?;
        Ok(answer)
    }

    /// A command with its state, for the caller who gave it.
    async fn look(&self, request: &ApiGatewayV2httpRequest) -> Result<CommandAnswer, Problem> {
        let asks = principal(request, self.issuers)?;
        let id = percent_decode_str(part(request, "id")).decode_utf8_lossy();
        // No command has such an id, and the table refuses keys that are much longer.
        if id.len() > ID_CHARS_MAX {
            return Err(not_found());
        }
        let unknown = "the state of the command can't be read now; ask again";
        let found = match timeout(self.time, self.answers.find(&id)).await {
            Ok(found) => found.map_err(|error| self.no_answers(&error, unknown))?,
            Err(late) => return Err(self.no_answers(&late, unknown)),
        };
        let found = found.map(|found| found.seen_at(self.clock.now_ms()));
        let found = found.filter(|found| may_see(asks.as_ref(), found)).ok_or_else(not_found)?;
        let slice = self.slices.iter().find(|slice| slice.name == found.slice);
        let scopes = slice.and_then(|slice| slice.scopes).unwrap_or_default();
        match asks.is_none_or(|asks| asks.may_use(scopes)) {
            true => Ok(found),
            false => Err(Problem::scope_missing(scopes)),
        }
    }

    /// The queue did not confirm a command, or there is no time left to wait for that.
    fn unknown(&self, queued: &QueuedCommand, error: &(dyn Error + 'static)) -> Problem {
        say(self.request_id, &chain(error));
        let id = &queued.command_id;
        let detail = format!(
            "the command may be in the queue; repeat it with the Idempotency-Key {id}, and it takes effect once"
        );
        Problem::new(504, "outcome-unknown", "The queue did not answer", detail)
    }

    /// The table fails before a command is put into the queue.
    fn failed(&self, error: &AnswersError) -> Problem {
        let detail = "nothing is in the queue for this request; send it again, with its Idempotency-Key if it has one";
        self.no_answers(error, detail)
    }

    fn no_answers(&self, error: &(dyn Error + 'static), detail: &str) -> Problem {
        say(self.request_id, &chain(error));
        let title = "The answers of commands can't be read or written";
        Problem::new(503, "unavailable", title, detail.to_owned())
    }
}

/// A part of the path of a request; empty if its route has no such part.
fn part<'r>(request: &'r ApiGatewayV2httpRequest, name: &str) -> &'r str {
    request.path_parameters.get(name).map_or("", String::as_str)
}

/// Whether a caller may see a command. Without an authorizer everybody may, as in views.
fn may_see(asks: Option<&Principal>, found: &CommandAnswer) -> bool {
    asks.is_none_or(|asks| found.principal == Some(asks.to_string()))
}

/// An id as a part of a path. API Gateway decodes a path and cuts it at a `?` before it looks for the route. So the id
/// is percent-encoded twice, and [`Asked::look`] decodes the rest.
fn in_path(id: &str) -> String {
    let once = utf8_percent_encode(id, PLAIN).to_string();
    utf8_percent_encode(&once, PLAIN).to_string()
}

fn not_found() -> Problem {
    let detail = "no command of this id waits or was answered within fifteen days, or another caller gave it";
    Problem::new(404, "command-not-found", "There is no such command", detail.to_owned())
}
