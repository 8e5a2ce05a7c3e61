use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use aws_sdk_dynamodb::types::AttributeValue;
use futures::FutureExt;
use ringfence_aws::Failure;
use ringfence_core::{BoundaryId, LogKind};

use super::*;
use crate::{FeedError, IndexError, StreamError};

fn sources() -> Sources {
    [ringfence_dcb_log::SOURCE, ringfence_aggregate_log::SOURCE, ringfence_document_log::SOURCE]
        .into()
}

/// Fails partitions according to their names.
struct ByName;

impl Indexing for ByName {
    fn index(
        &self,
        notifications: Vec<Notification>,
        _: Duration,
    ) -> BoxFuture<'_, BTreeMap<Partition, Indexed>> {
        let partitions = notifications.into_iter().map(|notification| notification.partition);
        let outcome = |partition: &Partition| match partition.id.as_str() {
            "a:poison" => {
                let partition = partition.id.clone();
                let gap = StreamError::Gap { partition, wanted: 2, found: 3 };
                Err(IndexError::Stream(Arc::new(gap)))
            }
            "a:throttled" => {
                let source = Failure::Throttled { source: "slow down".into() };
                let (operation, attempts) = ("writing a page", 8);
                Err(IndexError::Feed(Arc::new(FeedError::Failed { operation, attempts, source })))
            }
            _ => Ok(2),
        };
        let outcomes = partitions.map(|p| (p.clone(), outcome(&p))).collect();
        async move { outcomes }.boxed()
    }
}

/// Refuses the first few dead letters, and keeps the others.
struct Mailbox {
    refuses: AtomicUsize,
    dead_letters: Mutex<Vec<Value>>,
}

impl DeadLetters for Mailbox {
    fn keep(
        &self,
        dead_letter: Value,
    ) -> BoxFuture<'_, Result<(), Box<dyn std::error::Error + Send + Sync>>> {
        let works = self.refuses.load(Ordering::Relaxed) == 0;
        if works {
            self.dead_letters.lock().unwrap().push(dead_letter);
        } else {
            self.refuses.fetch_sub(1, Ordering::Relaxed);
        }
        async move { if works { Ok(()) } else { Err("no queue".into()) } }.boxed()
    }
}

/// Takes dead letters and never answers.
struct Silent(AtomicUsize);

impl DeadLetters for Silent {
    fn keep(
        &self,
        _: Value,
    ) -> BoxFuture<'_, Result<(), Box<dyn std::error::Error + Send + Sync>>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        std::future::pending().boxed()
    }
}

/// Takes the first dead letter at the very end of the time.
struct Slow(Duration);

impl DeadLetters for Slow {
    fn keep(
        &self,
        _: Value,
    ) -> BoxFuture<'_, Result<(), Box<dyn std::error::Error + Send + Sync>>> {
        tokio::time::sleep(self.0).map(Ok).boxed()
    }
}

fn record(n: usize, id: &str) -> Value {
    event(n, id, 1)
}

fn event(n: usize, id: &str, slot: u64) -> Value {
    let image = json!({
        "id": { "S": id }, "position": { "N": slot.to_string() }, "event": { "S": "Changed" },
    });
    of_image(n, image)
}

fn keyless(n: usize) -> Value {
    of_image(n, json!({ "event": { "S": "Changed" } }))
}

fn of_image(n: usize, image: Value) -> Value {
    of_change(json!({ "SequenceNumber": n.to_string(), "NewImage": image, "SizeBytes": 1 }))
}

fn of_change(change: Value) -> Value {
    json!({ "eventID": "1", "eventName": "INSERT", "awsRegion": "eu-central-1", "dynamodb": change })
}

/// The time of an invocation.
const TIME: Duration = Duration::from_secs(898);

async fn run(records: &[Value], refuses: usize) -> (IndexingReport, Vec<Value>) {
    let dead_letters = Mailbox { refuses: refuses.into(), dead_letters: Mutex::default() };
    let report = index(&sources(), &ByName, &dead_letters, records, TIME).await;
    (report, dead_letters.dead_letters.into_inner().unwrap())
}

#[tokio::test(start_paused = true)]
async fn each_partition_succeeds_or_fails_on_its_own() {
    let ids = ["a:1", "a:poison", "a:throttled", "a:1", "a:throttled", "a:2"];
    let records: Vec<_> = ids.iter().zip(1..).map(|(id, n)| record(n, id)).collect();
    let (report, dead_letters) = run(&records, 0).await;
    assert_eq!((report.partitions, report.indexed, report.dead_letters), (4, 4, 1));
    assert_eq!(report.failed_from.as_deref(), Some("3"));
    assert!(report.cause.unwrap().contains("throttled"));
    assert_eq!(dead_letters[0]["partition"], "a:poison");
    assert!(dead_letters[0]["cause"].as_str().unwrap().contains("put back what is missing"));
}

#[tokio::test(start_paused = true)]
async fn a_record_whose_dead_letter_is_never_kept_is_delivered_again() {
    let records = [record(1, "a:1"), record(2, "a:poison"), record(3, "a:throttled")];
    let (report, _) = run(&records, usize::MAX).await;
    assert_eq!((report.failed_from.as_deref(), report.dead_letters), (Some("2"), 0));
    assert!(report.cause.unwrap().contains("no queue"));
}

#[tokio::test(start_paused = true)]
async fn dead_letters_to_a_queue_that_never_answers_share_the_time_of_one_invocation() {
    let records = [1, 2].map(keyless);
    let (dead_letters, begin) = (Silent(0.into()), tokio::time::Instant::now());
    let report = index(&sources(), &ByName, &dead_letters, &records, TIME).await;
    // The timer counts whole milliseconds, and the time is over in the next one.
    assert!(begin.elapsed() <= TIME + Duration::from_millis(1), "{:?}", begin.elapsed());
    assert_eq!((report.failed_from.as_deref(), report.dead_letters), (Some("1"), 0));
    assert_eq!(dead_letters.0.into_inner(), 1, "the second dead letter is not sent");
}

#[tokio::test(start_paused = true)]
async fn a_dead_letter_for_which_no_time_is_left_is_not_done() {
    let records = [1, 2].map(keyless);
    let report = index(&sources(), &ByName, &Slow(TIME), &records, TIME).await;
    assert_eq!((report.failed_from.as_deref(), report.dead_letters), (Some("2"), 1));
    assert_eq!(report.cause.as_deref(), Some(OUT_OF_TIME));
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_fails_for_a_while_causes_no_further_delivery() {
    let (report, dead_letters) = run(&[record(1, "a:poison")], 9).await;
    assert_eq!((report.failed_from, report.dead_letters, dead_letters.len()), (None, 1, 1));
}

/// The mapping counts deliveries, to end a crash loop: an outage must not use them up.
#[tokio::test(start_paused = true)]
async fn a_temporary_failure_is_retried_as_long_as_there_is_time() {
    let begin = tokio::time::Instant::now();
    let (report, _) = run(&[record(1, "a:throttled")], 0).await;
    assert_eq!(report.failed_from.as_deref(), Some("1"));
    // The next pause, of at most 1.6 seconds, would have ended too late.
    let took = begin.elapsed();
    assert!(took > TIME - Duration::from_millis(1_600) && took < TIME, "{took:?}");
}

/// Fails one partition for now, the first time.
struct Once(Mutex<Vec<Vec<Notification>>>);

impl Indexing for Once {
    fn index(
        &self,
        notifications: Vec<Notification>,
        _: Duration,
    ) -> BoxFuture<'_, BTreeMap<Partition, Indexed>> {
        let mut runs = self.0.lock().unwrap();
        let outcome = |notification: &Notification| match runs.is_empty()
            && notification.partition.id.as_str() == "a:2"
        {
            true => Err(IndexError::Feed(Arc::new(FeedError::Contention { attempts: 16 }))),
            false => Ok(1),
        };
        let outcomes = notifications
            .iter()
            .map(|notification| (notification.partition.clone(), outcome(notification)));
        let outcomes = outcomes.collect();
        runs.push(notifications);
        async move { outcomes }.boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn only_what_failed_is_tried_again_with_the_events_that_its_records_show() {
    let dead_letters = Mailbox { refuses: 0.into(), dead_letters: Mutex::default() };
    let records = [("a:1", 5), ("a:2", 9), ("a:2", 7)].map(|(id, slot)| event(1, id, slot));
    let indexing = Once(Mutex::default());
    let report = index(&sources(), &indexing, &dead_letters, &records, TIME).await;
    assert_eq!((report.indexed, report.failed_from), (2, None));
    let notification = |id: &str, slots: &[u64]| {
        let item = |slot: &u64| {
            Item::from([
                ("id".to_owned(), AttributeValue::S(id.to_owned())),
                ("position".to_owned(), AttributeValue::N(slot.to_string())),
                ("event".to_owned(), AttributeValue::S("Changed".to_owned())),
            ])
        };
        let events = slots.iter().map(|slot| (*slot, item(slot))).collect();
        Notification { partition: BoundaryId::stored(id).into(), events }
    };
    let expected = [
        vec![notification("a:1", &[5]), notification("a:2", &[7, 9])],
        vec![notification("a:2", &[7, 9])],
    ];
    assert_eq!(*indexing.0.lock().unwrap(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_record_that_cant_be_read_is_a_dead_letter_alone() {
    let fence = of_image(1, json!({ "id": { "S": "fence#a:1" }, "position": { "N": "0" } }));
    let mut untyped = event(2, "a:1", 1);
    untyped["dynamodb"]["NewImage"]["event"] = json!({ "X": "Changed" });
    let bad = [keyless(3), untyped, json!("text")];
    let (report, dead_letters) = run(&[&[fence, event(4, "a:1", 1)], &bad[..]].concat(), 0).await;
    let expected =
        IndexingReport { partitions: 1, indexed: 2, dead_letters: 3, ..IndexingReport::default() };
    assert_eq!(report, expected);
    assert_eq!(
        dead_letters.iter().map(|dead_letter| &dead_letter["record"]).collect::<Vec<_>>(),
        bad.each_ref()
    );
    let untyped = dead_letters[1]["cause"].as_str().unwrap();
    assert!(untyped.starts_with("not a stream record: "), "{untyped}");
}

#[test]
fn a_record_of_each_table_names_its_partition() {
    let check = |record: Value, expected: Option<(LogKind, &str, &[u64])>| {
        let found = notification(&sources(), &record).unwrap();
        let found = found.map(|notification| {
            (notification.partition, notification.events.into_keys().collect())
        });
        let expected = expected.map(|(log, id, slots)| {
            (Partition { log, id: BoundaryId::stored(id) }, slots.to_vec())
        });
        assert_eq!(found, expected, "{record}");
    };
    check(event(1, "a:1", 7), Some((LogKind::Dcb, "a:1", &[7])));
    let aggregate = json!({ "aggregateId": { "S": "carts#a" }, "version": { "N": "1" } });
    check(of_image(1, aggregate.clone()), Some((LogKind::Aggregates, "carts#a", &[1])));
    check(of_change(json!({ "Keys": aggregate, "SizeBytes": 1 })), None);
    let tip = |stream: &str, appended: Option<&str>| {
        let appended = appended.map(|n| json!({ "N": n }));
        let list = |value: Value| json!({ "L": [value.clone(), value.clone(), value] });
        let mut image = json!({
            "p": { "S": stream }, "i": { "N": "2147483647" }, "n": { "N": "3" },
            "c": list(json!({ "S": "Added" })),
            "e": list(json!({ "M": { "t": { "S": "2024-06-23T00:00:00Z" } } })),
        });
        image.as_object_mut().unwrap().extend(appended.map(|a| ("a".to_owned(), a)));
        of_image(1, image)
    };
    check(tip("carts-a:1", Some("2")), Some((LogKind::Documents, "carts-a%3A1", &[1, 2])));
    let mut torn = tip("carts-a", Some("2"));
    torn["dynamodb"]["NewImage"]["n"] = json!({ "S": "?" });
    check(torn, Some((LogKind::Documents, "carts-a", &[])));
    check(tip("carts-a", Some("0")), None);
    check(tip("carts-a", None), None);
    assert!(notification(&sources(), &tip("carts", Some("1"))).is_err());
}
