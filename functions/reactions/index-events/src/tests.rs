use std::sync::{Arc, Mutex};

use futures::FutureExt;
use ringfence_dcb_log::NewsError;
use ringfence_dynamo::Failure;
use ringfence_feed::{FeedError, IndexError, Log};

use super::*;

/// Fails partitions by their names.
struct ByName;

impl Indexing for ByName {
    fn index(
        &self,
        partitions: Vec<Partition>,
        _: Duration,
    ) -> BoxFuture<'_, BTreeMap<Partition, Outcome>> {
        let outcome = |partition: &Partition| match partition.id.as_str() {
            "a:poison" => {
                let partition = partition.id.clone();
                Err(IndexError::News(Arc::new(NewsError::Uncounted { partition })))
            }
            "a:throttled" => {
                let source = Failure::Throttled { source: "slow down".into() };
                let (operation, attempts) = ("writing a page", 8);
                Err(IndexError::Feed(Arc::new(FeedError::Failed { operation, attempts, source })))
            }
            _ => Ok(2),
        };
        let outcomes = partitions.into_iter().map(|p| (p.clone(), outcome(&p))).collect();
        async move { outcomes }.boxed()
    }
}

/// Keeps letters as long as it works.
struct Mailbox {
    works: bool,
    letters: Mutex<Vec<Value>>,
}

impl Letters for Mailbox {
    fn keep(
        &self,
        letter: Value,
    ) -> BoxFuture<'_, Result<(), Box<dyn std::error::Error + Send + Sync>>> {
        self.letters.lock().unwrap().push(letter);
        let kept = if self.works { Ok(()) } else { Err("no queue".into()) };
        async move { kept }.boxed()
    }
}

fn record(n: usize, id: &str) -> Value {
    json!({ "dynamodb": {
        "SequenceNumber": n.to_string(),
        "Keys": { "id": { "S": id } },
        "NewImage": { "event": { "S": "Changed" } },
    }})
}

async fn run(records: &[Value], works: bool) -> (Report, Vec<Value>) {
    let letters = Mailbox { works, letters: Mutex::default() };
    let report = index(&ByName, &letters, records, Duration::from_secs(1)).await;
    (report, letters.letters.into_inner().unwrap())
}

#[tokio::test]
async fn each_partition_succeeds_or_fails_for_itself() {
    let ids = ["a:1", "a:poison", "a:throttled", "a:1", "a:throttled", "a:2"];
    let records: Vec<_> = ids.iter().zip(1..).map(|(id, n)| record(n, id)).collect();
    let (report, letters) = run(&records, true).await;
    assert_eq!((report.partitions, report.indexed, report.dead_letters), (4, 4, 1));
    assert_eq!(report.failed_from.as_deref(), Some("3"));
    assert!(report.cause.unwrap().contains("throttled"));
    assert_eq!(letters[0]["partition"], "a:poison");
    assert!(letters[0]["cause"].as_str().unwrap().contains("ringfence repair"));
}

#[tokio::test]
async fn what_the_queue_does_not_take_is_delivered_again() {
    let records = [record(1, "a:1"), record(2, "a:poison"), record(3, "a:throttled")];
    let (report, _) = run(&records, false).await;
    assert_eq!((report.failed_from.as_deref(), report.dead_letters), (Some("2"), 0));
}

#[tokio::test]
async fn a_record_without_key_is_kept_whole_and_one_of_a_fence_is_nothing() {
    let fence = json!({ "dynamodb": { "Keys": { "id": { "S": "fence#a:1" } }, "NewImage": {} } });
    let keyless = json!({ "dynamodb": { "NewImage": { "event": { "S": "Changed" } } } });
    let (report, letters) = run(&[fence, keyless.clone()], true).await;
    let expected = Report { dead_letters: 1, ..Report::default() };
    assert_eq!(report, expected);
    assert_eq!(letters[0]["record"], keyless);
}

#[test]
fn a_record_of_each_table_names_its_partition() {
    let check = |change: Value, expected: Option<(Log, &str)>| {
        let found = partition_of(&change).unwrap();
        let expected = expected.map(|(log, id)| Partition { log, id: BoundaryId::stored(id) });
        assert_eq!(found, expected, "{change}");
    };
    let aggregate = json!({ "aggregateId": { "S": "carts#a" }, "version": { "N": "1" } });
    let change = json!({ "Keys": aggregate, "NewImage": aggregate });
    check(change, Some((Log::Aggregates, "carts#a")));
    let tip = |stream: &str, appended: Option<&str>| {
        let appended = appended.map(|n| json!({ "N": n }));
        let mut image = json!({ "n": { "N": "3" } });
        image.as_object_mut().unwrap().extend(appended.map(|a| ("a".to_owned(), a)));
        json!({ "Keys": { "p": { "S": stream }, "i": { "N": "2147483647" } }, "NewImage": image })
    };
    check(tip("carts-a:1", Some("2")), Some((Log::Documents, "carts-a%3A1")));
    check(tip("carts-a", Some("0")), None);
    check(tip("carts-a", None), None);
    assert!(partition_of(&tip("carts", Some("1"))).is_err());
}

#[tokio::test]
async fn the_sample_payload_tells_of_partitions() {
    let path = "../../../events/index-events/stream.json";
    let sample: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let (report, _) = run(sample["Records"].as_array().unwrap(), true).await;
    assert!(report.partitions > 0 && report.indexed > 0, "{report:?}");
}
