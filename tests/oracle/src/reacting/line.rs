//! A FIFO queue with the promises of SQS: within a group one message after another, at least once.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use ringfence_aws::Random;
use ringfence_lambda::slice::QueuedCommand;
use ringfence_services::queue::CommandQueue;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::storm::Storm;
use crate::Kind;

/// The id of a message is known for this long.
const DEDUPLICATION: Duration = Duration::from_secs(300);
/// A received message is hidden for this long, which is longer than a function runs.
const VISIBILITY: Duration = Duration::from_secs(60);
/// The most messages of a batch.
const BATCH_MAX: usize = 10;

#[derive(Clone, Debug)]
struct Message {
    id: usize,
    command: String,
    group: String,
    body: String,
    sent: Instant,
    received: u32,
    receipt: usize,
    /// It is visible from this time on.
    shown: Instant,
    is_deleted: bool,
}

#[derive(Default)]
struct State {
    messages: Vec<Message>,
    /// The commands of dead letters.
    dead_letters: Vec<String>,
    receipts: usize,
    requests: u64,
}

/// The queue of commands and the queue of dead letters.
#[derive(Clone)]
pub(crate) struct Line(Arc<Mutex<State>>, Arc<Storm>);

type Sent<'a> = BoxFuture<'a, Result<(), Box<dyn std::error::Error + Send + Sync>>>;

impl Line {
    pub(crate) fn new(storm: Arc<Storm>) -> Self {
        Self(Arc::default(), storm)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next messages, as Lambda delivers them, with their receipts by their ids.
    pub(crate) fn receive(&self) -> (Vec<Value>, Vec<(String, usize)>) {
        let (mut state, now) = (self.state(), Instant::now());
        let state = &mut *state;
        let (mut held, mut batch, mut receipts): (Vec<String>, Vec<_>, Vec<_>) = Default::default();
        for message in state.messages.iter_mut().filter(|of| !of.is_deleted) {
            if message.shown > now || held.contains(&message.group) || batch.len() == BATCH_MAX {
                held.push(message.group.clone());
                continue;
            }
            state.receipts += 1;
            message.received += 1;
            (message.receipt, message.shown) = (state.receipts, now + VISIBILITY);
            receipts.push((message.id.to_string(), message.receipt));
            batch.push(json!({
                "messageId": message.id.to_string(),
                "receiptHandle": message.receipt.to_string(),
                "body": message.body,
                "attributes": {
                    "MessageGroupId": message.group,
                    "ApproximateReceiveCount": message.received.to_string(),
                },
                "eventSource": "aws:sqs",
                "eventSourceARN": "arn:aws:sqs:eu-west-1:123456789012:CommandQueue.fifo",
            }));
        }
        (batch, receipts)
    }

    pub(crate) fn delete(&self, receipt: usize) {
        let mut state = self.state();
        if let Some(message) = state.messages.iter_mut().find(|of| of.receipt == receipt) {
            message.is_deleted = true;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.state().messages.iter().all(|of| of.is_deleted)
    }

    /// The commands of a group, in the order in which the queue has taken them, with repeats.
    pub(crate) fn taken(&self, group: &str) -> Vec<String> {
        let state = self.state();
        let of_group = state.messages.iter().filter(|of| of.group == group);
        of_group.map(|of| of.command.clone()).collect()
    }

    pub(crate) fn dead_letters(&self) -> Vec<String> {
        self.state().dead_letters.clone()
    }

    /// Carries a request out. It may fail, before or after that.
    fn request<'a>(&'a self, carry_out: impl FnOnce(&mut State) + Send + 'a) -> Sent<'a> {
        async move {
            let n = {
                let mut state = self.state();
                state.requests += 1;
                state.requests
            };
            let random = &mut Random::new(&[self.1.seed, 25, n]);
            let (before, after) = (random.chance(5), random.chance(5));
            sleep(Duration::from_millis(random.below(8))).await;
            if before && self.1.has(Kind::LostBefore) {
                return Err("lost".into());
            }
            carry_out(&mut self.state());
            sleep(Duration::from_millis(random.below(8))).await;
            let is_lost = after && self.1.has(Kind::LostAfter);
            if is_lost { Err("lost".into()) } else { Ok(()) }
        }
        .boxed()
    }
}

impl CommandQueue for Line {
    fn send(&self, queued: &QueuedCommand) -> Sent<'_> {
        let (command, group) = (queued.command_id.clone(), queued.group.clone());
        let body = json!(queued).to_string();
        self.request(move |state| {
            let sent = Instant::now();
            let is_known = |of: &Message| of.command == command && sent - of.sent < DEDUPLICATION;
            if state.messages.iter().any(is_known) {
                return;
            }
            let (id, receipt) = (state.messages.len(), 0);
            state.messages.push(Message {
                id,
                command,
                group,
                body,
                sent,
                received: 0,
                receipt,
                shown: sent,
                is_deleted: false,
            });
        })
    }

    fn keep(&self, dead_letter: &Value, _: &str, _: &str) -> Sent<'_> {
        let command = dead_letter["queued"]["commandId"].as_str().unwrap_or_default().to_owned();
        self.request(|state| state.dead_letters.push(command))
    }

    fn show_after(&self, receipt: &str, seconds: u16) -> Sent<'_> {
        let receipt: usize = receipt.parse().unwrap_or_default();
        self.request(move |state| {
            if let Some(message) = state.messages.iter_mut().find(|of| of.receipt == receipt) {
                message.shown = Instant::now() + Duration::from_secs(seconds.into());
            }
        })
    }
}
