//! Batches against a bus and a queue that fail.

use std::{error::Error, sync::Mutex};

use futures::FutureExt;
use ringfence_core::{Event, NewEvent};
use serde_json::json;

use super::*;
use crate::topic::entry::ENTRY_BYTES_MAX;

/// A bus and a queue that follow a script, and then take everything.
#[derive(Default)]
struct Scripted {
    script: Mutex<Vec<Answer>>,
    sent: Mutex<Vec<String>>,
    kept: Mutex<Vec<Value>>,
    calls: Mutex<Vec<usize>>,
    /// How many dead letters the queue refuses before it takes them.
    dead_letters_refused: Mutex<usize>,
}

#[derive(Clone, Copy, Debug)]
enum Answer {
    Sent,
    Later,
    /// The whole call is refused.
    Refused,
}

pub(super) fn unreachable_now() -> Unreachable {
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
        entries: &'a [&'a TopicEntry],
    ) -> BoxFuture<'a, Result<Vec<Verdict>, Unreachable>> {
        self.calls.lock().unwrap().push(entries.len());
        let verdicts = entries.iter().map(|entry| match self.next() {
            Answer::Sent => {
                self.sent.lock().unwrap().push(entry.id.clone());
                Ok(Verdict::Sent)
            }
            Answer::Later => Ok(Verdict::Later("ThrottlingException".to_owned())),
            Answer::Refused => Err(Unreachable { refused: true, ..unreachable_now() }),
        });
        let verdicts = verdicts.collect();
        async { verdicts }.boxed()
    }
}

impl DeadLetters for &Scripted {
    fn keep(&self, dead_letter: Value) -> BoxFuture<'_, Result<(), Box<dyn Error + Send + Sync>>> {
        let mut refuses = self.dead_letters_refused.lock().unwrap();
        if *refuses > 0 {
            *refuses -= 1;
            return async { Err("no queue".into()) }.boxed();
        }
        self.kept.lock().unwrap().push(dead_letter);
        async { Ok(()) }.boxed()
    }
}

fn event_id(n: usize) -> String {
    format!("orderId:o1/{n}")
}

pub(super) fn record(n: usize, bytes: usize) -> Value {
    let event = NewEvent::from(OrderPlaced { text: "x".repeat(bytes) });
    json!({
        "eventID": n.to_string(),
        "eventName": "INSERT",
        "awsRegion": "eu-central-1",
        "dynamodb": {
            "SequenceNumber": n.to_string(),
            "SizeBytes": bytes,
            "Keys": { "id": { "S": "orderId:o1" }, "position": { "N": n.to_string() } },
            "NewImage": {
                "id": { "S": "orderId:o1" },
                "position": { "N": n.to_string() },
                "at": { "N": "1719100800000" },
                "event": { "S": event.event_type },
                "context": { "S": "ordering" },
                "data": { "M": { "text": { "S": event.data["text"] } } },
                "tags": { "L": [] },
                "correlationId": { "S": "c1" },
            },
        },
    })
}

pub(super) fn poison(n: usize) -> Value {
    let mut record = record(n, 0);
    record["dynamodb"]["NewImage"]["position"]["N"] = "nowhere".into();
    record
}

/// The event of the records.
#[derive(Clone, Debug, PartialEq, Event)]
struct OrderPlaced {
    text: String,
}

pub(super) fn sources() -> Sources {
    [ringfence_dcb_log::SOURCE, ringfence_document_log::SOURCE].into()
}

pub(super) fn catalog() -> Catalog {
    Catalog::new("ordering", [OrderPlaced::SCHEMA]).unwrap()
}

fn only(record: &Value) -> TopicEntry {
    let [entry] =
        <[_; 1]>::try_from(TopicEntry::of_record(record, &sources(), &catalog())).unwrap();
    entry.unwrap()
}

fn publish(world: &Scripted, records: &[Value]) -> PublishReport {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let publisher =
        Publisher { bus: world, dead_letters: world, sources: sources(), catalog: catalog() };
    runtime.block_on(publisher.publish(records, Duration::from_secs(600)))
}

#[test]
fn the_entry_carries_what_a_consumer_needs() {
    let entry = only(&record(7, 2));
    assert_eq!((&*entry.source, &*entry.detail_type), ("ordering", "OrderPlaced"));
    let detail: Value = serde_json::from_str(&entry.detail).unwrap();
    // A reader of JSON would round this number, so it comes as an object.
    let mut record = record(7, 2);
    record["dynamodb"]["NewImage"]["data"] =
        json!({ "M": { "total": { "N": "1584097275961.1234" } } });
    let long: Value = serde_json::from_str(&only(&record).detail).unwrap();
    assert_eq!(long["data"], json!({ "total": { "$number": "1584097275961.1234" } }));
    assert_eq!(
        detail,
        json!({
            "id": event_id(7),
            "type": "OrderPlaced",
            "partition": "orderId:o1",
            "slot": 7,
            "recordedAt": "2024-06-23T00:00:00.000Z",
            "tags": [],
            "data": { "text": "xx" },
            "meta": { "correlationId": "c1" },
        })
    );
}

#[test]
fn an_event_that_names_no_context_has_that_of_its_type() {
    let mut record = record(7, 2);
    let image = record["dynamodb"]["NewImage"].as_object_mut().unwrap();
    image.remove("context");
    assert_eq!(only(&record).source, "ordering");
    record["dynamodb"]["NewImage"]["event"]["S"] = "Forgotten".into();
    let error = TopicEntry::of_record(&record, &sources(), &catalog()).remove(0).unwrap_err();
    assert!(error.to_string().contains("does not declare its type Forgotten"), "{error}");
}

#[test]
fn an_entry_of_a_replay_says_so_in_source_and_detail() {
    let image = ringfence_lambda::new_image(&record(7, 2)).unwrap().unwrap();
    let event = ringfence_dcb_log::event_of_image(image).unwrap().unwrap();
    let entry = TopicEntry::of_replay(event, "orders-again").unwrap();
    assert_eq!((&*entry.source, &*entry.detail_type), ("replay.ordering", "OrderPlaced"));
    let detail: Value = serde_json::from_str(&entry.detail).unwrap();
    let new = only(&record(7, 2));
    let mut expected: Value = serde_json::from_str(&new.detail).unwrap();
    expected["replay"] = "orders-again".into();
    assert_eq!(detail, expected);
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
    // As they are sent: each quote is escaped in the detail, and again in the request.
    let quotes = |n| {
        let mut record = record(n, 0);
        record["dynamodb"]["NewImage"]["data"]["M"]["text"]["S"] = "\"".repeat(200_000).into();
        record
    };
    check(&(0..3).map(quotes).collect::<Vec<_>>(), &[1, 1, 1]);
}

/// A bus that takes 20 ms for a call.
struct Slow;

impl Bus for Slow {
    fn put<'a>(
        &'a self,
        entries: &'a [&'a TopicEntry],
    ) -> BoxFuture<'a, Result<Vec<Verdict>, Unreachable>> {
        async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            Ok(vec![Verdict::Sent; entries.len()])
        }
        .boxed()
    }
}

/// In simulated time, with 20 ms between two batches.
#[test]
fn calls_go_side_by_side_unless_they_have_events_of_one_partition() {
    let events_a_second = |partitions: u64| {
        let mut random = ringfence_aws::Random::new(&[partitions]);
        let records: Vec<_> = (0..500)
            .map(|n| {
                let mut record = record(n, 1);
                let partition = format!("orderId:o{}", random.below(partitions));
                record["dynamodb"]["NewImage"]["id"]["S"] = partition.into();
                record
            })
            .collect();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let queue = Scripted::default();
        let publisher =
            Publisher { bus: Slow, dead_letters: &queue, sources: sources(), catalog: catalog() };
        runtime.block_on(async {
            let begun = tokio::time::Instant::now();
            publisher.publish(&records, Duration::from_secs(60)).await;
            500_000 / (begun.elapsed().as_millis() + 20)
        })
    };
    let (one, many) = (events_a_second(1), events_a_second(1_000));
    assert!(one < 500 && many > 3_000, "{one} and {many}");
}

#[test]
fn one_poison_record_does_not_hold_up_the_others() {
    let world = Scripted::default();
    let mut records: Vec<Value> = (0..1_000).map(|n| record(n, 1)).collect();
    records[500] = poison(500);
    let report = publish(&world, &records);
    assert_eq!((report.published, report.dead_letters, report.failed_from), (999, 1, None));
    let kept = world.kept.lock().unwrap();
    let [dead_letter] = kept.as_slice() else { panic!("{} dead letters", kept.len()) };
    assert_eq!(dead_letter["record"], records[500]);
    let cause = dead_letter["cause"].as_str().unwrap();
    assert!(cause.contains("position"), "the cause names what is wrong: {cause}");
}

#[test]
fn an_entry_that_stays_refused_is_reported_by_its_number() {
    let world = Scripted::default();
    // The second entry is put off for longer than there is time.
    *world.script.lock().unwrap() = [
        vec![Answer::Later; 1_000],
        vec![Answer::Sent; CALL_ENTRIES_MAX - 2],
        vec![Answer::Later, Answer::Sent],
    ]
    .concat();
    let records: Vec<_> = (1..=CALL_ENTRIES_MAX + 2).map(|n| record(n, 1)).collect();
    let report = publish(&world, &records);
    let published = CALL_ENTRIES_MAX - 1;
    assert_eq!((report.published, report.failed_from.as_deref()), (published, Some("2")));
    // Later entries do not overtake it.
    assert!(world.calls.lock().unwrap()[1..].iter().all(|entries| *entries == 1));
    assert_eq!(report.cause.as_deref(), Some("ThrottlingException"));
}

/// It is sent again before the next call, so that events of one partition are not overtaken.
#[test]
fn an_entry_that_is_put_off_is_sent_again_before_later_ones() {
    let world = Scripted::default();
    *world.script.lock().unwrap() = [vec![Answer::Sent; 9], vec![Answer::Later]].concat();
    let records: Vec<_> = (0..=CALL_ENTRIES_MAX).map(|n| record(n, 1)).collect();
    let report = publish(&world, &records);
    assert_eq!((report.published, report.failed_from), (11, None));
    let order = (1..10).chain([0, 10]).map(event_id);
    assert!(world.sent.lock().unwrap().iter().cloned().eq(order), "{:?}", world.sent);
}

#[test]
fn a_queue_that_takes_no_dead_letters_holds_up_no_entry() {
    let world = Scripted { dead_letters_refused: usize::MAX.into(), ..Scripted::default() };
    let report = publish(&world, &[record(1, 1), poison(2), record(3, 1)]);
    assert_eq!((report.published, report.failed_from.as_deref()), (2, Some("2")));
    assert_eq!(report.cause.as_deref(), Some("the dead letter can't be kept: no queue"));
}

#[test]
fn a_queue_that_fails_for_a_while_causes_no_further_delivery() {
    for records in [[poison(1)], [record(1, 1)]] {
        let world = Scripted { dead_letters_refused: 1.into(), ..Scripted::default() };
        *world.script.lock().unwrap() = vec![Answer::Refused; 2];
        let report = publish(&world, &records);
        assert_eq!((report.published, report.dead_letters, report.failed_from), (0, 1, None));
    }
}

#[test]
fn a_call_refused_as_a_whole_is_cut_in_halves_until_the_entry_at_fault_stands_alone() {
    let world = Scripted::default();
    // The call of four, its first half, and the second entry alone. In a half, an answer counts for one entry.
    let script = [Answer::Refused, Answer::Refused, Answer::Sent, Answer::Refused];
    *world.script.lock().unwrap() = script.into_iter().rev().collect();
    let report = publish(&world, &[record(1, 1), record(2, 1), record(3, 1), record(4, 1)]);
    assert_eq!((report.published, report.dead_letters, report.failed_from), (3, 1, None));
    assert_eq!(*world.calls.lock().unwrap(), [4, 2, 1, 1, 2]);
    let kept = world.kept.lock().unwrap();
    let kept: Vec<_> =
        kept.iter().map(|dead_letter| sequence_number(&dead_letter["record"])).collect();
    assert_eq!(kept, ["2"]);
}

/// A Tip to which the last two of its three events were appended.
fn tip() -> Value {
    let text = |text: &str| json!({ "S": text });
    let event = || json!({ "M": { "t": text("2024-06-23T00:00:00.000Z"), "d": { "B": "e30=" } } });
    let mut record = record(1, 0);
    record["dynamodb"]["NewImage"] = json!({
        "p": text("carts-a"), "i": { "N": "2147483647" },
        "n": { "N": "3" }, "a": { "N": "2" }, "b": { "N": "0" }, "u": { "L": [] },
        "c": { "L": [text("Changed"), text("Changed"), text("Changed")] },
        "e": { "L": [event(), event(), event()] },
    });
    record
}

#[test]
fn each_event_of_a_record_is_published_and_a_record_is_done_when_all_are() {
    let world = Scripted::default();
    // The first event of the first record and all of the second are sent, the other is put off.
    let script = [Answer::Sent, Answer::Later, Answer::Sent];
    let later = vec![Answer::Later; 1_000];
    *world.script.lock().unwrap() = [later, script.into_iter().rev().collect()].concat();
    let report = publish(&world, &[tip(), record(2, 1)]);
    assert_eq!((report.published, report.failed_from.as_deref()), (2, Some("1")));
    let ids = ["carts-a/1".to_owned(), event_id(2)];
    assert_eq!(*world.sent.lock().unwrap(), ids);
}

#[test]
fn an_entry_that_is_larger_than_a_call_becomes_a_dead_letter() {
    let world = Scripted::default();
    let report = publish(&world, &[record(1, 1), record(2, ENTRY_BYTES_MAX), record(3, 1)]);
    assert_eq!((report.published, report.dead_letters, report.failed_from), (2, 1, None));
    let kept = world.kept.lock().unwrap();
    assert!(kept[0]["cause"].as_str().unwrap().contains("limit 1000000"), "{}", kept[0]["cause"]);
    assert_eq!(kept[0]["sequenceNumber"], "2");
}
