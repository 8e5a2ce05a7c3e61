//! Notices of what happens in the stack, for its watchers: the demo, the tests, the page of trouble.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use serde_json::Value;
use tokio::sync::broadcast;

/// How many notices are kept for a slow watcher before it loses the oldest.
const BEHIND_MAX: usize = 10_000;

/// Troubles kept for a watcher that comes later.
const HISTORY_MAX: usize = 100;

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Notice {
    /// An event on the bus, in EventBridge's envelope.
    Event(Arc<Value>),
    /// Something went wrong of which no caller learns.
    Trouble(Arc<str>),
}

/// Sends notices to every watcher.
#[derive(Clone)]
pub struct Notices {
    sender: broadcast::Sender<Notice>,
    history: Arc<Mutex<VecDeque<Arc<str>>>>,
}

impl Default for Notices {
    fn default() -> Self {
        Self { sender: broadcast::Sender::new(BEHIND_MAX), history: Arc::default() }
    }
}

impl Notices {
    /// Watches from now on.
    #[must_use]
    pub fn watch(&self) -> broadcast::Receiver<Notice> {
        self.sender.subscribe()
    }

    /// The latest troubles, oldest first, and all notices after them.
    #[must_use]
    pub fn watch_with_history(&self) -> (Vec<Arc<str>>, broadcast::Receiver<Notice>) {
        let history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        (history.iter().cloned().collect(), self.sender.subscribe())
    }

    pub(crate) fn event(&self, event: Arc<Value>) {
        self.send(Notice::Event(event));
    }

    pub(crate) fn trouble(&self, error: &(dyn std::error::Error + 'static)) {
        let text: Arc<str> = with_causes(error).into();
        let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        if history.len() == HISTORY_MAX {
            history.pop_front();
        }
        history.push_back(text.clone());
        self.send(Notice::Trouble(text));
    }

    fn send(&self, notice: Notice) {
        // An error means that nobody watches.
        let _ = self.sender.send(notice);
    }
}

/// An error's text and that of its causes.
pub(crate) fn with_causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
