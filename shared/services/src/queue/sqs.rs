//! The queue of commands, and the queue of dead letters about commands that were given up. Both are FIFO queues of SQS.

use std::error::Error;

use futures::FutureExt;
use futures::future::BoxFuture;
use ringfence_lambda::slice::QueuedCommand;
use ringfence_lambda::{MESSAGE_BYTES_MAX, message};
use serde_json::{Value, json};

use crate::queue::answers::hex;

/// Most bytes of a command as a message. Its dead letter has the whole command, and the cause.
pub const COMMAND_BYTES_MAX: usize = MESSAGE_BYTES_MAX - 4 * 1024;
/// The longest id of a group and of a deduplication.
pub(crate) const ID_CHARS_MAX: usize = 128;

/// Why a request to a queue has failed.
type QueueError = Box<dyn Error + Send + Sync>;

/// Sends commands and dead letters, and says when a command that failed is tried again.
pub trait CommandQueue: Send + Sync {
    /// Puts a command into the queue. Within five minutes SQS takes each command id once.
    fn send(&self, queued: &QueuedCommand) -> BoxFuture<'_, Result<(), QueueError>>;

    /// Keeps a dead letter about a message of this group. Each message has one dead letter at most.
    fn keep(
        &self,
        dead_letter: &Value,
        message_id: &str,
        group: &str,
    ) -> BoxFuture<'_, Result<(), QueueError>>;

    /// Shows the message of this receipt again after so many seconds.
    fn show_after(&self, receipt: &str, seconds: u16) -> BoxFuture<'_, Result<(), QueueError>>;
}

/// Two queues of SQS.
pub struct SqsCommandQueue {
    client: aws_sdk_sqs::Client,
    commands: String,
    dead_letters: String,
}

impl SqsCommandQueue {
    /// The queues at these URLs.
    #[must_use]
    pub fn new(client: aws_sdk_sqs::Client, commands: String, dead_letters: String) -> Self {
        Self { client, commands, dead_letters }
    }
}

/// A command as a message.
pub(crate) fn body(queued: &QueuedCommand) -> String {
    message(&json!(queued))
}

/// The id of a group. It has at most 128 visible characters of ASCII; any other string is replaced by its hash.
fn group_id(group: &str) -> String {
    let is_plain = group.len() <= ID_CHARS_MAX && group.bytes().all(|byte| byte.is_ascii_graphic());
    if is_plain && !group.is_empty() { group.to_owned() } else { hex(group) }
}

/// Puts a command into the queue at a URL. Within five minutes SQS takes each command id once.
///
/// # Errors
/// SQS does not take it.
pub fn queue_command(
    client: &aws_sdk_sqs::Client,
    queue_url: &str,
    queued: &QueuedCommand,
) -> BoxFuture<'static, Result<(), QueueError>> {
    let send = client.send_message().queue_url(queue_url);
    let send = send.message_body(body(queued)).message_group_id(group_id(&queued.group));
    let send = send.message_deduplication_id(&queued.command_id);
    async move { send.send().await.map(drop).map_err(Into::into) }.boxed()
}

impl CommandQueue for SqsCommandQueue {
    fn send(&self, queued: &QueuedCommand) -> BoxFuture<'_, Result<(), QueueError>> {
        queue_command(&self.client, &self.commands, queued)
    }

    fn keep(
        &self,
        dead_letter: &Value,
        message_id: &str,
        group: &str,
    ) -> BoxFuture<'_, Result<(), QueueError>> {
        let send = self.client.send_message().queue_url(&self.dead_letters);
        let send = send.message_body(message(dead_letter)).message_group_id(group_id(group));
        let send = send.message_deduplication_id(message_id);
        async move { send.send().await.map(drop).map_err(Into::into) }.boxed()
    }

    fn show_after(&self, receipt: &str, seconds: u16) -> BoxFuture<'_, Result<(), QueueError>> {
        let change = self.client.change_message_visibility().queue_url(&self.commands);
        let change = change.receipt_handle(receipt).visibility_timeout(seconds.into());
        async move { change.send().await.map(drop).map_err(Into::into) }.boxed()
    }
}
