//! The stack's queues: what is sent to one stays readable.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use serde::Serialize;

use crate::{clock, template::last_part};

/// A message of a queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Message {
    /// Its id.
    pub message_id: String,
    /// Its body.
    pub body: String,
}

/// A queue that the template has not.
#[derive(Debug, thiserror::Error)]
#[error("there is no queue {queue}")]
pub struct UnknownQueue {
    /// The name, URL or ARN asked for.
    pub queue: String,
}

/// All queues of the stack.
#[derive(Clone, Default)]
pub struct Queues {
    messages: Arc<Mutex<BTreeMap<String, Vec<Message>>>>,
}

impl Queues {
    /// Empty queues of these names.
    #[must_use]
    pub fn new(names: impl IntoIterator<Item = String>) -> Self {
        let empty = names.into_iter().map(|name| (name, Vec::new())).collect();
        Self { messages: Arc::new(Mutex::new(empty)) }
    }

    /// Adds a message to the queue of this name, URL or ARN; returns its id.
    ///
    /// # Errors
    /// When there is no such queue.
    pub fn send(&self, queue: &str, body: String) -> Result<String, UnknownQueue> {
        let mut messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        let unknown = || UnknownQueue { queue: queue.to_owned() };
        let queue = messages.get_mut(last_part(queue)).ok_or_else(unknown)?;
        let message_id = clock::id();
        queue.push(Message { message_id: message_id.clone(), body });
        Ok(message_id)
    }

    /// Every queue by name, with its messages, oldest first.
    #[must_use]
    pub fn messages(&self) -> BTreeMap<String, Vec<Message>> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
