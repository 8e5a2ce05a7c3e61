//! A record that ends the process of each function that handles it.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use aws_sdk_dynamodb::types::{AttributeValue, PutRequest, WriteRequest};
use ringfence_local::{
    buckets::Buckets,
    destinations::Destinations,
    invoke::{Invoke, InvokeError},
    notices::Notices,
    queues::Queues,
    stream::Poller,
};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::{model, readers, start, table};

/// Ends without an answer if a batch has the record `poison`.
struct Crashes {
    poison: String,
    /// By record, the number of successful invocations.
    done: Mutex<BTreeMap<String, u32>>,
    crashes: Mutex<u32>,
    progress: Notify,
}

impl Invoke for Crashes {
    async fn invoke(&self, function: &str, payload: &Value) -> Result<Value, InvokeError> {
        let records = payload["Records"].as_array().unwrap();
        let id =
            |record: &Value| record["dynamodb"]["Keys"]["id"]["S"].as_str().unwrap().to_owned();
        let ids: Vec<_> = records.iter().map(id).collect();
        if ids.contains(&self.poison) {
            *self.crashes.lock().unwrap() += 1;
            let error = json!({ "errorType": "Runtime.ExitError" });
            return Err(InvokeError::Function { function: function.to_owned(), error });
        }
        for id in ids {
            *self.done.lock().unwrap().entry(id).or_default() += 1;
        }
        self.progress.notify_one();
        Ok(json!({ "batchItemFailures": [] }))
    }
}

/// Puts a thousand events, one of which ends the process of each function that handles it.
async fn put_events(client: &aws_sdk_dynamodb::Client, table: &str) {
    let ids: Vec<String> = (0..1_000).map(|n| format!("orderId:o{n}")).collect();
    for ids in ids.chunks(25) {
        let text = |text: &str| AttributeValue::S(text.to_owned());
        let write = |id: &String| {
            let put = PutRequest::builder()
                .item("id", text(id))
                .item("position", AttributeValue::N("1".to_owned()));
            let put = put.item("event", text("OrderPlaced")).build().unwrap();
            WriteRequest::builder().put_request(put).build()
        };
        let writes = ids.iter().map(write).collect();
        client.batch_write_item().request_items(table, writes).send().await.unwrap();
    }
}

#[tokio::test]
async fn a_crash_loop_on_one_record_ends_within_the_retries_and_keeps_the_record() {
    let model = model();
    let table = table(&model, "EventTable");
    let (dynamo, client) = start(table).await;
    put_events(&client, &table.name).await;
    // Hours of retries pass at once, because from here on nothing waits for real time.
    tokio::time::pause();
    for mapping in readers(&model, table) {
        let crashes = Arc::new(Crashes {
            poison: "orderId:o537".to_owned(),
            done: Mutex::default(),
            crashes: Mutex::default(),
            progress: Notify::new(),
        });
        let folder = tempfile::tempdir().unwrap();
        let buckets = Buckets::new(folder.path().to_owned(), model.buckets.clone());
        let poller = Poller {
            mapping: mapping.clone(),
            stream: dynamo.stream(&table.name).unwrap(),
            functions: crashes.clone(),
            destinations: Destinations { queues: Queues::default(), buckets: buckets.clone() },
            notices: Notices::default(),
        };
        let running = tokio::spawn(poller.run());
        let all = async {
            while crashes.done.lock().unwrap().len() < 999 {
                crashes.progress.notified().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(3_600), all).await.expect("the others arrive");
        running.abort();

        let function = &mapping.function;
        let done = crashes.done.lock().unwrap();
        assert!(done.values().all(|times| *times == 1), "{function}: one arrived twice");
        // Halving the batch down to the record does not count as a retry.
        let halvings = mapping.batch_size.next_power_of_two().ilog2();
        let most = mapping.retries.attempts_max.unwrap() + 1 + halvings;
        let found = *crashes.crashes.lock().unwrap();
        assert!(found <= most, "{function}: {found} crashes, at most {most}");
        let bucket = mapping.on_failure.as_ref().unwrap().rsplit(':').next().unwrap();
        let objects = buckets.list(bucket).unwrap();
        assert_eq!(objects.len(), 1, "{function}");
        let object = buckets.get(bucket, &objects[0].key).unwrap();
        let object: Value = serde_json::from_slice(&object).unwrap();
        assert_eq!(object["requestContext"]["condition"], "RetryAttemptsExhausted");
        let payload: Value = serde_json::from_str(object["payload"].as_str().unwrap()).unwrap();
        let records = payload["Records"].as_array().unwrap();
        assert_eq!(records.len(), 1, "{function}: the record alone");
        assert_eq!(records[0]["dynamodb"]["NewImage"]["id"]["S"], "orderId:o537");
    }
}
