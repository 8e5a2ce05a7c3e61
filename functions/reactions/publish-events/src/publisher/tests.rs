//! Batches against a bus and a queue that fail.

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
    /// The whole call is refused.
    Refused,
}

fn unreachable_now() -> Unreachable {
    Unreachable { operation: "scripted", refused: false, source: "off".into() }
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
            Answer::Refused => Err(Unreachable { refused: true, ..unreachable_now() }),
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
        1 => Just(Answer::Refused),
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

#[test]
fn a_call_refused_as_a_whole_is_tried_entry_by_entry() {
    let world = Scripted::default();
    // The call of three, then the second of its entries alone.
    let script = [Answer::Refused, Answer::Sent, Answer::Refused, Answer::Sent];
    *world.script.lock().unwrap() = script.into_iter().rev().collect();
    let report = publish(&world, &[record(1, 1), record(2, 1), record(3, 1)]);
    assert_eq!((report.published, report.dead_letters, report.failed_from), (2, 1, None));
    assert_eq!(*world.kept.lock().unwrap(), ["2"]);
}
