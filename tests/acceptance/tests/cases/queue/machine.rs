//! The queues of one machine, and a busy store.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use ringfence_aws::Clock;
use ringfence_aws::wire::{Director, Fault};
use ringfence_lambda::slice::QueuedCommand;
use ringfence_local::queues::{MessageOrder, Queues};
use ringfence_services::queue::CommandQueue;
use serde_json::{Value, json};

/// The names of the queues.
pub(super) const COMMANDS: &str = "ringfence-local-CommandQueue";
pub(super) const DEAD_LETTERS: &str = "ringfence-local-CommandsDeadLetters";

/// The id of a command whose answer from the queue is lost.
pub(super) const LOST: &str = "lost";

type Sent<'a> = BoxFuture<'a, Result<(), Box<dyn std::error::Error + Send + Sync>>>;

/// The queues of one machine.
pub(super) struct Local(pub(super) Queues);

impl Local {
    pub(super) fn put(&self, queue: &str, body: Value, group: &str, id: &str) {
        let order = MessageOrder { group: Some(group.into()), deduplication: Some(id.into()) };
        self.0.put(queue, body.to_string(), BTreeMap::new(), order).unwrap();
    }
}

impl CommandQueue for Local {
    fn send(&self, queued: &QueuedCommand) -> Sent<'_> {
        self.put(COMMANDS, json!(queued), &queued.group, &queued.command_id);
        let is_lost = queued.command_id == LOST;
        async move { if is_lost { Err("no answer".into()) } else { Ok(()) } }.boxed()
    }

    fn keep(&self, dead_letter: &Value, message_id: &str, group: &str) -> Sent<'_> {
        self.put(DEAD_LETTERS, dead_letter.clone(), group, message_id);
        async { Ok(()) }.boxed()
    }

    fn show_after(&self, receipt: &str, seconds: u16) -> Sent<'_> {
        let time = Duration::from_secs(seconds.into());
        assert!(self.0.hide(COMMANDS, receipt, time).unwrap());
        async { Ok(()) }.boxed()
    }
}

/// A busy store: it refuses the requests that contain one of some texts, or never answers them, or delays one.
pub(super) struct Busy {
    clock: Clock,
    refuses: Mutex<Vec<&'static str>>,
    hangs: Mutex<Vec<&'static str>>,
    takes: Mutex<Option<(&'static str, u64)>>,
}

impl Busy {
    pub(super) fn of(clock: Clock) -> Self {
        let (refuses, hangs, takes) = Default::default();
        Self { clock, refuses, hangs, takes }
    }

    pub(super) fn refuse(&self, text: &'static str) {
        self.refuses.lock().unwrap().push(text);
    }

    pub(super) fn hang(&self, text: &'static str) {
        self.hangs.lock().unwrap().push(text);
    }

    /// The next request with this text takes this many milliseconds.
    pub(super) fn take(&self, text: &'static str, ms: u64) {
        *self.takes.lock().unwrap() = Some((text, ms));
    }

    pub(super) fn clear(&self) {
        self.refuses.lock().unwrap().clear();
        self.hangs.lock().unwrap().clear();
    }
}

impl Director for Busy {
    fn faults(&self, operation: &str, request: &Value) -> Vec<Fault> {
        let request = format!("{operation} {request}");
        let has_one = |of: &Mutex<Vec<_>>| of.lock().unwrap().iter().any(|it| request.contains(it));
        if let Some((_, ms)) = self.takes.lock().unwrap().take_if(|(it, _)| request.contains(*it)) {
            self.clock.set(self.clock.now_ms() + ms);
        }
        match (has_one(&self.refuses), has_one(&self.hangs)) {
            (true, _) => vec![Fault::error("ThrottlingException")],
            (_, true) => vec![Fault::Delay(Duration::from_secs(24 * 3_600))],
            _ => Vec::new(),
        }
    }

    fn carried_out(&self, _: &str, _: &Value, _: u16) {}
}
