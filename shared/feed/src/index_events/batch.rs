//! Handles a batch of records.

use std::{collections::BTreeMap, time::Duration};

use futures::future::BoxFuture;
use ringfence_aws::{Item, Retry};
use ringfence_lambda::{DeadLetters, chain, dead_letter, new_image, sequence_number};
use ringfence_log::Sources;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::indexer::{Indexed, Indexer};
use crate::partition::{Notification, Partition};

/// Why a dead letter was never sent.
const OUT_OF_TIME: &str = "no time was left to keep the dead letter";

/// Indexes partitions.
pub trait Indexing: Send + Sync {
    /// Indexes partitions within `time`. Returns the result of each.
    fn index(
        &self,
        notifications: Vec<Notification>,
        time: Duration,
    ) -> BoxFuture<'_, BTreeMap<Partition, Indexed>>;
}

impl Indexing for Indexer {
    fn index(
        &self,
        notifications: Vec<Notification>,
        time: Duration,
    ) -> BoxFuture<'_, BTreeMap<Partition, Indexed>> {
        Box::pin(Indexer::index(self, notifications, Retry::default().within(time)))
    }
}

/// The result of a batch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IndexingReport {
    /// Partitions that have records in the batch.
    pub partitions: usize,
    /// Events that are new in the index.
    pub indexed: u64,
    /// Dead letters that are in the dead-letter queue.
    pub dead_letters: usize,
    /// Lambda delivers the batch again from this sequence number on.
    pub failed_from: Option<String>,
    /// Why, of the first failure.
    pub cause: Option<String>,
}

/// Indexes the partitions of these logs that the records of a batch name. A temporary failure is retried until `time`
/// is over, so that an outage takes few deliveries. The mapping counts deliveries, to end a crash loop.
pub async fn index(
    sources: &Sources,
    indexing: &impl Indexing,
    dead_letters: &impl DeadLetters,
    records: &[Value],
    time: Duration,
) -> IndexingReport {
    let retry = Retry::default().within(time);
    let mut batch = Batch::new(sources, records);
    for rounds in 1.. {
        batch.index(indexing, retry.left().unwrap_or(time)).await;
        batch.keep(dead_letters, retry).await;
        let Some((_, cause)) = &batch.undone() else { break };
        tracing::warn!(cause, rounds, "trying again");
        if !retry.pause(rounds).await {
            break;
        }
    }
    batch.report()
}

/// A batch, and the part of it that is not done.
struct Batch<'r> {
    records: &'r [Value],
    /// Partitions to index.
    due: BTreeMap<Partition, Due>,
    /// Dead letters to keep, each with the record that it is about and why it is not kept yet.
    dead_letters: Vec<(usize, Value, String)>,
    report: IndexingReport,
}

/// A partition to index.
struct Due {
    /// The first of its records, which has the lowest sequence number.
    record: usize,
    /// The events that the records show, by slot.
    events: BTreeMap<u64, Item>,
    /// Why it is not indexed.
    cause: String,
}

impl<'r> Batch<'r> {
    fn new(sources: &Sources, records: &'r [Value]) -> Self {
        let (due, dead_letters) = (BTreeMap::<_, Due>::new(), Vec::new());
        let mut batch = Self { records, due, dead_letters, report: IndexingReport::default() };
        for (record, json) in records.iter().enumerate() {
            match notification(sources, json) {
                Ok(None) => {}
                Ok(Some(Notification { partition, events })) => {
                    let due = Due { record, events: BTreeMap::new(), cause: String::new() };
                    batch.due.entry(partition).or_insert(due).events.extend(events);
                }
                Err(cause) => batch.bury(record, dead_letter(json, &cause)),
            }
        }
        batch.report.partitions = batch.due.len();
        batch
    }

    async fn index(&mut self, indexing: &impl Indexing, time: Duration) {
        let notification = |(partition, due): (&Partition, &Due)| Notification {
            partition: partition.clone(),
            events: due.events.clone(),
        };
        let outcomes = indexing.index(self.due.iter().map(notification).collect(), time).await;
        for (partition, outcome) in outcomes {
            let Some(mut due) = self.due.remove(&partition) else { continue };
            match outcome {
                Ok(indexed) => self.report.indexed += indexed,
                Err(error) if error.is_transient() => {
                    due.cause = chain(&error);
                    self.due.insert(partition, due);
                }
                Err(error) => {
                    let (log, id) = (partition.log, partition.id.as_str());
                    let dead_letter =
                        json!({ "cause": chain(&error), "log": log, "partition": id });
                    self.bury(due.record, dead_letter);
                }
            }
        }
    }

    fn bury(&mut self, record: usize, dead_letter: Value) {
        let (cause, partition) = (&dead_letter["cause"], &dead_letter["partition"]);
        tracing::error!(%cause, %partition, "dead letter");
        self.dead_letters.push((record, dead_letter, OUT_OF_TIME.to_owned()));
    }

    /// Keeps one dead letter after another. If the time is over before one is sent, it is left, with the reason.
    async fn keep(&mut self, dead_letters: &impl DeadLetters, retry: Retry) {
        for (record, dead_letter, reason) in std::mem::take(&mut self.dead_letters) {
            let time = retry.left().unwrap_or(Duration::MAX);
            if time.is_zero() {
                self.dead_letters.push((record, dead_letter, reason));
                continue;
            }
            match timeout(time, dead_letters.keep(dead_letter.clone())).await {
                Ok(Ok(())) => self.report.dead_letters += 1,
                Ok(Err(error)) => self.dead_letters.push((record, dead_letter, chain(&*error))),
                Err(late) => self.dead_letters.push((record, dead_letter, chain(&late))),
            }
        }
    }

    /// The first record that is not done, and why.
    fn undone(&self) -> Option<(usize, &str)> {
        let due = self.due.values().map(|due| (due.record, due.cause.as_str()));
        let dead_letters =
            self.dead_letters.iter().map(|(record, _, cause)| (*record, cause.as_str()));
        due.chain(dead_letters).min()
    }

    fn report(self) -> IndexingReport {
        let undone = self.undone();
        let failed_from = undone.map(|(record, _)| sequence_number(&self.records[record]));
        let cause = undone.map(|(_, cause)| cause.to_owned());
        IndexingReport { failed_from, cause, ..self.report }
    }
}

/// The partition of a record, with its new events; `None` if the record shows no new event.
fn notification(sources: &Sources, record: &Value) -> Result<Option<Notification>, String> {
    let image = new_image(record).map_err(|error| chain(&error))?;
    let Some(image) = image else { return Ok(None) };
    Notification::of_image(sources, image).map_err(|error| chain(&error))
}

#[cfg(test)]
mod tests;
