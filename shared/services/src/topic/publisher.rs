//! Publishes a batch, whatever the bus and the queue answer.

use std::time::Duration;

use futures::future::BoxFuture;
use ringfence_aws::Retry;
use ringfence_core::Catalog;
use ringfence_lambda::{DeadLetters, chain, dead_letter, sequence_number};
use ringfence_log::Sources;
use serde_json::Value;

use crate::topic::entry::TopicEntry;

/// Most entries a PutEvents call takes.
pub const CALL_ENTRIES_MAX: usize = 10;
/// Most bytes of a PutEvents call of several entries, as they are sent. EventBridge takes 1 MB of entries a call; the
/// other 48 KB are for the rest of the request.
/// <https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-putevents.html>
pub const CALL_BYTES_MAX: usize = 1_000_000;

/// The verdict of the bus on one entry.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It is on the bus.
    Sent,
    /// Not now; the error code.
    Later(String),
    /// Never; code and message.
    Never(String),
}

/// A call of the bus failed as a whole.
#[derive(Debug, thiserror::Error)]
#[error("{operation} failed")]
pub struct Unreachable {
    /// What was tried.
    pub operation: &'static str,
    /// Whether the same call can never succeed.
    pub refused: bool,
    /// Why it failed.
    #[source]
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

/// The EventTopic.
pub trait Bus: Send + Sync {
    /// Sends at most [`CALL_ENTRIES_MAX`] entries. Returns one verdict for each entry, in their order.
    fn put<'a>(
        &'a self,
        entries: &'a [&'a TopicEntry],
    ) -> BoxFuture<'a, Result<Vec<Verdict>, Unreachable>>;
}

/// One verdict for each entry, in their order. A call that the bus refuses as a whole is cut in halves, until each
/// refused entry is alone.
pub async fn put(bus: &impl Bus, entries: &[&TopicEntry]) -> Vec<Verdict> {
    let (mut verdicts, mut calls) = (Vec::with_capacity(entries.len()), vec![entries]);
    while let Some(call) = calls.pop() {
        match bus.put(call).await {
            Ok(found) => verdicts.extend(found),
            Err(error) if error.refused && call.len() > 1 => {
                let (first, second) = call.split_at(call.len() / 2);
                calls.extend([second, first]);
            }
            Err(error) => {
                let verdict = if error.refused { Verdict::Never } else { Verdict::Later };
                verdicts.extend(vec![verdict(chain(&error)); call.len()]);
            }
        }
    }
    verdicts
}

/// The result of a batch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PublishReport {
    /// Events that are on the bus.
    pub published: usize,
    /// Records that are in the dead-letter queue.
    pub dead_letters: usize,
    /// Lambda delivers the batch again from this sequence number on.
    pub failed_from: Option<String>,
    /// Why.
    pub cause: Option<String>,
}

/// Publishes batches of stream records.
pub struct Publisher<B, L> {
    /// Where events go.
    pub bus: B,
    /// Takes each record that can never be published, as `{cause, record}`.
    pub dead_letters: L,
    /// The logs.
    pub sources: Sources,
    /// Tells the contexts of events that do not name theirs.
    pub catalog: Catalog,
}

/// A batch and how far it is.
struct Batch<'r> {
    records: &'r [Value],
    /// How many events of each record are neither on the bus nor in the queue, in the order of
    /// `records`.
    left: Vec<usize>,
    published: usize,
    dead_letters: usize,
    /// Why the latest call left records undone.
    cause: Option<String>,
}

/// A record on its way.
struct Pending {
    /// Its place in the batch.
    record: usize,
    entry: TopicEntry,
}

/// Records are left, and Lambda has to deliver them again.
struct Stopped;

impl<B: Bus, L: DeadLetters> Publisher<B, L> {
    /// Publishes the records of a batch in their order within `time`. It makes one call at a time, so that
    /// events of one partition are never in two calls at once. When the time is over, answered calls count
    /// and an unanswered one does not.
    pub async fn publish(&self, records: &[Value], time: Duration) -> PublishReport {
        let mut batch = Batch::new(records);
        let run = self.run(&mut batch, Retry::default().within(time));
        if tokio::time::timeout(time, run).await.is_err() {
            let before = batch.cause.take().map(|cause| format!(", after {cause}"));
            batch.cause = Some(format!("no time is left{}", before.unwrap_or_default()));
        }
        batch.report()
    }

    async fn run(&self, batch: &mut Batch<'_>, retry: Retry) -> Result<(), Stopped> {
        let mut call = Vec::new();
        let mut bytes = 0;
        for (record, json) in batch.records.iter().enumerate() {
            let entries = TopicEntry::of_record(json, &self.sources, &self.catalog);
            batch.left[record] = entries.len();
            for entry in entries {
                let entry = match entry {
                    Ok(entry) => entry,
                    Err(error) => {
                        // The entries before it go first, so they don't wait for a queue that is down.
                        self.send(std::mem::take(&mut call), retry, batch).await?;
                        bytes = 0;
                        let mut tries = 1;
                        while self.bury(record, chain(&error), batch).await.is_err() {
                            if !retry.pause(tries).await {
                                return Err(Stopped);
                            }
                            tries += 1;
                        }
                        continue;
                    }
                };
                if call.len() == CALL_ENTRIES_MAX || bytes + entry.sent_bytes() > CALL_BYTES_MAX {
                    self.send(std::mem::take(&mut call), retry, batch).await?;
                    bytes = 0;
                }
                bytes += entry.sent_bytes();
                call.push(Pending { record, entry });
            }
        }
        self.send(call, retry, batch).await
    }

    /// Sends the entries of one call, and sends entries again that the bus puts off.
    async fn send(
        &self,
        mut call: Vec<Pending>,
        retry: Retry,
        batch: &mut Batch<'_>,
    ) -> Result<(), Stopped> {
        for sends in 1.. {
            if call.is_empty() {
                break;
            }
            let entries: Vec<&TopicEntry> = call.iter().map(|pending| &pending.entry).collect();
            let verdicts = put(&self.bus, &entries).await;
            let mut left = Vec::new();
            for (pending, verdict) in call.into_iter().zip(verdicts) {
                match verdict {
                    Verdict::Sent => {
                        batch.left[pending.record] -= 1;
                        batch.published += 1;
                    }
                    Verdict::Later(why) => {
                        batch.cause = Some(why);
                        left.push(pending);
                    }
                    // If the queue refuses it, it is sent to the queue again with the entry's next send.
                    Verdict::Never(why) => {
                        if self.bury(pending.record, why, batch).await.is_err() {
                            left.push(pending);
                        }
                    }
                }
            }
            call = left;
            // As long as there is time: the mapping counts deliveries, to end a crash loop.
            if !call.is_empty() && !retry.pause(sends).await {
                return Err(Stopped);
            }
        }
        Ok(())
    }

    /// Keeps a record that can't be published.
    async fn bury(
        &self,
        record: usize,
        cause: String,
        batch: &mut Batch<'_>,
    ) -> Result<(), Stopped> {
        match self.dead_letters.keep(dead_letter(&batch.records[record], &cause)).await {
            Ok(()) => {
                batch.left[record] -= 1;
                batch.dead_letters += 1;
                Ok(())
            }
            Err(error) => {
                batch.cause = Some(format!("the dead letter can't be kept: {}", chain(&*error)));
                Err(Stopped)
            }
        }
    }
}

impl<'r> Batch<'r> {
    fn new(records: &'r [Value]) -> Self {
        let left = vec![1; records.len()];
        Self { records, left, published: 0, dead_letters: 0, cause: None }
    }

    /// Lambda delivers again from the lowest record that is not done, all later ones included.
    fn report(self) -> PublishReport {
        let left = self.left.iter().position(|left| *left > 0);
        PublishReport {
            published: self.published,
            dead_letters: self.dead_letters,
            failed_from: left.map(|record| sequence_number(&self.records[record])),
            cause: left.and(self.cause),
        }
    }
}

#[cfg(test)]
mod crashes;
#[cfg(test)]
mod tests;
