//! The queues of one machine, and a store that is busy.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use ringfence_dynamo::wire::{Director, Fault};
use ringfence_lambda::QueuedCommand;
use ringfence_local::queues::{MessageOrder, Queues};
use ringfence_queue::CommandQueue;
use serde_json::{Value, json};

/// The names of the queues.
pub(super) const COMMANDS: &str = "ringfence-local-CommandQueue";
pub(super) const LETTERS: &str = "ringfence-local-CommandsDeadLetters";

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
        async { Ok(()) }.boxed()
    }

    fn keep(&self, letter: &Value, message_id: &str, group: &str) -> Sent<'_> {
        self.put(LETTERS, letter.clone(), group, message_id);
        async { Ok(()) }.boxed()
    }

    fn show_after(&self, receipt: &str, seconds: u16) -> Sent<'_> {
        let time = Duration::from_secs(seconds.into());
        assert!(self.0.hide(COMMANDS, receipt, time).unwrap());
        async { Ok(()) }.boxed()
    }
}

/// Refuses the requests that have one of these texts, as a store that is busy does.
#[derive(Default)]
pub(super) struct Busy(pub(super) Mutex<Vec<&'static str>>);

impl Director for Busy {
    fn faults(&self, operation: &str, request: &Value) -> Vec<Fault> {
        let request = format!("{operation} {request}");
        let is_it = self.0.lock().unwrap().iter().any(|text| request.contains(text));
        if is_it { vec![Fault::error("ThrottlingException")] } else { Vec::new() }
    }

    fn carried_out(&self, _: &str, _: &Value, _: u16) {}
}
