//! Decides which records a function gets next, and what happens to failed ones. It is pure: no I/O, no clock.

use std::collections::VecDeque;

use serde_json::Value;

use crate::{invoke::PAYLOAD_BYTES_MAX, template::Mapping};

/// The bytes of a batch's records: the limit of a payload without `{"Records":[]}`.
const BATCH_BYTES_MAX: usize = PAYLOAD_BYTES_MAX - 100;

/// The batches that wait for one function, oldest first.
pub struct Batches {
    mapping: Mapping,
    waiting: VecDeque<Batch>,
}

struct Batch {
    records: Vec<Value>,
    /// Failed invocations that count against the retry quota.
    failures: u32,
}

/// The next action.
#[derive(Debug, PartialEq)]
pub enum Next {
    /// Nothing, because no record waits.
    Idle,
    /// Invoke the function with these records, then [`Batches::settle`].
    Invoke(Vec<Value>),
    /// Send these records to the destination. They are given up and no longer here.
    GiveUp(GivenUp),
}

/// Records that no invocation will get any more.
#[derive(Debug, PartialEq)]
pub struct GivenUp {
    /// The records.
    pub records: Vec<Value>,
    /// The reason.
    pub reason: GiveUpReason,
    /// How many invocations failed on them.
    pub invocations: u32,
}

/// Why records are given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GiveUpReason {
    /// `MaximumRetryAttempts` is used up.
    RetryAttemptsExhausted,
    /// They are older than `MaximumRecordAgeInSeconds`.
    RecordAgeExceeded,
}

/// The end of an invocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InvocationOutcome {
    /// Every record is done.
    Succeeded,
    /// The function failed: no record is done.
    Failed,
    /// The records of these sequence numbers are not done.
    Reported(Vec<String>),
}

impl InvocationOutcome {
    /// Parses a function's answer under `ReportBatchItemFailures`. An answer without entries is a success. An entry
    /// without an identifier fails the whole batch.
    #[must_use]
    pub fn of_answer(answer: &Value) -> Self {
        let failures = match answer.get("batchItemFailures") {
            None | Some(Value::Null) => return Self::Succeeded,
            Some(Value::Array(failures)) => failures,
            Some(_) => return Self::Failed,
        };
        let identifiers: Option<Vec<_>> = failures
            .iter()
            .map(|failure| failure["itemIdentifier"].as_str().filter(|id| !id.is_empty()))
            .map(|id| id.map(str::to_owned))
            .collect();
        match identifiers {
            None => Self::Failed,
            Some(identifiers) if identifiers.is_empty() => Self::Succeeded,
            Some(identifiers) => Self::Reported(identifiers),
        }
    }
}

impl Batches {
    /// Without batches.
    #[must_use]
    pub fn new(mapping: Mapping) -> Self {
        Self { mapping, waiting: VecDeque::new() }
    }

    /// Whether no record waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The oldest record that waits.
    #[must_use]
    pub fn first(&self) -> Option<&Value> {
        self.waiting.front().and_then(|batch| batch.records.first())
    }

    /// How often the next batch has failed.
    #[must_use]
    pub fn failures(&self) -> u32 {
        self.waiting.front().map_or(0, |batch| batch.failures)
    }

    /// Adds records that were read. A record that no filter matches is done.
    pub fn take(&mut self, records: Vec<Value>) {
        let filters = &self.mapping.filters;
        let wanted: Vec<_> = records
            .into_iter()
            .filter(|record| filters.is_empty() || filters.iter().any(|f| f.matches(record)))
            .collect();
        let (records_max, mut bytes) = (self.mapping.batch_size.max(1), 0);
        let mut batch = Vec::new();
        for record in wanted {
            let more = record.to_string().len() + 1;
            if batch.len() == records_max || bytes + more > BATCH_BYTES_MAX {
                let records = std::mem::take(&mut batch);
                self.waiting.push_back(Batch { records, failures: 0 });
                bytes = 0;
            }
            bytes += more;
            batch.push(record);
        }
        if !batch.is_empty() {
            self.waiting.push_back(Batch { records: batch, failures: 0 });
        }
    }

    /// The action at `now`, in seconds since 1970.
    pub fn next(&mut self, now: f64) -> Next {
        let Some(batch) = self.waiting.front_mut() else { return Next::Idle };
        let retries = self.mapping.retries;
        let too_old = |record: &Value| {
            let created = record.pointer("/dynamodb/ApproximateCreationDateTime");
            let age = created.and_then(Value::as_f64).map_or(0.0, |created| now - created);
            retries.age_max.is_some_and(|max| age > max.as_secs_f64())
        };
        let invocations = batch.failures;
        let old = batch.records.iter().take_while(|record| too_old(record)).count();
        let (count, reason) = if old > 0 {
            (old, GiveUpReason::RecordAgeExceeded)
        } else if retries.attempts_max.is_some_and(|max| invocations > max) {
            (batch.records.len(), GiveUpReason::RetryAttemptsExhausted)
        } else {
            return Next::Invoke(batch.records.clone());
        };
        let records = batch.records.drain(..count).collect();
        if batch.records.is_empty() {
            self.waiting.pop_front();
        }
        Next::GiveUp(GivenUp { records, reason, invocations })
    }

    /// Takes the outcome of the invocation that [`Batches::next`] returned.
    pub fn settle(&mut self, outcome: &InvocationOutcome) {
        let Some(batch) = self.waiting.pop_front() else { return };
        match outcome {
            InvocationOutcome::Succeeded => {}
            InvocationOutcome::Failed => self.retry(batch),
            InvocationOutcome::Reported(identifiers) => self.retry_from(batch, identifiers),
        }
    }

    /// Halves the batch if the mapping says so, which does not count as a retry.
    fn retry(&mut self, mut batch: Batch) {
        if self.mapping.bisect && batch.records.len() > 1 {
            let records = batch.records.split_off(batch.records.len() / 2);
            self.waiting.push_front(Batch { records, failures: batch.failures });
            self.waiting.push_front(batch);
        } else {
            batch.failures += 1;
            self.waiting.push_front(batch);
        }
    }

    /// The lowest reported record is the checkpoint: it and all later ones are retried. With bisect the batch is split
    /// there, which does not count as a retry. If no record before it is done, there is nothing to split, and the batch
    /// counts a failure. (AWS does not document this case. This choice keeps the most records together.)
    fn retry_from(&mut self, mut batch: Batch, identifiers: &[String]) {
        let position = |identifier: &String| {
            batch.records.iter().position(|record| {
                record.pointer("/dynamodb/SequenceNumber").and_then(Value::as_str)
                    == Some(identifier)
            })
        };
        let positions: Option<Vec<_>> = identifiers.iter().map(position).collect();
        match positions.and_then(|positions| positions.into_iter().min()) {
            // A number of another batch says nothing about this one.
            None => self.retry(batch),
            Some(lowest) => {
                batch.records.drain(..lowest);
                batch.failures += u32::from(lowest == 0 || !self.mapping.bisect);
                self.waiting.push_front(batch);
            }
        }
    }
}

#[cfg(test)]
#[path = "batches_tests.rs"]
mod tests;
