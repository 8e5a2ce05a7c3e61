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

/// The bus, or the queue, can't be reached now.
#[derive(Debug, thiserror::Error)]
#[error("{operation} failed")]
pub struct Unreachable {
    /// What was tried.
    pub operation: &'static str,
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
            let verdicts = self.bus.put(&entries).await;
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
mod tests {
    use std::{collections::BTreeSet, sync::Mutex};

    use futures::FutureExt;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// A bus and a queue that follow a script, and then take everything.
    #[derive(Default)]
    struct Scripted {
        script: Mutex<Vec<Answer>>,
        sent: Mutex<Vec<String>>,
        kept: Mutex<Vec<String>>,
        calls: Mutex<Vec<usize>>,
    }

    #[derive(Clone, Copy, Debug)]
    enum Answer {
        Sent,
        Later,
        Never,
        Unreachable,
    }

    fn unreachable_now() -> Unreachable {
        Unreachable { operation: "scripted", source: "off".into() }
    }

    impl Scripted {
        fn next(&self) -> Answer {
            self.script.lock().unwrap().pop().unwrap_or(Answer::Sent)
        }
    }

    impl Bus for &Scripted {
        fn put<'a>(
            &'a self,
            entries: &'a [&'a Entry],
        ) -> BoxFuture<'a, Result<Vec<Verdict>, Unreachable>> {
            self.calls.lock().unwrap().push(entries.len());
            let verdicts = entries.iter().map(|entry| match self.next() {
                Answer::Sent => {
                    self.sent.lock().unwrap().push(entry.position.to_string());
                    Ok(Verdict::Sent)
                }
                Answer::Later => Ok(Verdict::Later("ThrottlingException".to_owned())),
                Answer::Never => Ok(Verdict::Never("InvalidArgument".to_owned())),
                Answer::Unreachable => Err(unreachable_now()),
            });
            let verdicts = verdicts.collect();
            async { verdicts }.boxed()
        }
    }

    impl DeadLetters for &Scripted {
        fn keep<'a>(&'a self, letter: &'a DeadLetter) -> BoxFuture<'a, Result<(), Unreachable>> {
            let kept = match self.next() {
                Answer::Unreachable => Err(unreachable_now()),
                _ => {
                    self.kept.lock().unwrap().push(sequence_number(&letter.record));
                    Ok(())
                }
            };
            async { kept }.boxed()
        }
    }

    fn position(n: usize) -> String {
        format!("{n:013}-00000000-0000-4000-8000-000000000000")
    }

    fn record(n: usize, bytes: usize) -> Value {
        json!({
            "eventName": "INSERT",
            "dynamodb": {
                "SequenceNumber": n.to_string(),
                "NewImage": {
                    "id": { "S": "orderId:o1" },
                    "position": { "S": position(n) },
                    "event": { "S": "OrderPlaced" },
                    "context": { "S": "ordering" },
                    "data": { "M": { "text": { "S": "x".repeat(bytes) } } },
                    "tags": { "L": [] },
                    "recordedAt": { "S": "2024-06-23T00:00:00.000Z" },
                    "correlationId": { "S": "c1" },
                },
            },
        })
    }

    fn poison(n: usize) -> Value {
        let mut record = record(n, 0);
        record["dynamodb"]["NewImage"]["position"]["S"] = "nowhere".into();
        record
    }

    fn publish(world: &Scripted, records: &[Value]) -> Report {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let publisher = Publisher { bus: world, dead_letters: world };
        runtime.block_on(publisher.publish(records, Duration::from_secs(600)))
    }

    #[test]
    fn the_entry_carries_what_a_consumer_needs() {
        let entry = Entry::of_record(&record(7, 2)).unwrap().unwrap();
        assert_eq!((&*entry.source, &*entry.detail_type), ("ordering", "OrderPlaced"));
        let detail: Value = serde_json::from_str(&entry.detail).unwrap();
        assert_eq!(
            detail,
            json!({
                "id": position(7),
                "type": "OrderPlaced",
                "partition": "orderId:o1",
                "position": position(7),
                "tags": [],
                "data": { "text": "xx" },
                "meta": { "correlationId": "c1" },
            })
        );
    }

    #[test]
    fn calls_are_bounded_by_count_and_bytes() {
        let check = |records: &[Value], calls: &[usize]| {
            let world = Scripted::default();
            assert_eq!(publish(&world, records).published, records.len());
            assert_eq!(*world.calls.lock().unwrap(), calls);
        };
        check(&(0..21).map(|n| record(n, 1)).collect::<Vec<_>>(), &[10, 10, 1]);
        check(&(0..5).map(|n| record(n, 400_000)).collect::<Vec<_>>(), &[2, 2, 1]);
    }

    #[test]
    fn one_poison_record_holds_up_nobody() {
        let world = Scripted::default();
        let mut records: Vec<Value> = (0..1_000).map(|n| record(n, 1)).collect();
        records[500] = poison(500);
        let report = publish(&world, &records);
        assert_eq!((report.published, report.dead_letters, report.failed_from), (999, 1, None));
        assert_eq!(*world.kept.lock().unwrap(), ["500"]);
    }

    #[test]
    fn an_entry_that_stays_refused_is_reported_by_its_number() {
        let world = Scripted::default();
        // Of three entries the second is put off at each of the sends.
        *world.script.lock().unwrap() =
            [vec![Answer::Later; 3], vec![Answer::Sent, Answer::Later, Answer::Sent]].concat();
        let report = publish(&world, &[record(1, 1), record(2, 1), record(3, 1)]);
        assert_eq!((report.published, report.failed_from.as_deref()), (2, Some("2")));
        assert_eq!(report.cause.as_deref(), Some("ThrottlingException"));
    }

    fn answers() -> impl Strategy<Value = Vec<Answer>> {
        let answer = prop_oneof![
            4 => Just(Answer::Sent),
            3 => Just(Answer::Later),
            1 => Just(Answer::Never),
            1 => Just(Answer::Unreachable),
        ];
        proptest::collection::vec(answer, 0..80)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        /// Lambda's side of the bargain: deliver again from the reported number until nothing is
        /// left. Then every record is on the bus or in the queue, whatever failed on the way.
        #[test]
        fn nothing_is_lost(script in answers(), poisoned in proptest::collection::btree_set(0..25usize, 0..4)) {
            let world = Scripted { script: Mutex::new(script), ..Scripted::default() };
            let records: Vec<Value> = (0..25)
                .map(|n| if poisoned.contains(&n) { poison(n) } else { record(n, 1) })
                .collect();
            let mut from = 0;
            while let Some(number) = publish(&world, &records[from..]).failed_from {
                let failed: usize = number.parse().unwrap();
                prop_assert!(failed >= from, "a number before the batch");
                from = failed;
            }
            let sent: BTreeSet<String> = world.sent.lock().unwrap().iter().cloned().collect();
            let kept: BTreeSet<String> = world.kept.lock().unwrap().iter().cloned().collect();
            for n in 0..25 {
                let buried = kept.contains(&n.to_string());
                prop_assert!(buried || sent.contains(&position(n)), "record {n} is lost");
                prop_assert!(buried || !poisoned.contains(&n), "poison {n} is not kept");
            }
        }
    }
}
