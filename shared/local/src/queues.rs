//! The stack's queues: a message stays in a queue until a receiver deletes it.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use serde::Serialize;
use tokio::time::Instant;

use crate::{clock, kept::Kept, template::last_part};

pub use crate::message::Message;

/// A message handed to a receiver, who has to delete it before others see it again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Received {
    /// The message.
    #[serde(flatten)]
    pub message: Message,
    /// The receipt with which to delete it.
    pub receipt_handle: String,
}

/// The template has no such queue.
#[derive(Debug, thiserror::Error)]
#[error("there is no queue {queue}")]
pub struct UnknownQueue {
    /// The name, URL or ARN asked for.
    pub queue: String,
}

struct Waiting {
    message: Message,
    /// The receipt of the latest receiver.
    receipt: Option<String>,
    hidden_until: Option<Instant>,
}

/// All queues of the stack.
#[derive(Clone, Default)]
pub struct Queues {
    messages: Arc<Mutex<BTreeMap<String, Vec<Waiting>>>>,
    kept: Option<Kept>,
}

impl Queues {
    /// Empty queues of these names.
    #[must_use]
    pub fn new(names: impl IntoIterator<Item = String>) -> Self {
        let empty = names.into_iter().map(|name| (name, Vec::new())).collect();
        Self { messages: Arc::new(Mutex::new(empty)), kept: None }
    }

    /// Queues of these names, with the messages that an earlier stack has kept, if there are any. They are kept again.
    #[must_use]
    pub(crate) fn of(names: impl IntoIterator<Item = String>, kept: Option<Kept>) -> Self {
        let mut messages = kept.as_ref().map(Kept::queues).unwrap_or_default();
        let waiting = |message| Waiting { message, receipt: None, hidden_until: None };
        let mut of = |name: String| {
            let kept = messages.remove(&name).unwrap_or_default();
            (name, kept.into_iter().map(waiting).collect())
        };
        let queues = names.into_iter().map(&mut of).collect();
        Self { messages: Arc::new(Mutex::new(queues)), kept }
    }

    /// Adds a message to the queue of this name, URL or ARN. Returns its id.
    ///
    /// # Errors
    /// No queue has this name, URL or ARN.
    pub fn send(&self, queue: &str, body: String) -> Result<String, UnknownQueue> {
        self.send_with(queue, body, BTreeMap::new())
    }

    /// Adds a message with attributes; otherwise as [`Self::send`].
    ///
    /// # Errors
    /// No queue has this name, URL or ARN.
    pub fn send_with(
        &self,
        queue: &str,
        body: String,
        attributes: BTreeMap<String, String>,
    ) -> Result<String, UnknownQueue> {
        let message_id = clock::id();
        let message = Message { message_id: message_id.clone(), body, attributes };
        self.change(queue, |waiting| {
            waiting.push(Waiting { message, receipt: None, hidden_until: None });
        })?;
        Ok(message_id)
    }

    /// Receives at most `max` messages that no other receiver has, oldest first. They are hidden from others
    /// for `visibility`.
    ///
    /// # Errors
    /// No queue has this name, URL or ARN.
    pub fn receive(
        &self,
        queue: &str,
        max: usize,
        visibility: Duration,
    ) -> Result<Vec<Received>, UnknownQueue> {
        let now = Instant::now();
        self.on(queue, |waiting| {
            let visible = |w: &&mut Waiting| w.hidden_until.is_none_or(|until| until <= now);
            let receive = |waiting: &mut Waiting| {
                let receipt_handle = clock::id();
                waiting.receipt = Some(receipt_handle.clone());
                waiting.hidden_until = now.checked_add(visibility);
                Received { message: waiting.message.clone(), receipt_handle }
            };
            waiting.iter_mut().filter(visible).take(max).map(receive).collect()
        })
    }

    /// Deletes the message of this receipt. Returns false if it is not the latest receipt of a message.
    ///
    /// # Errors
    /// No queue has this name, URL or ARN.
    pub fn delete(&self, queue: &str, receipt: &str) -> Result<bool, UnknownQueue> {
        self.change(queue, |waiting| {
            let before = waiting.len();
            waiting.retain(|waiting| waiting.receipt.as_deref() != Some(receipt));
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
        self.on(queue, |waiting| {
            let of_receipt = |w: &&mut Waiting| w.receipt.as_deref() == Some(receipt);
            let found = waiting.iter_mut().find(of_receipt);
            found.map(|waiting| waiting.hidden_until = until).is_some()
        })
    }

    /// Every queue by name, with its messages, received or not, oldest first.
    #[must_use]
    pub fn messages(&self) -> BTreeMap<String, Vec<Message>> {
        messages(&self.messages.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// As [`Self::on`], and keeps the messages.
    fn change<T>(
        &self,
        queue: &str,
        act: impl FnOnce(&mut Vec<Waiting>) -> T,
    ) -> Result<T, UnknownQueue> {
        let acted = self.on(queue, act)?;
        if let Some(kept) = &self.kept {
            let queues = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
            kept.keep_queues(messages(&queues));
        }
        Ok(acted)
    }

    fn on<T>(
        &self,
        queue: &str,
        act: impl FnOnce(&mut Vec<Waiting>) -> T,
    ) -> Result<T, UnknownQueue> {
        let mut queues = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        let unknown = || UnknownQueue { queue: queue.to_owned() };
        Ok(act(queues.get_mut(last_part(queue)).ok_or_else(unknown)?))
    }
}

fn messages(queues: &BTreeMap<String, Vec<Waiting>>) -> BTreeMap<String, Vec<Message>> {
    let messages = |waiting: &Vec<Waiting>| waiting.iter().map(|w| w.message.clone()).collect();
    queues.iter().map(|(name, waiting)| (name.clone(), messages(waiting))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_received_message_is_hidden_until_it_is_deleted_or_its_time_is_over() {
        let queues = Queues::new(["dead".to_owned()]);
        for body in ["a", "b", "c"] {
            queues.send("dead", body.to_owned()).expect("a queue");
        }
        let visibility = Duration::from_secs(30);
        let receive = |max| queues.receive("http://x/0/dead", max, visibility).expect("a queue");
        let bodies = |received: &[Received]| -> Vec<String> {
            received.iter().map(|r| r.message.body.clone()).collect()
        };
        let first = receive(2);
        assert_eq!(bodies(&first), ["a", "b"]);
        assert_eq!(bodies(&receive(10)), ["c"]);
        assert!(receive(10).is_empty());
        assert!(queues.delete("dead", &first[0].receipt_handle).expect("a queue"));
        assert_eq!(queues.messages()["dead"].len(), 2);

        tokio::time::advance(visibility).await;
        assert_eq!(bodies(&receive(10)), ["b", "c"]);
        let late = queues.delete("dead", &first[1].receipt_handle).expect("a queue");
        assert!(!late, "another received it since");
    }
}
