//! index-events: new events of the logs' streams go to the index.
//!
//! A record is a doorbell: it names a partition that has something new, and the table is the truth. The
//! key says of which log: `id` the DCB log, `aggregateId` the aggregate log, `p` the document log.
//! Each partition succeeds or fails for itself. What may succeed later is reported by the lowest
//! sequence number of its records, and Lambda delivers from there again; what waits for a person is
//! kept in the dead-letter queue with its partition and cause, and counts as done.

use std::{collections::BTreeMap, time::Duration};

use futures::future::BoxFuture;
use ringfence::BoundaryId;
use ringfence_document_log::StreamName;
use ringfence_dynamo::Retry;
use ringfence_feed::{Indexer, Outcome, Partition};
use ringfence_lambda::{
    chain,
    reactions::{Letters, sequence_number},
};
use serde_json::{Value, json};

/// Indexes partitions.
pub trait Indexing: Send + Sync {
    /// What became of each partition, within `time`.
    fn index(
        &self,
        partitions: Vec<Partition>,
        time: Duration,
    ) -> BoxFuture<'_, BTreeMap<Partition, Outcome>>;
}

impl Indexing for Indexer {
    fn index(
        &self,
        partitions: Vec<Partition>,
        time: Duration,
    ) -> BoxFuture<'_, BTreeMap<Partition, Outcome>> {
        Box::pin(Indexer::index(self, partitions, Retry::default().within(time)))
    }
}

/// What became of a batch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Partitions that have records in the batch.
    pub partitions: usize,
    /// Events that are new in the index.
    pub indexed: u64,
    /// Letters that are in the dead-letter queue.
    pub dead_letters: usize,
    /// Lambda delivers the batch again from this sequence number on.
    pub failed_from: Option<String>,
    /// Why, of the first failure.
    pub cause: Option<String>,
}

/// Indexes what the records of a batch tell of, within `time`.
pub async fn index(
    indexing: &impl Indexing,
    letters: &impl Letters,
    records: &[Value],
    time: Duration,
) -> Report {
    // By partition the first of its records, which has the lowest sequence number.
    let mut first = BTreeMap::new();
    // The numbers of records in the batch that are to be delivered again, and why.
    let mut later: BTreeMap<usize, String> = BTreeMap::new();
    let mut report = Report::default();
    for (n, record) in records.iter().enumerate() {
        match partition_of(&record["dynamodb"]) {
            Ok(None) => {}
            Ok(Some(partition)) => drop(first.entry(partition).or_insert(n)),
            Err(cause) => {
                let letter = json!({ "cause": cause, "record": record });
                keep(letters, letter, n, &mut later, &mut report).await;
            }
        }
    }
    report.partitions = first.len();
    for (partition, outcome) in indexing.index(first.keys().cloned().collect(), time).await {
        let n = first.get(&partition).copied().unwrap_or_default();
        match outcome {
            Ok(indexed) => report.indexed += indexed,
            Err(error) if error.is_transient() => drop(later.insert(n, chain(&error))),
            Err(error) => {
                let (log, id) = (partition.log, partition.id.as_str());
                let letter = json!({ "cause": chain(&error), "log": log, "partition": id });
                keep(letters, letter, n, &mut later, &mut report).await;
            }
        }
    }
    if let Some((n, cause)) = later.pop_first() {
        report.failed_from = Some(sequence_number(&records[n]));
        report.cause = Some(cause);
    }
    report
}

/// The partition that has something new; none for a record of anything but new events.
fn partition_of(change: &Value) -> Result<Option<Partition>, String> {
    let image = |name| change["NewImage"].get(name);
    let key = |name| change["Keys"][name]["S"].as_str();
    if let Some(id) = key("id") {
        return Ok(image("event").map(|_| Partition::from(BoundaryId::stored(id))));
    }
    if let Some(aggregate) = key("aggregateId") {
        return Ok(image("version").map(|_| Partition::of_aggregate(aggregate)));
    }
    let Some(stream) = key("p") else { return Err("the record has no key".to_owned()) };
    // How many events a write of the Tip has appended; calves say nothing of it.
    let appended = image("a").is_some_and(|appended| appended["N"] != "0");
    let stream = StreamName::try_from(stream.to_owned()).map_err(|error| chain(&error))?;
    Ok(appended.then(|| Partition::of_document(&stream)))
}

/// Keeps a letter about record `n`, which is to be delivered again if the queue does not take it.
async fn keep(
    letters: &impl Letters,
    letter: Value,
    n: usize,
    later: &mut BTreeMap<usize, String>,
    report: &mut Report,
) {
    tracing::error!(cause = %letter["cause"], partition = %letter["partition"], "dead letter");
    match letters.keep(letter).await {
        Ok(()) => report.dead_letters += 1,
        Err(error) => drop(later.insert(n, chain(&*error))),
    }
}

#[cfg(test)]
mod tests;
