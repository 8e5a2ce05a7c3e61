//! What callers ask over HTTP: `POST /commands/<context>/<slice>` puts a command into the queue, and
//! `GET /commands/<id>` says what became of it.

use ringfence::{KeyReused, Principal, chain};
use ringfence_dynamo::Clock;
use ringfence_function::{Issuers, Problem, http, principal};
use serde_json::Value;

use crate::answers::{AnswersError, CommandAnswer, CommandAnswers};
use crate::commands::OpenSlice;
use crate::run::say;
use crate::sqs::{COMMAND_BYTES_MAX, CommandQueue, ID_CHARS_MAX, body};

/// What answers requests.
pub(crate) struct Asked<'a> {
    pub(crate) slices: &'a [OpenSlice],
    pub(crate) answers: &'a CommandAnswers,
    pub(crate) queue: &'a dyn CommandQueue,
    pub(crate) issuers: &'a Issuers,
    pub(crate) clock: &'a Clock,
    pub(crate) request_id: &'a str,
}

impl Asked<'_> {
    /// The answer to a request of the HTTP API.
    pub(crate) async fn answer(&self, request: Value) -> Value {
        let is_get = request["requestContext"]["http"]["method"] == "GET";
        let answered = match is_get {
            true => self.look(request).await,
            false => self.take(&request).await,
        };
        let is_pending = answered.as_ref().is_ok_and(|answer| !answer.state.is_answered());
        let location =
            answered.as_ref().map(|answer| format!("/commands/{}", in_path(&answer.command_id)));
        let location = location.ok();
        let mut answer = http(answered.map(|answer| answer.document()));
        if is_pending && !is_get {
            answer["statusCode"] = 202.into();
        }
        if let Some(location) = location.filter(|_| !is_get) {
            answer["headers"]["location"] = location.into();
        }
        answer
    }

    /// Puts the command of a request into the queue, if it has no answer yet.
    async fn take(&self, request: &Value) -> Result<CommandAnswer, Problem> {
        let part = |name: &str| request["pathParameters"][name].as_str().unwrap_or_default();
        let name = format!("{}/{}", part("context"), part("slice"));
        let slice = self.slices.iter().find(|slice| slice.name == name);
        let unknown = || {
            let detail = format!("no context of this stack has the slice {name}");
            Problem::new(404, "slice-not-found", "There is no such slice", detail)
        };
        let slice = slice.ok_or_else(unknown)?;
        let queued = slice.hosted.take(&request.to_string(), self.issuers)?;
        let bytes = body(&queued).len();
        if bytes > COMMAND_BYTES_MAX {
            let detail = format!(
                "body: the command is a message of {bytes} bytes, limit {COMMAND_BYTES_MAX}; the queue takes no more, so \
                 send it to /{name}"
            );
            return Err(Problem::too_large(detail));
        }
        let now_ms = self.clock.now_ms();
        let pending = CommandAnswer::pending(&queued, now_ms);
        let known = self.answers.begin(&pending, now_ms).await;
        let known = known.map_err(|error| self.failed(&error))?;
        if known.as_ref().is_some_and(|known| known.sha256 != pending.sha256) {
            return Err(Problem::key_reused(&KeyReused { key: queued.command_id, event: None }));
        }
        let answer = known.unwrap_or(pending);
        // A command that was tried stays in the queue until it has its answer or is given up.
        if answer.state.is_answered() || answer.tries > 0 {
            return Ok(answer);
        }
        self.queue.send(&queued).await.map_err(|error| {
            say(self.request_id, &chain(&*error));
            let detail = "the command is not in the queue; send it again, with its Idempotency-Key if it has one";
            Problem::new(503, "unavailable", "The queue does not answer", detail.to_owned())
        })?;
        Ok(answer)
    }

    /// What became of a command, for the caller who gave it.
    async fn look(&self, request: Value) -> Result<CommandAnswer, Problem> {
        let asks = principal(&request, self.issuers)?;
        let id = request["pathParameters"]["id"].as_str().unwrap_or_default();
        // No command has such an id, and the table refuses keys that are much longer.
        if id.len() > ID_CHARS_MAX {
            return Err(not_found());
        }
        let found = self.answers.find(id).await.map_err(|error| {
            self.no_answers(&error, "what became of the command is not known now; ask again")
        })?;
        let found = found.filter(|found| may_see(asks.as_ref(), found)).ok_or_else(not_found)?;
        let slice = self.slices.iter().find(|slice| slice.name == found.slice);
        let scopes = slice.map_or(&[][..], |slice| slice.scopes);
        match asks.is_none_or(|asks| asks.may_use(scopes)) {
            true => Ok(found),
            false => Err(Problem::scope_missing(scopes)),
        }
    }

    /// The table fails before a command is put into the queue.
    fn failed(&self, error: &AnswersError) -> Problem {
        let detail = "nothing is in the queue for this request; send it again, with its Idempotency-Key if it has one";
        self.no_answers(error, detail)
    }

    fn no_answers(&self, error: &AnswersError, detail: &str) -> Problem {
        say(self.request_id, &chain(error));
        let title = "The answers of commands can't be read or written";
        Problem::new(503, "unavailable", title, detail.to_owned())
    }
}

/// Whether a caller may see what became of a command. One that no authorizer has looked at may see everything, as in
/// views.
fn may_see(asks: Option<&Principal>, found: &CommandAnswer) -> bool {
    asks.is_none_or(|asks| found.principal == Some(asks.to_string()))
}

/// An id, which is visible ASCII, as a part of a path.
fn in_path(id: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let each = |byte: u8| match plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    id.bytes().map(each).collect()
}

fn not_found() -> Problem {
    let detail = "no command of this id waits or was answered within fifteen days, or another caller gave it";
    Problem::new(404, "command-not-found", "There is no such command", detail.to_owned())
}
