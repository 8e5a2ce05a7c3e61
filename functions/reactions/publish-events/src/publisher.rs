//! What happens to a batch, whatever the bus and the queue answer.

use std::time::Duration;

use futures::future::BoxFuture;
use ringfence_dynamo::Retry;
use serde_json::Value;

use crate::entry::Entry;

/// Most entries a PutEvents call takes.
pub const CALL_ENTRIES_MAX: usize = 10;
/// Most bytes a PutEvents call takes, all entries together.
pub const CALL_BYTES_MAX: usize = 1_000_000;
/// How often an entry is sent before the batch ends and Lambda delivers it again.
const SENDS_MAX: u32 = 4;

/// What the bus says of one entry.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It is on the bus.
    Sent,
    /// Not now; the error code.
    Later(String),
    /// Never; code and message.
    Never(String),
}

/// A call of the bus or the queue failed as a whole.
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
    /// Sends at most [`CALL_ENTRIES_MAX`] entries; one verdict an entry, in their order.
    fn put<'a>(
        &'a self,
        entries: &'a [&'a Entry],
    ) -> BoxFuture<'a, Result<Vec<Verdict>, Unreachable>>;
}

/// Keeps what can never be published.
pub trait DeadLetters: Send + Sync {
    /// Keeps one record with its cause.
    fn keep<'a>(&'a self, letter: &'a DeadLetter) -> BoxFuture<'a, Result<(), Unreachable>>;
}

/// A record that can never be published, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct DeadLetter {
    /// The stream record as it came.
    pub record: Value,
    /// Why it can't be published.
    pub cause: String,
}

/// What became of a batch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
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
pub struct Publisher<B, D> {
    /// Where events go.
    pub bus: B,
    /// Where poison goes.
    pub dead_letters: D,
}

/// A record on its way: one of a batch.
struct Pending<'r> {
    record: &'r Value,
    entry: Entry,
}

impl<B: Bus, D: DeadLetters> Publisher<B, D> {
    /// Publishes the records of a batch in their order, one call at a time, within `time`.
    pub async fn publish(&self, records: &[Value], time: Duration) -> Report {
        let mut report = Report::default();
        let retry = Retry::default().within(time);
        let mut call = Vec::new();
        let mut bytes = 0;
        for record in records {
            let entry = match Entry::of_record(record) {
                Ok(None) => continue,
                Ok(Some(entry)) => entry,
                Err(error) => {
                    // What lies before it is sent first: a failure is reported by the lowest
                    // sequence number, and everything after that is delivered again.
                    if !self.send(std::mem::take(&mut call), retry, &mut report).await
                        || !self.bury(record, ringfence_lambda::chain(&error), &mut report).await
                    {
                        return report;
                    }
                    bytes = 0;
                    continue;
                }
            };
            if call.len() == CALL_ENTRIES_MAX || bytes + entry.bytes() > CALL_BYTES_MAX {
                if !self.send(std::mem::take(&mut call), retry, &mut report).await {
                    return report;
                }
                bytes = 0;
            }
            bytes += entry.bytes();
            call.push(Pending { record, entry });
        }
        self.send(call, retry, &mut report).await;
        report
    }

    /// Sends one call's entries, and those that the bus puts off again and again. False when some
    /// are left: the report then names the first.
    async fn send(&self, mut call: Vec<Pending<'_>>, retry: Retry, report: &mut Report) -> bool {
        for sends in 1.. {
            if call.is_empty() {
                return true;
            }
            let entries: Vec<&Entry> = call.iter().map(|pending| &pending.entry).collect();
            let verdicts = self.put(&entries).await;
            let mut left = Vec::new();
            let mut cause = String::new();
            match verdicts {
                Err(error) => {
                    cause = ringfence_lambda::chain(&error);
                    left = call;
                }
                Ok(verdicts) => {
                    for (pending, verdict) in call.into_iter().zip(verdicts) {
                        match verdict {
                            Verdict::Sent => report.published += 1,
                            Verdict::Later(code) => {
                                cause = code;
                                left.push(pending);
                            }
                            Verdict::Never(why) => {
                                if !self.bury(pending.record, why, report).await {
                                    cause = report.cause.take().unwrap_or_default();
                                    report.failed_from = None;
                                    left.push(pending);
                                }
                            }
                        }
                    }
                }
            }
            call = left;
            if !call.is_empty() && (sends == SENDS_MAX || !retry.pause(sends).await) {
                report.failed_from = call.first().map(|pending| sequence_number(pending.record));
                report.cause = Some(cause);
                return false;
            }
        }
        true
    }

    /// One call; where the bus refuses the call as a whole, one call for each entry, to find those that
    /// it refuses.
    async fn put(&self, entries: &[&Entry]) -> Result<Vec<Verdict>, Unreachable> {
        let refused = match self.bus.put(entries).await {
            Err(error) if error.refused => error,
            answer => return answer,
        };
        if entries.len() == 1 {
            return Ok(vec![Verdict::Never(ringfence_lambda::chain(&refused))]);
        }
        let mut verdicts = Vec::with_capacity(entries.len());
        for entry in entries {
            match self.bus.put(&[entry]).await {
                Ok(verdict) => verdicts.extend(verdict),
                Err(error) if error.refused => {
                    verdicts.push(Verdict::Never(ringfence_lambda::chain(&error)));
                }
                Err(error) => verdicts.push(Verdict::Later(ringfence_lambda::chain(&error))),
            }
        }
        Ok(verdicts)
    }

    /// Keeps a record that can't be published. False when the queue does not take it.
    async fn bury(&self, record: &Value, cause: String, report: &mut Report) -> bool {
        let letter = DeadLetter { record: record.clone(), cause };
        match self.dead_letters.keep(&letter).await {
            Ok(()) => {
                report.dead_letters += 1;
                true
            }
            Err(error) => {
                report.failed_from = Some(sequence_number(record));
                report.cause = Some(ringfence_lambda::chain(&error));
                false
            }
        }
    }
}

/// An empty identifier makes Lambda deliver the whole batch again, which is right for a record
/// without a number.
fn sequence_number(record: &Value) -> String {
    record["dynamodb"]["SequenceNumber"].as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;
