//! The loop that reads a stream and invokes its function.

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, SecondsFormat};
use serde_json::{Map, Value, json};
use tokio::task::spawn_blocking;

use super::batches::{Batches, GiveUpReason, GivenUp, InvocationOutcome, Next};
use crate::{
    clock,
    destinations::Destinations,
    embedded::{EmbeddedError, Position, StreamReader},
    invoke::Invoke,
    kept::Kept,
    notices::Notices,
    template::Mapping,
};

/// The pause before the next read of a stream that had nothing new.
const IDLE_PAUSE: Duration = Duration::from_millis(20);
/// The pause before the second attempt. It doubles with each attempt.
const RETRY_PAUSE_MIN: Duration = Duration::from_millis(100);
/// The longest pause between attempts.
const RETRY_PAUSE_MAX: Duration = Duration::from_secs(5);

/// Reads a stream for one event source mapping.
pub struct Poller<I> {
    /// The mapping.
    pub mapping: Mapping,
    /// The stream.
    pub stream: StreamReader,
    /// Runs the function.
    pub functions: Arc<I>,
    /// The destinations of batches that are given up.
    pub destinations: Destinations,
    /// Gets a notice of each failure.
    pub notices: Notices,
}

impl<I: Invoke> Poller<I> {
    /// Polls until the stream can no longer be read.
    ///
    /// # Errors
    /// The stream can't be read.
    pub async fn run(self) -> Result<(), EmbeddedError> {
        self.run_and_keep(None).await
    }

    /// Does the same as [`Self::run`], and saves the mapping's position.
    pub(crate) async fn run_and_keep(mut self, keep: Option<Kept>) -> Result<(), EmbeddedError> {
        let mut batches = Batches::new(self.mapping.clone());
        let (mut last, mut kept) = (None, None);
        loop {
            let at = batches.first().and_then(number).map(Position::At);
            let position = at.or_else(|| last.clone().map(Position::After));
            if let (Some(keep), Some(position)) =
                (&keep, position.filter(|it| kept.as_ref() != Some(it)))
            {
                keep.keep_position(&self.mapping, position.clone());
                kept = Some(position);
            }
            let now = clock::now().timestamp_millis() as f64 / 1_000.0;
            match batches.next(now) {
                Next::Idle => {
                    let records = self.read().await?;
                    last = records.last().and_then(number).or(last);
                    batches.take(records);
                    if batches.is_empty() {
                        tokio::time::sleep(IDLE_PAUSE).await;
                    }
                }
                Next::Invoke(records) => {
                    let outcome = self.invoke(records).await;
                    batches.settle(&outcome);
                    if outcome != InvocationOutcome::Succeeded {
                        tokio::time::sleep(retry_pause(batches.failures())).await;
                    }
                }
                Next::GiveUp(given_up) => self.give_up(&given_up),
            }
        }
    }

    /// The next records. The engine may be busy computing, so it is asked in another thread.
    async fn read(&mut self) -> Result<Vec<Value>, EmbeddedError> {
        if !self.stream.may_have_more() {
            return Ok(Vec::new());
        }
        let mut stream = self.stream.clone();
        let read = spawn_blocking(move || (stream.read(), stream)).await;
        let (records, stream) = read.expect("it does not panic");
        self.stream = stream;
        records
    }

    async fn invoke(&self, records: Vec<Value>) -> InvocationOutcome {
        // `json!` would copy each record.
        let payload = Value::Object(Map::from_iter([("Records".to_owned(), records.into())]));
        match self.functions.invoke(&self.mapping.function, &payload).await {
            Ok(answer) if self.mapping.report_item_failures => {
                InvocationOutcome::of_answer(&answer)
            }
            Ok(_) => InvocationOutcome::Succeeded,
            Err(error) => {
                self.notices.trouble(&error);
                InvocationOutcome::Failed
            }
        }
    }

    fn give_up(&self, given_up: &GivenUp) {
        let Some(arn) = &self.mapping.on_failure else { return };
        let record = failure_record(&self.mapping.function, &self.stream, given_up);
        let payload = json!({ "Records": given_up.records });
        if let Err(error) = self.destinations.send(arn, &record, &payload) {
            self.notices.trouble(&error);
        }
    }
}

fn number(record: &Value) -> Option<String> {
    record.pointer("/dynamodb/SequenceNumber").and_then(Value::as_str).map(str::to_owned)
}

fn retry_pause(failures: u32) -> Duration {
    RETRY_PAUSE_MIN
        .saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1)))
        .min(RETRY_PAUSE_MAX)
}

/// The invocation record that Lambda sends to a stream's failure destination.
fn failure_record(function: &str, stream: &StreamReader, given_up: &GivenUp) -> Value {
    let records = &given_up.records;
    let number = |record: Option<&Value>| record.map(|r| r["dynamodb"]["SequenceNumber"].clone());
    let arrival = |record: Option<&Value>| {
        let seconds = record?["dynamodb"]["ApproximateCreationDateTime"].as_f64()?;
        // Whole seconds since 1970 are far below the range of an i64.
        #[expect(clippy::cast_possible_truncation)]
        let time = DateTime::from_timestamp(seconds as i64, 0)?;
        Some(time.to_rfc3339_opts(SecondsFormat::Secs, true))
    };
    let condition = match given_up.reason {
        GiveUpReason::RetryAttemptsExhausted => "RetryAttemptsExhausted",
        GiveUpReason::RecordAgeExceeded => "EventAgeExceeded",
    };
    json!({
        "requestContext": {
            "requestId": clock::id(),
            "functionArn": function,
            "condition": condition,
            "approximateInvokeCount": given_up.invocations,
        },
        "version": "1.0",
        "timestamp": clock::now().to_rfc3339_opts(SecondsFormat::Millis, true),
        "DDBStreamBatchInfo": {
            "shardId": stream.shard(),
            "startSequenceNumber": number(records.first()),
            "endSequenceNumber": number(records.last()),
            "approximateArrivalOfFirstRecord": arrival(records.first()),
            "approximateArrivalOfLastRecord": arrival(records.last()),
            "batchSize": records.len(),
            "streamArn": stream.arn(),
        },
    })
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

    use super::*;
    use crate::{
        buckets::Buckets,
        embedded::{
            Embedded,
            tests::{put, table},
        },
        invoke::InvokeError,
        pattern::Pattern,
        queues::Queues,
        template::{Model, Retries},
    };

    /// Fails on every batch that has the id `poison`. While it runs, the next start of the stack would repeat the
    /// batch.
    struct Fake {
        given: UnboundedSender<String>,
        kept: Kept,
        mapping: Mapping,
    }

    impl Invoke for Fake {
        async fn invoke(&self, function: &str, payload: &Value) -> Result<Value, InvokeError> {
            let first = number(&payload["Records"][0]).expect("a number");
            assert_eq!(self.kept.position(&self.mapping), Some(Position::At(first)));
            let ids: Vec<_> = payload["Records"]
                .as_array()
                .expect("records")
                .iter()
                .map(|r| r["dynamodb"]["Keys"]["id"]["S"].as_str().expect("an id"))
                .collect();
            let _ = self.given.send(ids.join(" "));
            match ids.contains(&"poison") {
                false => Ok(Value::Null),
                true => Err(InvokeError::Function {
                    function: function.to_owned(),
                    error: json!("poisoned"),
                }),
            }
        }
    }

    async fn take(given: &mut UnboundedReceiver<String>, count: usize) -> Vec<String> {
        let mut taken = Vec::new();
        while taken.len() < count {
            let next = tokio::time::timeout(Duration::from_secs(60), given.recv()).await;
            taken.push(next.expect("not for ever").expect("an invocation"));
        }
        taken
    }

    #[tokio::test]
    async fn poison_ends_in_the_bucket_with_its_payload_and_the_rest_goes_on() {
        let dynamo = Embedded::start().await.expect("a database");
        dynamo.create_table(&table(), "events").expect("a table");
        for id in ["a", "poison", "other", "b"] {
            put(&dynamo, "events", id).await;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let buckets = Buckets::new(folder.path().to_owned(), vec!["lost".to_owned()]);
        let wanted =
            json!({ "dynamodb": { "Keys": { "id": { "S": ["a", "poison", "b", "c"] } } } });
        let (sender, mut given) = unbounded_channel();
        let mapping = Mapping {
            table: "events".to_owned(),
            function: "publish-events".to_owned(),
            batch_size: 10,
            filters: vec![Pattern::parse(&wanted).expect("a pattern")],
            retries: Retries { attempts_max: Some(0), age_max: None },
            bisect: true,
            report_item_failures: true,
            on_failure: Some("arn:aws:s3:::lost".to_owned()),
        };
        let kept = Kept::open(folder.path(), &Model::default(), &Notices::default());
        let kept = kept.expect("a folder");
        let fake = Fake { given: sender, kept: kept.clone(), mapping: mapping.clone() };
        let poller = Poller {
            mapping,
            stream: dynamo.stream("events").expect("a stream"),
            functions: Arc::new(fake),
            destinations: Destinations { queues: Queues::default(), buckets: buckets.clone() },
            notices: Notices::default(),
        };
        let running = tokio::spawn(poller.run_and_keep(Some(kept)));
        assert_eq!(take(&mut given, 4).await, ["a poison b", "a", "poison b", "poison"]);
        put(&dynamo, "events", "c").await;
        assert_eq!(take(&mut given, 2).await, ["b", "c"]);
        running.abort();

        let objects = buckets.list("lost").expect("a bucket");
        assert_eq!(objects.len(), 1);
        let object = buckets.get("lost", &objects[0].key).expect("an object");
        let object: Value = serde_json::from_slice(&object).expect("JSON");
        assert_eq!(object["requestContext"]["condition"], "RetryAttemptsExhausted");
        assert_eq!(object["DDBStreamBatchInfo"]["batchSize"], 1);
        assert_eq!(object["DDBStreamBatchInfo"]["streamArn"], stream_arn(&dynamo));
        let payload: Value =
            serde_json::from_str(object["payload"].as_str().expect("text")).expect("JSON");
        assert_eq!(payload["Records"][0]["dynamodb"]["NewImage"]["id"]["S"], "poison");
    }

    fn stream_arn(dynamo: &Embedded) -> String {
        dynamo.stream("events").expect("a stream").arn().to_owned()
    }
}
