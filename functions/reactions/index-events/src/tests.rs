use std::sync::{Arc, Mutex};

use futures::FutureExt;
use ringfence_dcb_log::NewsError;
use ringfence_dynamo::Failure;
use ringfence_feed::{FeedError, IndexError};

use super::*;

/// Fails partitions by their names.
struct ByName;

impl Indexing for ByName {
    fn index(
        &self,
        partitions: Vec<BoundaryId>,
        _: Duration,
    ) -> BoxFuture<'_, BTreeMap<BoundaryId, Outcome>> {
        let outcome = |partition: &BoundaryId| match partition.as_str() {
            "a:poison" => {
                let partition = partition.clone();
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

#[tokio::test]
async fn the_sample_payload_tells_of_partitions() {
    let path = "../../../events/index-events/stream.json";
    let sample: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let (report, _) = run(sample["Records"].as_array().unwrap(), true).await;
    assert!(report.partitions > 0 && report.indexed > 0, "{report:?}");
}
