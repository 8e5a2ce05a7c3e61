//! Carries out the commands of a batch: the groups side by side, and the commands of a group in their order.

use std::collections::BTreeMap;

use aws_lambda_events::sqs::SqsMessage;
use futures::stream::{StreamExt, iter};
use ringfence_aws::Clock;
use ringfence_core::{chain, json, rfc3339};
use ringfence_lambda::slice::QueuedCommand;
use ringfence_lambda::{Problem, bounded, has_time};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::queue::answers::{AnswersError, CommandAnswer, CommandAnswers, CommandState};
use crate::queue::commands::OpenSlice;
use crate::queue::sqs::{COMMAND_BYTES_MAX, CommandQueue};

/// A command is given up after this many tries without an answer.
pub const TRIES_MAX: u32 = 8;
/// The pauses after the tries, in seconds; the last one is repeated. Together that is some forty minutes.
const PAUSES_SECONDS: [u16; 5] = [2, 10, 60, 300, 600];
/// If a message was received more often than this, each try is noted before it begins, because it may end the process.
/// It is twice the number of tries, because a message also comes again if an earlier one of its group fails.
const NOTED_AFTER: u32 = 2 * TRIES_MAX;

/// The attribute that names the group of a message.
const GROUP: &str = "MessageGroupId";
/// The longest cause of a dead letter, in bytes of JSON.
const CAUSE_BYTES_MAX: usize = 1_024;

/// Carries out a batch.
pub(crate) struct Batch<'a> {
    pub(crate) slices: &'a [OpenSlice],
    pub(crate) answers: &'a CommandAnswers,
    pub(crate) queue: &'a dyn CommandQueue,
    pub(crate) clock: &'a Clock,
    pub(crate) request_id: &'a str,
    /// When the last command must have its answer, in milliseconds since 1970 by the machine's clock.
    pub(crate) until_ms: u64,
}

/// A message of the queue.
struct Delivered {
    id: String,
    receipt: String,
    group: String,
    /// How often it was received, now included.
    received: u32,
    body: String,
}

impl Delivered {
    /// The message that Lambda delivers. If it can't be read, its body is the whole record. That is not a command, so a
    /// dead letter keeps it.
    fn of(record: &Value) -> Self {
        let message = SqsMessage::deserialize(record).unwrap_or_else(|_| {
            let text = |pointer| record.pointer(pointer)?.as_str().map(str::to_owned);
            let group = text("/attributes/MessageGroupId").map(|group| (GROUP.to_owned(), group));
            let mut unread = SqsMessage::default();
            unread.message_id = text("/messageId");
            unread.attributes = group.into_iter().collect();
            unread.body = Some(record.to_string());
            unread
        });
        let mut attributes = message.attributes;
        let received = attributes.remove("ApproximateReceiveCount");
        Self {
            id: message.message_id.unwrap_or_default(),
            receipt: message.receipt_handle.unwrap_or_default(),
            group: attributes.remove(GROUP).unwrap_or_default(),
            received: received.and_then(|count| count.parse().ok()).unwrap_or(1),
            body: message.body.unwrap_or_default(),
        }
    }
}

impl Batch<'_> {
    /// Carries out the commands of these messages. Returns the ids of messages that must come again.
    pub(crate) async fn run(&self, records: &[Value]) -> Vec<String> {
        let mut groups: BTreeMap<String, Vec<Delivered>> = BTreeMap::new();
        for message in records.iter().map(Delivered::of) {
            groups.entry(message.group.clone()).or_default().push(message);
        }
        // One of them may end the process each time. The others must not have begun then, because that counts as a try.
        let all_at_once = groups.values().flatten().all(|it| it.received <= NOTED_AFTER);
        let at_once = if all_at_once { groups.len().max(1) } else { 1 };
        let groups = iter(groups.into_values()).map(|messages| self.group(messages));
        groups.buffer_unordered(at_once).concat().await
    }

    /// Carries out the commands of a group. A failed command holds back the later ones.
    async fn group(&self, messages: Vec<Delivered>) -> Vec<String> {
        let (mut pause, mut again) = (None, Vec::new());
        for message in messages {
            if pause.is_none() {
                pause = self.one(&message).await.err();
            }
            if let Some(seconds) = pause {
                // If it fails, the queue shows the message when its own time is over.
                let _ = self.queue.show_after(&message.receipt, seconds).await;
                again.push(message.id);
            }
        }
        again
    }

    /// Carries out one command. An error is the time in seconds after which it is to be tried again.
    async fn one(&self, message: &Delivered) -> Result<(), u16> {
        self.check_time()?;
        let read = json::read(&message.body, json::LEVELS_MAX).map_err(|error| error.to_string());
        let queued = read.and_then(|json| {
            serde_json::from_value::<QueuedCommand>(json).map_err(|error| error.to_string())
        });
        let queued = match queued {
            Ok(queued) => queued,
            Err(error) => {
                let cause = format!("the message is not a command of this stack: {error}");
                let cause = bounded(&cause, CAUSE_BYTES_MAX);
                // Only the queue's owner can put such a message there. If it is long, its beginning is kept.
                let body = bounded(&message.body, COMMAND_BYTES_MAX);
                let dead_letter = json!({ "cause": cause, "body": body });
                return self.give_up(message, &dead_letter).await;
            }
        };
        let known = self.answers.find(&queued.command_id).await;
        let known = known.map_err(|error| self.failed(message, &queued, &error))?;
        let answer = match &known {
            // Its answer or dead letter was kept, but then the message was not deleted.
            Some(known) if known.state.is_answered() => return Ok(()),
            Some(known) if known.given_up.as_ref() == Some(&message.id) => return Ok(()),
            Some(known) if known.state == CommandState::Pending => known.clone(),
            // Its item was deleted, or its dead letter was redriven.
            _ => CommandAnswer::pending(&queued, self.clock.now_ms()),
        };
        let standing = self.carry_out(message, &queued, known, answer).await?;
        match standing.state {
            CommandState::Pending => Err(pause(standing.tries)),
            _ => Ok(()),
        }
    }

    /// Carries out a command. `known`: its item, if there is one; `answer`: its waiting state. Returns its state
    /// afterwards.
    async fn carry_out(
        &self,
        message: &Delivered,
        queued: &QueuedCommand,
        mut known: Option<CommandAnswer>,
        answer: CommandAnswer,
    ) -> Result<CommandAnswer, u16> {
        let mut note = CommandAnswer { tries: answer.tries + 1, ..answer.clone() };
        note.first_failed.get_or_insert_with(|| rfc3339(self.clock.now_ms()));
        if message.received > NOTED_AFTER {
            let problem = unanswered();
            if answer.tries >= TRIES_MAX {
                return self.note_failure(message, queued, known, answer, problem).await;
            }
            note.problem = Some(problem.document());
            let standing = self.keep(message, queued, &note, known.as_ref()).await?;
            if standing != note {
                return Ok(standing);
            }
            known = Some(standing);
        }
        // The requests to the table may have taken long.
        self.check_time()?;
        let (state, document) = match self.answered(queued).await {
            Ok(accepted) => (CommandState::Accepted, accepted),
            Err(problem) if problem.settles_command() => {
                (CommandState::Rejected, problem.document())
            }
            Err(problem) => return self.note_failure(message, queued, known, note, problem).await,
        };
        let answer = CommandAnswer { state, answer: Some(document), ..answer };
        self.keep(message, queued, &answer, known.as_ref()).await
    }

    /// Whether a command may begin. If not, it comes again at once.
    fn check_time(&self) -> Result<(), u16> {
        if has_time(self.clock.machine_ms(), self.until_ms) { Ok(()) } else { Err(0) }
    }

    async fn answered(&self, queued: &QueuedCommand) -> Result<Value, Problem> {
        let slice = self.slices.iter().find(|slice| slice.name == queued.slice);
        let Some(slice) = slice else {
            // This happens during a deploy or after a roll-back.
            let detail = format!("this version of the stack has no slice {}", queued.slice);
            return Err(Problem::new(503, "unavailable", "The slice is not there", detail));
        };
        let (answer, line) = slice.hosted.run(queued, self.until_ms, self.request_id).await;
        line.write();
        answer
    }

    /// Notes that a command had no answer. After the last try it is kept as a dead letter.
    async fn note_failure(
        &self,
        message: &Delivered,
        queued: &QueuedCommand,
        known: Option<CommandAnswer>,
        mut note: CommandAnswer,
        problem: Problem,
    ) -> Result<CommandAnswer, u16> {
        let cause = cause(&problem);
        note.problem = Some(problem.document());
        if note.tries >= TRIES_MAX {
            note.state = CommandState::Failed;
            note.given_up = Some(message.id.clone());
            self.give_up(message, &dead_letter(cause, queued, &note)).await?;
        }
        self.keep(message, queued, &note, known.as_ref()).await
    }

    async fn keep(
        &self,
        message: &Delivered,
        queued: &QueuedCommand,
        answer: &CommandAnswer,
        known: Option<&CommandAnswer>,
    ) -> Result<CommandAnswer, u16> {
        let kept = self.answers.keep(answer, known, self.clock.now_ms()).await;
        kept.map_err(|error| self.failed(message, queued, &error))
    }

    /// Keeps a dead letter about a message, which then leaves the queue.
    async fn give_up(&self, message: &Delivered, dead_letter: &Value) -> Result<(), u16> {
        let kept = self.queue.keep(dead_letter, &message.id, &message.group).await;
        kept.map_err(|error| {
            say(
                self.request_id,
                &format!(
                    "a dead letter about message {} is not kept: {}",
                    message.id,
                    chain(&*error)
                ),
            );
            pause(message.received)
        })
    }

    /// The table of the answers has failed, so the try can't be noted. SQS counts the receives.
    fn failed(&self, message: &Delivered, queued: &QueuedCommand, error: &AnswersError) -> u16 {
        say(self.request_id, &format!("{} {}: {}", queued.slice, queued.command_id, chain(error)));
        pause(message.received)
    }
}

/// The problem of a try that left no note.
fn unanswered() -> Problem {
    let detail = "the try ended before it had an answer, or its answer could not be kept";
    Problem::new(500, "internal", "The command had no answer", detail.to_owned())
}

fn cause(problem: &Problem) -> String {
    bounded(&format!("{}: {}", problem.kind, problem.detail()), CAUSE_BYTES_MAX)
}

/// The dead letter about a command that had no answer.
fn dead_letter(cause: String, queued: &QueuedCommand, answer: &CommandAnswer) -> Value {
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
