//! Publishes a batch, whatever the bus and the queue answer.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};
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
/// The most calls at once. No two of them have events of one partition.
const CALLS_AT_ONCE: usize = 10;

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

/// How far a batch is.
struct Batch {
    /// How many events of each record are neither on the bus nor in the queue.
    left: Vec<usize>,
    published: usize,
    dead_letters: usize,
    /// Why the latest call left records undone.
    cause: Option<String>,
}

/// An event of a record that is neither on the bus nor in the queue.
struct Pending {
    /// The record's place in the batch.
    record: usize,
    /// The partition whose later events wait until this one is done; `None` if the record can't be read.
    partition: Option<String>,
    /// The entry, or why it can never be published.
    entry: Result<TopicEntry, String>,
}

impl Pending {
    fn sent_bytes(&self) -> usize {
        self.entry.as_ref().map_or(0, TopicEntry::sent_bytes)
    }
}

/// A call that has ended.
struct Ended {
    /// The partitions of its events.
    partitions: Vec<String>,
    /// What has to be tried again.
    left: Vec<Pending>,
    /// How often it was tried.
    tries: u32,
    /// Whether the time is over, so that nothing is tried again.
    is_late: bool,
}

impl<B: Bus, L: DeadLetters> Publisher<B, L> {
    /// Publishes the records of a batch within `time`: several calls at once, but the events of a partition one call
    /// after another, in their order. When the time is over, answered calls count and unanswered ones do not.
    pub async fn publish(&self, records: &[Value], time: Duration) -> PublishReport {
        let batch = Mutex::new(Batch::new(records.len()));
        let run = self.run(records, &batch, Retry::default().within(time));
        let is_late = tokio::time::timeout(time, run).await.is_err();
        let mut batch = batch.into_inner().unwrap_or_else(PoisonError::into_inner);
        if is_late {
            let before = batch.cause.take().map(|cause| format!(", after {cause}"));
            batch.cause = Some(format!("no time is left{}", before.unwrap_or_default()));
        }
        batch.report(records)
    }

    async fn run(&self, records: &[Value], batch: &Mutex<Batch>, retry: Retry) {
        let (mut waiting, mut poison) = (Vec::new(), Vec::new());
        for (record, json) in records.iter().enumerate() {
            let entries = TopicEntry::of_record(json, &self.sources, &self.catalog);
            lock(batch).left[record] = entries.len();
            for entry in entries {
                let entry = entry.map_err(|error| chain(&error));
                let partition = entry.as_ref().ok().map(|entry| entry.partition().to_owned());
                let of_kind = if entry.is_ok() { &mut waiting } else { &mut poison };
                of_kind.push(Pending { record, partition, entry });
            }
        }
        // At the end, so that no event waits for a queue that is down.
        waiting.append(&mut poison);
        let (mut busy, mut calls) = (HashSet::new(), FuturesUnordered::new());
        loop {
            while calls.len() < CALLS_AT_ONCE {
                let call = next_call(&mut waiting, &busy);
                if call.is_empty() {
                    break;
                }
                busy.extend(partitions(&call));
                calls.push(self.call(records, call, 0, retry, batch));
            }
            let Some(ended) = calls.next().await else { return };
            for partition in &ended.partitions {
                busy.remove(partition);
            }
            busy.extend(partitions(&ended.left));
            if !ended.left.is_empty() && !ended.is_late {
                calls.push(self.call(records, ended.left, ended.tries, retry, batch));
            }
        }
    }

    /// Sends the entries of one call, after a pause if it was tried before. Records that can never be published go to
    /// the queue.
    async fn call(
        &self,
        records: &[Value],
        call: Vec<Pending>,
        tries: u32,
        retry: Retry,
        batch: &Mutex<Batch>,
    ) -> Ended {
        let partitions = partitions(&call).collect();
        // As long as there is time: the mapping counts deliveries, to end a crash loop.
        if tries > 0 && !retry.pause(tries).await {
            return Ended { partitions, left: call, tries, is_late: true };
        }
        let entries: Vec<_> = call.iter().filter_map(|of| of.entry.as_ref().ok()).collect();
        let verdicts = if entries.is_empty() { Vec::new() } else { put(&self.bus, &entries).await };
        let (mut verdicts, mut unsent, mut left) = (verdicts.into_iter(), Vec::new(), Vec::new());
        // All answers of the bus count first, because the queue may not answer.
        for mut pending in call {
            match pending.entry.as_ref().ok().and_then(|_| verdicts.next()) {
                Some(Verdict::Sent) => {
                    let mut batch = lock(batch);
                    batch.left[pending.record] -= 1;
                    batch.published += 1;
                    continue;
                }
                Some(Verdict::Later(why)) => lock(batch).cause = Some(why),
                Some(Verdict::Never(why)) => pending.entry = Err(why),
                None => {}
            }
            unsent.push(pending);
        }
        for pending in unsent {
            let is_kept = match &pending.entry {
                Ok(_) => false,
                Err(why) => self.bury(&records[pending.record], pending.record, why, batch).await,
            };
            if !is_kept {
                left.push(pending);
            }
        }
        Ended { partitions, left, tries: tries + 1, is_late: false }
    }

    /// Keeps a record that can't be published. Returns whether it is kept.
    async fn bury(&self, json: &Value, record: usize, why: &str, batch: &Mutex<Batch>) -> bool {
        let kept = self.dead_letters.keep(dead_letter(json, why)).await;
        let mut batch = lock(batch);
        match &kept {
            Ok(()) => {
                batch.left[record] -= 1;
                batch.dead_letters += 1;
            }
            Err(error) => {
                batch.cause = Some(format!("the dead letter can't be kept: {}", chain(&**error)));
            }
        }
        kept.is_ok()
    }
}

fn lock(batch: &Mutex<Batch>) -> MutexGuard<'_, Batch> {
    batch.lock().unwrap_or_else(PoisonError::into_inner)
}

fn partitions(call: &[Pending]) -> impl Iterator<Item = String> {
    call.iter().filter_map(|pending| pending.partition.clone())
}

/// Takes the next entries that one call may have, in their order: none of a partition that another call has.
fn next_call(waiting: &mut Vec<Pending>, busy: &HashSet<String>) -> Vec<Pending> {
    let (mut count, mut bytes, mut is_full) = (0, 0, false);
    let is_taken = |next: &mut Pending| {
        if next.partition.as_ref().is_some_and(|partition| busy.contains(partition)) {
            return false;
        }
        let with_it = bytes + next.sent_bytes();
        is_full |= count == CALL_ENTRIES_MAX || (count > 0 && with_it > CALL_BYTES_MAX);
        if !is_full {
            (count, bytes) = (count + 1, with_it);
        }
        !is_full
    };
    waiting.extract_if(.., is_taken).collect()
}

impl Batch {
    fn new(records: usize) -> Self {
        Self { left: vec![1; records], published: 0, dead_letters: 0, cause: None }
    }

    /// Lambda delivers again from the lowest record that is not done, all later ones included.
    fn report(self, records: &[Value]) -> PublishReport {
        let left = self.left.iter().position(|left| *left > 0);
        PublishReport {
            published: self.published,
            dead_letters: self.dead_letters,
            failed_from: left.map(|record| sequence_number(&records[record])),
            cause: left.and(self.cause),
        }
    }
}

#[cfg(test)]
mod crashes;
#[cfg(test)]
mod tests;
