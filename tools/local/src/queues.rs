//! The stack's queues. A message stays in a queue until a receiver deletes it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use serde::Serialize;
use tokio::time::Instant;

use crate::{
    clock,
    kept::Kept,
    template::{QueueResource, last_part},
};

pub use crate::message::Message;

/// A FIFO queue ignores a second message with the same deduplication id for this time: five minutes, as in SQS.
const DEDUPLICATION: Duration = Duration::from_secs(300);

/// A message that a receiver has. It becomes visible to others if the receiver does not delete it in time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Received {
    /// The message.
    #[serde(flatten)]
    pub message: Message,
    /// SQS's attributes, such as how often it was received.
    #[serde(rename = "Attributes", skip_serializing_if = "BTreeMap::is_empty")]
    pub system: BTreeMap<String, String>,
    /// The receipt that deletes it.
    pub receipt_handle: String,
}

/// The template has no such queue.
#[derive(Debug, thiserror::Error)]
#[error("there is no queue {queue}")]
pub struct UnknownQueue {
    /// The name, URL or ARN asked for.
    pub queue: String,
}

/// A message that a queue refuses.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// There is no such queue.
    #[error(transparent)]
    Unknown(#[from] UnknownQueue),
    /// The queue is a FIFO queue, and the message lacks its group or its deduplication id.
    #[error("{queue} is a FIFO queue: a message needs {parameter}")]
    Lacks {
        /// The queue asked for.
        queue: String,
        /// The parameter that is missing.
        parameter: &'static str,
    },
    /// A parameter has a value that SQS refuses.
    #[error("{parameter}: {why}")]
    Invalid {
        /// The parameter.
        parameter: &'static str,
        /// The rule that it breaks.
        why: &'static str,
    },
}

/// The parameters of a message in a FIFO queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageOrder {
    /// The group, whose messages stay in order.
    pub group: Option<String>,
    /// The deduplication id.
    pub deduplication: Option<String>,
}

/// The most characters of a group and of a deduplication id.
const ID_MAX: usize = 128;

impl MessageOrder {
    fn check(&self, is_fifo: bool) -> Result<(), SendError> {
        if !is_fifo && self.deduplication.is_some() {
            let (parameter, why) = ("MessageDeduplicationId", "only a FIFO queue takes one");
            return Err(SendError::Invalid { parameter, why });
        }
        let (group, deduplication) = (&self.group, &self.deduplication);
        for (parameter, id) in
            [("MessageGroupId", group), ("MessageDeduplicationId", deduplication)]
        {
            let is_id = |id: &String| {
                (1..=ID_MAX).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic())
            };
            if !id.as_ref().is_none_or(is_id) {
                let why = "it has 1 to 128 letters, digits and punctuation marks of ASCII";
                return Err(SendError::Invalid { parameter, why });
            }
        }
        Ok(())
    }
}

struct Waiting {
    message: Message,
    sent_ms: i64,
    /// The receipt of the latest receiver.
    receipt: Option<String>,
    received: u32,
    hidden_until: Option<Instant>,
}

impl Waiting {
    fn new(message: Message) -> Self {
        let sent_ms = clock::now().timestamp_millis();
        Self { message, sent_ms, receipt: None, received: 0, hidden_until: None }
    }

    fn is_hidden(&self, now: Instant) -> bool {
        self.hidden_until.is_some_and(|until| until > now)
    }

    fn receive(&mut self, now: Instant, visibility: Duration) -> Received {
        let receipt_handle = clock::id();
        self.receipt = Some(receipt_handle.clone());
        self.hidden_until = now.checked_add(visibility);
        self.received += 1;
        let group = self.message.group.clone().map(|group| ("MessageGroupId", group));
        let all = [
            ("ApproximateReceiveCount", self.received.to_string()),
            ("SentTimestamp", self.sent_ms.to_string()),
        ];
        let system = all.into_iter().chain(group).map(|(name, value)| (name.to_owned(), value));
        Received { message: self.message.clone(), system: system.collect(), receipt_handle }
    }
}

struct Queue {
    resource: QueueResource,
    waiting: Vec<Waiting>,
    /// The deduplication ids of the last minutes, each with its message and its expiry.
    known: BTreeMap<(Option<String>, String), (Instant, String)>,
}

impl Queue {
    fn new(resource: QueueResource, messages: Vec<Message>) -> Self {
        let waiting = messages.into_iter().map(Waiting::new).collect();
        Self { resource, waiting, known: BTreeMap::new() }
    }

    /// The id of the message that had the deduplication id within five minutes. If there was none, the id now belongs
    /// to this message.
    fn known(&mut self, group: &str, deduplication: String, message_id: &str) -> Option<String> {
        let now = Instant::now();
        self.known.retain(|_, (until, _)| *until > now);
        let scope = self.resource.deduplicates_by_group.then(|| group.to_owned());
        let until = now.checked_add(DEDUPLICATION)?;
        let key = (scope, deduplication);
        if let Some((_, known)) = self.known.get(&key) {
            return Some(known.clone());
        }
        self.known.insert(key, (until, message_id.to_owned()));
        None
    }

    /// Removes the messages that were received too often.
    fn given_up(&mut self, now: Instant) -> Vec<Message> {
        let Some(dead_letters) = &self.resource.dead_letters else { return Vec::new() };
        let max = dead_letters.received_max;
        let is_over = |waiting: &mut Waiting| waiting.received >= max && !waiting.is_hidden(now);
        self.waiting.extract_if(.., is_over).map(|waiting| waiting.message).collect()
    }

    /// Receives visible messages, oldest first. While a message is hidden, the rest of its group is hidden too.
    fn receive(&mut self, max: usize, now: Instant, visibility: Duration) -> Vec<Received> {
        let hidden = self.waiting.iter().filter(|waiting| waiting.is_hidden(now));
        let held: BTreeSet<String> = hidden.filter_map(|it| it.message.group.clone()).collect();
        let is_free = |waiting: &&mut Waiting| {
            let group = waiting.message.group.as_ref();
            !waiting.is_hidden(now) && group.is_none_or(|group| !held.contains(group))
        };
        let free = self.waiting.iter_mut().filter(is_free).take(max);
        free.map(|waiting| waiting.receive(now, visibility)).collect()
    }
}

/// All queues of the stack.
#[derive(Clone, Default)]
pub struct Queues {
    queues: Arc<Mutex<BTreeMap<String, Queue>>>,
    kept: Option<Kept>,
}

impl Queues {
    /// Empty queues of these names, which are not FIFO queues.
    #[must_use]
    pub fn new(names: impl IntoIterator<Item = String>) -> Self {
        let all: Vec<_> = names.into_iter().map(QueueResource::named).collect();
        Self::of(&all, None)
    }

    /// Queues of the template, with saved messages of an earlier stack, if there are any. Changes are saved too.
    #[must_use]
    pub(crate) fn of(resources: &[QueueResource], kept: Option<Kept>) -> Self {
        let mut messages = kept.as_ref().map(Kept::queues).unwrap_or_default();
        let mut of = |resource: &QueueResource| {
            let kept = messages.remove(&resource.name).unwrap_or_default();
            (resource.name.clone(), Queue::new(resource.clone(), kept))
        };
        let queues = resources.iter().map(&mut of).collect();
        Self { queues: Arc::new(Mutex::new(queues)), kept }
    }

    /// Empty queues, as the template declares them.
    #[must_use]
    pub fn of_template(resources: &[QueueResource]) -> Self {
        Self::of(resources, None)
    }

    /// Adds a message to the queue of this name, URL or ARN. Returns its id.
    ///
    /// # Errors
    /// No queue has this name, URL or ARN, or it is a FIFO queue.
    pub fn send(&self, queue: &str, body: String) -> Result<String, SendError> {
        self.send_with(queue, body, BTreeMap::new())
    }

    /// Adds a message with attributes; otherwise as [`Self::send`].
    ///
    /// # Errors
    /// As [`Self::send`].
    pub fn send_with(
        &self,
        queue: &str,
        body: String,
        attributes: BTreeMap<String, String>,
    ) -> Result<String, SendError> {
        self.put(queue, body, attributes, MessageOrder::default())
    }

    /// Adds a message with attributes and with the parameters of a FIFO queue. If the queue had a message with the same
    /// deduplication id within five minutes, it adds nothing, and returns that message's id.
    ///
    /// # Errors
    /// No queue has this name, URL or ARN, or it is a FIFO queue and the message lacks one of its parameters.
    pub fn put(
        &self,
        queue: &str,
        body: String,
        attributes: BTreeMap<String, String>,
        order: MessageOrder,
    ) -> Result<String, SendError> {
        let message_id = clock::id();
        let message = |group| Message { message_id: message_id.clone(), body, attributes, group };
        self.change(queue, |to| {
            order.check(to.resource.is_fifo)?;
            if !to.resource.is_fifo {
                to.waiting.push(Waiting::new(message(None)));
                return Ok(message_id.clone());
            }
            let lacks = |parameter| SendError::Lacks { queue: queue.to_owned(), parameter };
            let group = order.group.ok_or_else(|| lacks("MessageGroupId"))?;
            let deduplication = order.deduplication;
            let deduplication = deduplication.ok_or_else(|| lacks("MessageDeduplicationId"))?;
            if let Some(known) = to.known(&group, deduplication, &message_id) {
                return Ok(known);
            }
            to.waiting.push(Waiting::new(message(Some(group))));
            Ok(message_id.clone())
        })?
    }

    /// Receives at most `max` messages that no other receiver has, oldest first. They are hidden from others for
    /// `visibility`, or for the queue's default time. In a FIFO queue, a hidden message also hides the rest of its
    /// group. Messages that were received as often as the queue allows go to its dead-letter queue.
    ///
    /// # Errors
    /// No queue has this name, URL or ARN.
    pub fn receive(
        &self,
        queue: &str,
        max: usize,
        visibility: Option<Duration>,
    ) -> Result<Vec<Received>, UnknownQueue> {
        let now = Instant::now();
        let given_up = self.on(queue, |of| {
            let dead_letters =
                of.resource.dead_letters.as_ref().map(|dead_letters| dead_letters.queue.clone());
            dead_letters.map(|dead_letters| (dead_letters, of.given_up(now)))
        })?;
        if let Some((dead_letters, messages)) =
            given_up.filter(|(_, messages)| !messages.is_empty())
        {
            let messages = messages.into_iter().map(Waiting::new);
            self.change(&dead_letters, |to| to.waiting.extend(messages))?;
        }
        self.on(queue, |of| {
            let visibility = visibility.unwrap_or(of.resource.visibility);
            of.receive(max, now, visibility)
        })
    }

    /// A queue's attributes by the names of SQS, with the approximate number of messages.
    ///
    /// # Errors
    /// No queue has this name, URL or ARN.
    pub fn attributes(&self, queue: &str) -> Result<BTreeMap<&'static str, String>, UnknownQueue> {
        let now = Instant::now();
        self.on(queue, |of| {
            let hidden = of.waiting.iter().filter(|waiting| waiting.is_hidden(now)).count();
            let counts = [
                ("ApproximateNumberOfMessages", (of.waiting.len() - hidden).to_string()),
                ("ApproximateNumberOfMessagesNotVisible", hidden.to_string()),
            ];
            // Only a FIFO queue has this attribute.
            let fifo = of.resource.is_fifo.then(|| ("FifoQueue", "true".to_owned()));
            counts.into_iter().chain(fifo).collect()
        })
    }

    /// When the oldest message of a queue was sent, received or not, in milliseconds since 1970.
    ///
    /// # Errors
    /// No queue has this name, URL or ARN.
    pub fn oldest_ms(&self, queue: &str) -> Result<Option<i64>, UnknownQueue> {
        self.on(queue, |of| of.waiting.iter().map(|waiting| waiting.sent_ms).min())
    }

    /// Deletes the message of this receipt. Returns false if it is not the latest receipt of a message, or if it is of a
    /// FIFO queue and no longer hides its message.
    ///
    /// # Errors
    /// No queue has this name, URL or ARN.
    pub fn delete(&self, queue: &str, receipt: &str) -> Result<bool, UnknownQueue> {
        let now = Instant::now();
        self.change(queue, |Queue { waiting, resource, .. }| {
            let before = waiting.len();
            let has_ended = |waiting: &Waiting| resource.is_fifo && !waiting.is_hidden(now);
            waiting.retain(|it| it.receipt.as_deref() != Some(receipt) || has_ended(it));
            waiting.len() < before
        })
    }

    /// Hides the message of this receipt for `visibility` from now on. Returns false if it is not the latest receipt
    /// of a message.
    ///
    /// # Errors
    /// No queue has this name, URL or ARN.
    pub fn hide(
        &self,
        queue: &str,
        receipt: &str,
        visibility: Duration,
    ) -> Result<bool, UnknownQueue> {
        let until = Instant::now().checked_add(visibility);
        self.on(queue, |Queue { waiting, .. }| {
            let of_receipt = |w: &&mut Waiting| w.receipt.as_deref() == Some(receipt);
            let found = waiting.iter_mut().find(of_receipt);
            found.map(|waiting| waiting.hidden_until = until).is_some()
        })
    }

    /// Every queue by name, with its messages, received or not, oldest first.
    #[must_use]
    pub fn messages(&self) -> BTreeMap<String, Vec<Message>> {
        messages(&self.queues.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Does the same as [`Self::on`], and saves the messages.
    fn change<T>(&self, queue: &str, act: impl FnOnce(&mut Queue) -> T) -> Result<T, UnknownQueue> {
        let acted = self.on(queue, act)?;
        if let Some(kept) = &self.kept {
            let queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
            kept.keep_queues(messages(&queues));
        }
        Ok(acted)
    }

    fn on<T>(&self, queue: &str, act: impl FnOnce(&mut Queue) -> T) -> Result<T, UnknownQueue> {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        let unknown = || UnknownQueue { queue: queue.to_owned() };
        Ok(act(queues.get_mut(last_part(queue)).ok_or_else(unknown)?))
    }
}

fn messages(queues: &BTreeMap<String, Queue>) -> BTreeMap<String, Vec<Message>> {
    let messages = |of: &Queue| of.waiting.iter().map(|w| w.message.clone()).collect();
    queues.iter().map(|(name, of)| (name.clone(), messages(of))).collect()
}

#[cfg(test)]
#[path = "queues_tests.rs"]
mod tests;
