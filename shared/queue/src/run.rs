//! Carries out the commands of a batch, in the order of each group.

use std::collections::BTreeMap;

use ringfence::{chain, json, rfc3339};
use ringfence_dynamo::Clock;
use ringfence_function::{Problem, bounded};
use ringfence_lambda::QueuedCommand;
use serde_json::{Value, json};

use crate::answers::{AnswersError, CommandAnswer, CommandAnswers, CommandState};
use crate::commands::OpenSlice;
use crate::sqs::{COMMAND_BYTES_MAX, CommandQueue};

/// After how many tries without an answer a command is given up.
pub const TRIES_MAX: u32 = 8;
/// For how many seconds a command waits after each try; after the later ones, for as long as after the last of these.
/// Together that is some forty minutes.
const PAUSES_SECONDS: [u16; 5] = [2, 10, 60, 300, 600];
/// The least time for a command, in milliseconds. With less left, it waits for the next batch.
const LEAST_MS: u64 = 2_000;

/// The longest cause of a letter, in bytes of JSON.
const CAUSE_BYTES_MAX: usize = 1_024;

/// What carries out a batch.
pub(crate) struct Batch<'a> {
    pub(crate) slices: &'a [OpenSlice],
    pub(crate) answers: &'a CommandAnswers,
    pub(crate) queue: &'a dyn CommandQueue,
    pub(crate) clock: &'a Clock,
    pub(crate) request_id: &'a str,
    /// When the last command must have its answer, in milliseconds since 1970.
    pub(crate) until_ms: u64,
}

/// A message of the queue, as Lambda delivers it.
struct Delivered<'m> {
    id: &'m str,
    receipt: &'m str,
    group: &'m str,
    /// How often it was received, now included.
    received: u32,
    body: &'m str,
}

impl<'m> Delivered<'m> {
    fn of(record: &'m Value) -> Self {
        let text = |pointer: &str| record.pointer(pointer).and_then(Value::as_str);
        let text = |pointer| text(pointer).unwrap_or_default();
        Self {
            id: text("/messageId"),
            receipt: text("/receiptHandle"),
            group: text("/attributes/MessageGroupId"),
            received: text("/attributes/ApproximateReceiveCount").parse().unwrap_or(1),
            body: text("/body"),
        }
    }
}

impl Batch<'_> {
    /// Carries out the commands of these messages. Returns the ids of those that must come again. One that failed holds
    /// back the later ones of its group.
    pub(crate) async fn run(&self, records: &[Value]) -> Vec<String> {
        let (mut held, mut again) = (BTreeMap::new(), Vec::new());
        for message in records.iter().map(Delivered::of) {
            let pause = match held.get(message.group) {
                Some(pause) => Some(*pause),
                None if self.clock.now_ms() + LEAST_MS > self.until_ms => Some(0),
                None => self.one(&message).await.err(),
            };
            if let Some(seconds) = pause {
                held.insert(message.group.to_owned(), seconds);
                again.push(message.id.to_owned());
                // If it fails, the queue shows the message when its own time is over.
                let _ = self.queue.show_after(message.receipt, seconds).await;
            }
        }
        again
    }

    /// Carries out one command. An error is the time in seconds after which it is to be tried again.
    async fn one(&self, message: &Delivered<'_>) -> Result<(), u16> {
        let read = json::read(message.body, json::LEVELS_MAX).map_err(|error| error.to_string());
        let queued = read.and_then(|json| {
            serde_json::from_value::<QueuedCommand>(json).map_err(|error| error.to_string())
        });
        let queued = match queued {
            Ok(queued) => queued,
            Err(error) => {
                let cause = format!("the message is not a command of this stack: {error}");
                let cause = bounded(&cause, CAUSE_BYTES_MAX);
                // Only the queue's owner can put such a text there. Of a long one the beginning is kept.
                let body = bounded(message.body, COMMAND_BYTES_MAX);
                let letter = json!({ "cause": cause, "body": body });
                return self.give_up(message, &letter).await;
            }
        };
        let known = self.answers.find(&queued.command_id).await;
        let known = known.map_err(|error| self.failed(message, &queued, &error))?;
        let mut answer =
            known.unwrap_or_else(|| CommandAnswer::pending(&queued, self.clock.now_ms()));
        if answer.state.is_answered() {
            // Its answer was kept, and then the message was not deleted.
            return Ok(());
        }
        if answer.state == CommandState::Failed {
            // Its letter was redriven.
            answer.tries = 0;
        }
        let (state, document) = match self.answered(&queued).await {
            Ok(accepted) => (CommandState::Accepted, accepted),
            Err(problem) if problem.settles_command() => {
                (CommandState::Rejected, problem.document())
            }
            Err(problem) => return self.note_failure(message, &queued, answer, problem).await,
        };
        let answer = CommandAnswer { state, answer: Some(document), ..answer };
        self.keep(message, &queued, &answer).await
    }

    async fn answered(&self, queued: &QueuedCommand) -> Result<Value, Problem> {
        let slice = self.slices.iter().find(|slice| slice.name == queued.slice);
        let Some(slice) = slice else {
            // As during a deploy or after a roll-back.
            let detail = format!("this version of the stack has no slice {}", queued.slice);
            return Err(Problem::new(503, "unavailable", "The slice is not there", detail));
        };
        slice.hosted.run(queued, self.until_ms, self.request_id).await
    }

    /// Notes that a command had no answer. After the last try it is kept as a letter.
    async fn note_failure(
        &self,
        message: &Delivered<'_>,
        queued: &QueuedCommand,
        mut answer: CommandAnswer,
        problem: Problem,
    ) -> Result<(), u16> {
        let cause = cause(&problem);
        answer.tries += 1;
        answer.first_failed.get_or_insert_with(|| rfc3339(self.clock.now_ms()));
        answer.problem = Some(problem.document());
        let is_last = answer.tries >= TRIES_MAX;
        answer.state = if is_last { CommandState::Failed } else { CommandState::Pending };
        if is_last {
            self.give_up(message, &letter(cause, queued, &answer)).await?;
        }
        self.keep(message, queued, &answer).await?;
        if is_last { Ok(()) } else { Err(pause(answer.tries)) }
    }

    async fn keep(
        &self,
        message: &Delivered<'_>,
        queued: &QueuedCommand,
        answer: &CommandAnswer,
    ) -> Result<(), u16> {
        let kept = self.answers.keep(answer, self.clock.now_ms()).await;
        kept.map_err(|error| self.failed(message, queued, &error))
    }

    /// Keeps a letter about a message, which then leaves the queue.
    async fn give_up(&self, message: &Delivered<'_>, letter: &Value) -> Result<(), u16> {
        let kept = self.queue.keep(letter, message.id, message.group).await;
        kept.map_err(|error| {
            say(
                self.request_id,
                &format!("a letter about message {} is not kept: {}", message.id, chain(&*error)),
            );
            pause(message.received)
        })
    }

    /// The table of the answers has failed, so the try can't be noted. SQS counts the receives.
    fn failed(&self, message: &Delivered<'_>, queued: &QueuedCommand, error: &AnswersError) -> u16 {
        say(self.request_id, &format!("{} {}: {}", queued.slice, queued.command_id, chain(error)));
        pause(message.received)
    }
}

fn cause(problem: &Problem) -> String {
    bounded(&format!("{}: {}", problem.kind, problem.detail()), CAUSE_BYTES_MAX)
}

/// The letter about a command that had no answer.
fn letter(cause: String, queued: &QueuedCommand, answer: &CommandAnswer) -> Value {
    json!({
        "cause": cause,
        "queued": queued,
        "tries": answer.tries,
        "firstFailed": answer.first_failed,
    })
}

/// A line of the log.
pub(crate) fn say(request_id: &str, cause: &str) {
    tracing::error!(function_request_id = request_id, cause, "run-commands");
}

/// The pause after this many tries, in seconds.
fn pause(tries: u32) -> u16 {
    let last = PAUSES_SECONDS.len() - 1;
    let n = usize::try_from(tries.saturating_sub(1)).unwrap_or(last);
    PAUSES_SECONDS[n.min(last)]
}
