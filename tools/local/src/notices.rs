//! Notices of events in the stack, for its watchers: the demo, the tests, the page of troubles.

use std::{
    collections::VecDeque,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use futures::{StreamExt, stream, stream::BoxStream};
use ringfence_core::chain;
use serde_json::Value;
use tokio::sync::broadcast::{self, error::RecvError};

/// A slow watcher loses the oldest notices if it is behind by more than this many.
const BEHIND_MAX: usize = 10_000;

/// This many troubles are kept for later watchers.
const HISTORY_MAX: usize = 100;

/// For each watcher, the latest troubles, each with its age, the oldest first; and a signal for each later one.
pub type TroubleWatch =
    Box<dyn Fn() -> (Vec<(Duration, Arc<str>)>, BoxStream<'static, ()>) + Send + Sync>;

/// The latest troubles, each with its time.
type Troubles = VecDeque<(Instant, Arc<str>)>;

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Notice {
    /// An event on the bus, in EventBridge's envelope.
    Event(Arc<Value>),
    /// A function has sent a mail, which is in this file.
    Mail(Arc<PathBuf>),
    /// A function has sent a webhook, which is in this file.
    Webhook(Arc<PathBuf>),
    /// A failure that no caller sees.
    Trouble(Arc<str>),
}

/// Sends notices to every watcher.
#[derive(Clone)]
pub struct Notices {
    sender: broadcast::Sender<Notice>,
    history: Arc<Mutex<Troubles>>,
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

    /// The failures.
    pub(crate) fn troubles(&self) -> TroubleWatch {
        let notices = self.clone();
        Box::new(move || {
            let history = notices.history.lock().unwrap_or_else(PoisonError::into_inner);
            let later = stream::unfold(notices.watch(), |mut watch| async move {
                loop {
                    match watch.recv().await {
                        Ok(Notice::Trouble(_)) => return Some(((), watch)),
                        // A watcher that is too slow continues with the oldest notice that is left.
                        Ok(Notice::Event(_) | Notice::Mail(_) | Notice::Webhook(_))
                        | Err(RecvError::Lagged(_)) => {}
                        Err(RecvError::Closed) => return None,
                    }
                }
            });
            let aged = history.iter().map(|(at, text)| (at.elapsed(), text.clone()));
            (aged.collect(), later.boxed())
        })
    }

    pub(crate) fn event(&self, event: Arc<Value>) {
        self.send(Notice::Event(event));
    }

    pub(crate) fn mail(&self, path: PathBuf) {
        self.send(Notice::Mail(Arc::new(path)));
    }

    pub(crate) fn webhook(&self, path: PathBuf) {
        self.send(Notice::Webhook(Arc::new(path)));
    }

    pub(crate) fn trouble(&self, error: &(dyn std::error::Error + 'static)) {
        let (now, text) = (Instant::now(), Arc::<str>::from(chain(error)));
        let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        if history.len() == HISTORY_MAX {
            history.pop_front();
        }
        history.push_back((now, text.clone()));
        self.send(Notice::Trouble(text));
    }

    fn send(&self, notice: Notice) {
        // An error means that there is no watcher.
        let _ = self.sender.send(notice);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invoke::InvokeError;

    #[tokio::test]
    async fn a_watcher_gets_the_troubles_before_and_after_it_came_and_no_events() {
        let notices = Notices::default();
        let trouble = |function: &str| {
            notices.trouble(&InvokeError::Unknown { function: function.to_owned() });
        };
        trouble("before");
        let (before, mut later) = notices.troubles()();
        notices.event(Arc::new(Value::Null));
        trouble("after");
        let texts = |troubles: &[(Duration, Arc<str>)]| {
            troubles.iter().map(|(_, text)| text.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(texts(&before), ["there is no function before"]);
        assert_eq!(later.next().await, Some(()));
        let (all, _) = notices.troubles()();
        assert_eq!(texts(&all), ["there is no function before", "there is no function after"]);
    }
}
