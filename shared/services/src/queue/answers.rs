//! States and answers of commands: one item for each in the view table, under
//! `view` = `$Command-<command id>` and `id` = `ANSWER`.
//!
//! | attribute | holds |
//! |---|---|
//! | `slice`, `sha256` | the slice, and the hash of slice, command and principal: the id belongs to these alone |
//! | `principal` | who gave it; absent if nobody is known |
//! | `queuedAt` | when it was taken: RFC 3339 |
//! | `state` | `pending`, `accepted`, `rejected` or `failed` |
//! | `answer` | what the slice's function would have answered, as JSON: of `accepted` and `rejected` |
//! | `tries`, `firstFailed`, `problem` | how often it had no answer since it was put into the queue, since when, and why the last time |
//! | `givenUp` | of `failed`: the message of the queue that a dead letter has |
//! | `expiresAt` | when DynamoDB deletes the item |

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{
    AttributeValue, Put, ReturnValuesOnConditionCheckFailure, builders::PutBuilder,
};
use ringfence_aws::{Clock, Failure, GaveUp, Item, Meter, Retry, Table};
use ringfence_core::{KEY_KEPT_SECONDS, canonical_json, rfc3339};
use ringfence_lambda::slice::QueuedCommand;
use ringfence_views::attributes::{EXPIRES_AT, ID, VIEW};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// How long after its first failure a command counts as waiting, in milliseconds: 24 hours. Its tries take less than
/// two hours. If it has no answer after this time, SQS may have given up its message without a note.
const LOST_AFTER_MS: u64 = 24 * 60 * 60_000;
/// The condition that a command has no answer.
const UNANSWERED: &str = "attribute_not_exists(#answer)";
/// The beginning of answers' partition keys.
const COMMAND: &str = "$Command-";
const ANSWER: &str = "ANSWER";

/// The state of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandState {
    /// It is in the queue, or being carried out.
    Pending,
    /// It is accepted.
    Accepted,
    /// The slice has rejected it, or it can't be accepted as it is.
    Rejected,
    /// It had no answer after all tries. A dead letter has it.
    Failed,
}

const STATES: [(CommandState, &str); 4] = [
    (CommandState::Pending, "pending"),
    (CommandState::Accepted, "accepted"),
    (CommandState::Rejected, "rejected"),
    (CommandState::Failed, "failed"),
];

impl CommandState {
    fn text(self) -> &'static str {
        STATES.iter().find(|(state, _)| *state == self).map_or("", |(_, text)| text)
    }

    /// Whether the command has its answer.
    #[must_use]
    pub fn is_answered(self) -> bool {
        matches!(self, Self::Accepted | Self::Rejected)
    }
}

/// A command of the queue, with its state.
#[derive(Clone, Debug, PartialEq)]
pub struct CommandAnswer {
    /// Names it.
    pub command_id: String,
    /// The slice, as `<context>/<slice>`.
    pub slice: String,
    /// The hash that tells it from another command under the same id.
    pub(crate) sha256: String,
    /// Who gave it.
    pub principal: Option<String>,
    /// When it was taken: RFC 3339, UTC.
    pub queued_at: String,
    /// Its state.
    pub state: CommandState,
    /// The answer, as the slice's function would have given it.
    pub answer: Option<Value>,
    /// How often it had no answer since it was put into the queue.
    pub tries: u32,
    /// When it first had no answer: RFC 3339, UTC.
    pub first_failed: Option<String>,
    /// Why it had no answer the last time: a problem document.
    pub problem: Option<Value>,
    /// The message of the queue that a dead letter has.
    pub(crate) given_up: Option<String>,
}

impl CommandAnswer {
    /// A command that has waited since this time, in milliseconds since 1970.
    #[must_use]
    pub fn pending(queued: &QueuedCommand, now_ms: u64) -> Self {
        Self {
            command_id: queued.command_id.clone(),
            slice: queued.slice.clone(),
            sha256: sha256(queued),
            principal: queued.principal.clone(),
            queued_at: rfc3339(now_ms),
            state: CommandState::Pending,
            answer: None,
            tries: 0,
            first_failed: None,
            problem: None,
            given_up: None,
        }
    }

    /// As callers see it at a time: a command that has waited too long has failed.
    pub(crate) fn seen_at(self, now_ms: u64) -> Self {
        let lost = self.first_failed.as_deref().is_some_and(|first| *first < *lost(now_ms));
        match self.state {
            CommandState::Pending if lost => Self { state: CommandState::Failed, ..self },
            _ => self,
        }
    }

    /// The answer to callers.
    #[must_use]
    pub fn document(&self) -> Value {
        let mut document = json!({
            "commandId": self.command_id,
            "slice": self.slice,
            "queuedAt": self.queued_at,
            "state": self.state.text(),
        });
        if let Some(answer) = &self.answer {
            document["answer"] = answer.clone();
        } else if self.tries > 0 {
            document["tries"] = self.tries.into();
            document["firstFailed"] = json!(self.first_failed);
            document["problem"] = json!(self.problem);
        }
        document
    }

    fn of(item: &Item) -> Option<Self> {
        let text = |name: &str| item.get(name)?.as_s().ok().cloned();
        let json = |name: &str| serde_json::from_str(&text(name)?).ok();
        let state = text("state")?;
        Some(Self {
            command_id: text(VIEW)?.strip_prefix(COMMAND)?.to_owned(),
            slice: text("slice")?,
            sha256: text("sha256")?,
            principal: text("principal"),
            queued_at: text("queuedAt")?,
            state: STATES.iter().find(|(_, text)| *text == state)?.0,
            answer: json("answer"),
            tries: item.get("tries")?.as_n().ok()?.parse().ok()?,
            first_failed: text("firstFailed"),
            problem: json("problem"),
            given_up: text("givenUp"),
        })
    }

    fn item(&self, now_ms: u64) -> Item {
        let text = |text: &str| Some(AttributeValue::S(text.to_owned()));
        let json = |json: &Option<Value>| json.as_ref().and_then(|json| text(&json.to_string()));
        let number = |number: u64| Some(AttributeValue::N(number.to_string()));
        let mut item = key(&self.command_id);
        let attributes = [
            ("slice", text(&self.slice)),
            ("sha256", text(&self.sha256)),
            ("principal", self.principal.as_deref().and_then(text)),
            ("queuedAt", text(&self.queued_at)),
            ("state", text(self.state.text())),
            ("answer", json(&self.answer)),
            ("tries", number(self.tries.into())),
            ("firstFailed", self.first_failed.as_deref().and_then(text)),
            ("problem", json(&self.problem)),
            ("givenUp", self.given_up.as_deref().and_then(text)),
            (EXPIRES_AT, number(now_ms / 1_000 + KEY_KEPT_SECONDS)),
        ];
        let present = attributes.into_iter();
        item.extend(present.filter_map(|(name, value)| Some((name.to_owned(), value?))));
        item
    }
}

fn key(command_id: &str) -> Item {
    let pairs = [(VIEW, format!("{COMMAND}{command_id}")), (ID, ANSWER.to_owned())];
    pairs.map(|(name, text)| (name.to_owned(), AttributeValue::S(text))).into()
}

/// A command that failed first before this time has waited too long.
fn lost(now_ms: u64) -> String {
    rfc3339(now_ms.saturating_sub(LOST_AFTER_MS))
}

/// The hash of a command, to which its id belongs.
fn sha256(queued: &QueuedCommand) -> String {
    let QueuedCommand { slice, command, principal, sha256, .. } = queued;
    let command = sha256.as_ref().map_or_else(|| command.clone(), |sha256| json!(sha256));
    hex(&canonical_json(&json!([slice, command, principal])))
}

/// SHA-256 in hexadecimal.
pub(crate) fn hex(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The view table can't be read or written, or has an item that is not an answer.
#[derive(Debug, thiserror::Error)]
pub enum AnswersError {
    /// A request has failed.
    #[error("{operation}")]
    Store {
        /// The operation.
        operation: &'static str,
        /// Why it has failed.
        source: Box<GaveUp>,
    },
    /// An item is malformed.
    #[error("the item {COMMAND}{0} of the view table is not the answer of a command")]
    Item(String),
}

impl AnswersError {
    fn during(operation: &'static str) -> impl FnOnce(GaveUp) -> Self {
        move |source| Self::Store { operation, source: Box::new(source) }
    }
}

/// The answers, in the table of the views.
#[derive(Clone, Debug)]
pub struct CommandAnswers(Table);

impl CommandAnswers {
    /// The answers in this table.
    pub fn new(client: Client, view_table: impl Into<String>) -> Self {
        Self(Table::new(client, view_table, &Clock::system()))
    }

    /// What its requests cost so far.
    #[must_use]
    pub fn meter(&self) -> &Meter {
        self.0.meter()
    }

    /// The command of this id; `None` if it is unknown or forgotten.
    ///
    /// # Errors
    /// The table can't be read.
    pub async fn find(&self, command_id: &str) -> Result<Option<CommandAnswer>, AnswersError> {
        // The read is strong, so that an answered command is not carried out again.
        let found = Retry::default().run(|| self.0.get(key(command_id), true)).await;
        let found = found.map_err(AnswersError::during("reading the answer of a command"))?;
        found.map(|item| read(command_id, &item)).transpose()
    }

    /// Notes that a command waits, if its id is unknown, or if the same command was given up. Otherwise returns the
    /// command of this id.
    ///
    /// # Errors
    /// The table can't be written.
    pub async fn begin(
        &self,
        pending: &CommandAnswer,
        now_ms: u64,
    ) -> Result<Option<CommandAnswer>, AnswersError> {
        let put = self
            .put(pending, now_ms)
            .condition_expression(
                "attribute_not_exists(#state) OR (#sha256 = :sha256 AND #queuedAt < :queuedAt AND \
                 (#state = :failed OR (#state = :pending AND #firstFailed < :lost)))",
            )
            .expression_attribute_names("#state", "state")
            .expression_attribute_names("#sha256", "sha256")
            .expression_attribute_names("#queuedAt", "queuedAt")
            .expression_attribute_names("#firstFailed", "firstFailed")
            .expression_attribute_values(":sha256", text(&pending.sha256))
            .expression_attribute_values(":queuedAt", text(&pending.queued_at))
            .expression_attribute_values(":failed", text(CommandState::Failed.text()))
            .expression_attribute_values(":pending", text(CommandState::Pending.text()))
            .expression_attribute_values(":lost", text(&lost(now_ms)));
        self.write(put, &pending.command_id, "keeping that a command waits").await
    }

    /// Keeps an answer of a command if it has none yet, or another state if the command is unchanged since it was read
    /// as `was`. Returns the command as it is then.
    ///
    /// # Errors
    /// The table can't be written.
    pub async fn keep(
        &self,
        answer: &CommandAnswer,
        was: Option<&CommandAnswer>,
        now_ms: u64,
    ) -> Result<CommandAnswer, AnswersError> {
        let put = self.put(answer, now_ms);
        let put = match was {
            _ if answer.state.is_answered() => {
                put.condition_expression(UNANSWERED).expression_attribute_names("#answer", "answer")
            }
            None => put
                .condition_expression("attribute_not_exists(#state)")
                .expression_attribute_names("#state", "state"),
            // Each time in the queue has another time, and each try another number.
            Some(was) => put
                .condition_expression(format!(
                    "{UNANSWERED} AND #state = :state AND #queuedAt = :queuedAt AND #tries = :tries"
                ))
                .expression_attribute_names("#answer", "answer")
                .expression_attribute_names("#state", "state")
                .expression_attribute_names("#queuedAt", "queuedAt")
                .expression_attribute_names("#tries", "tries")
                .expression_attribute_values(":state", text(was.state.text()))
                .expression_attribute_values(":queuedAt", text(&was.queued_at))
                .expression_attribute_values(":tries", AttributeValue::N(was.tries.to_string())),
        };
        let other = self.write(put, &answer.command_id, "keeping the answer of a command").await?;
        Ok(other.unwrap_or_else(|| answer.clone()))
    }

    fn put(&self, answer: &CommandAnswer, now_ms: u64) -> PutBuilder {
        Put::builder().table_name(self.0.name()).set_item(Some(answer.item(now_ms)))
    }

    /// Carries out a put. If the condition does not hold, returns the item that is there.
    async fn write(
        &self,
        put: PutBuilder,
        command_id: &str,
        operation: &'static str,
    ) -> Result<Option<CommandAnswer>, AnswersError> {
        let found = ReturnValuesOnConditionCheckFailure::AllOld;
        let put = put.return_values_on_condition_check_failure(found).build();
        let put = put.expect("table and item are set");
        match Retry::default().run(|| self.0.put(put.clone())).await {
            Ok(()) => Ok(None),
            Err(GaveUp { failure: Failure::Condition(Some(known)), .. }) => {
                read(command_id, &known).map(Some)
            }
            Err(error) => Err(AnswersError::during(operation)(error)),
        }
    }
}

fn text(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

fn read(command_id: &str, item: &Item) -> Result<CommandAnswer, AnswersError> {
    CommandAnswer::of(item).ok_or_else(|| AnswersError::Item(command_id.to_owned()))
}
