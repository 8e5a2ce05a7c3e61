//! Outages of the destinations of the streams' readers. The functions' own code runs here, on the mappings of the
//! template; only the process around it is missing.

use std::{
    error::Error,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::{FutureExt, future::BoxFuture};
use ringfence_aws::{
    Clock,
    wire::{Director, Fault, Wire},
};
use ringfence_dcb_log::DcbLog;
use ringfence_feed::Indexer;
use ringfence_lambda::{DeadLetters, delivered};
use ringfence_local::{
    buckets::Buckets,
    destinations::Destinations,
    embedded::Embedded,
    invoke::{Invoke, InvokeError},
    notices::Notices,
    queues::Queues,
    stream::Poller,
    template::{Mapping, Model},
};
use ringfence_services::topic::{Bus, Publisher, TopicEntry, Unreachable, Verdict};
use serde_json::Value;
use tokio::time::Instant;

use crate::{LONG_AGO_MS, model, readers, start, table, write_everything};

/// How long the outage takes.
const OUTAGE: Duration = Duration::from_secs(300);
/// The time that an invocation keeps for its answer.
const REPORT_TIME: Duration = Duration::from_secs(2);
/// The number of events from `write_everything`.
const EVENTS: usize = 6;

/// An outage of the index, the bus or the queue of dead letters that ends by itself.
#[derive(Clone, Copy)]
struct Outage(Instant);

impl Outage {
    fn lasts(self) -> bool {
        Instant::now() < self.0
    }
}

impl Director for Outage {
    fn faults(&self, operation: &str, _: &Value) -> Vec<Fault> {
        let throttled = self.lasts() && operation == "TransactWriteItems";
        throttled.then(|| Fault::error("ThrottlingException")).into_iter().collect()
    }

    fn carried_out(&self, _: &str, _: &Value, _: u16) {}
}

/// A bus that throttles, and records its events.
#[derive(Clone)]
struct Topic(Outage, Arc<Mutex<Vec<String>>>);

impl Bus for Topic {
    fn put<'a>(
        &'a self,
        entries: &'a [&'a TopicEntry],
    ) -> BoxFuture<'a, Result<Vec<Verdict>, Unreachable>> {
        let verdict = |entry: &&TopicEntry| match self.0.lasts() {
            true => Verdict::Later("ThrottlingException".to_owned()),
            false => {
                self.1.lock().unwrap().push(entry.id.clone());
                Verdict::Sent
            }
        };
        let verdicts = entries.iter().map(verdict).collect();
        async move { Ok(verdicts) }.boxed()
    }
}

/// A queue of dead letters that must stay empty.
struct NoDeadLetters;

impl DeadLetters for NoDeadLetters {
    fn keep(&self, dead_letter: Value) -> BoxFuture<'_, Result<(), Box<dyn Error + Send + Sync>>> {
        panic!("a dead letter: {dead_letter}")
    }
}

/// The two functions that read the stream.
struct Functions {
    indexer: Indexer,
    publisher: Publisher<Topic, NoDeadLetters>,
    timeout: Duration,
    deliveries: Mutex<u32>,
}

impl Invoke for Functions {
    async fn invoke(&self, function: &str, payload: &Value) -> Result<Value, InvokeError> {
        *self.deliveries.lock().unwrap() += 1;
        let (records, time) = (payload["Records"].as_array().unwrap(), self.timeout - REPORT_TIME);
        let failed_from = match function {
            "index-events" => {
                ringfence_feed::index_events::index(
                    &self.publisher.sources,
                    &self.indexer,
                    &NoDeadLetters,
                    records,
                    time,
                )
                .await
                .failed_from
            }
            _ => self.publisher.publish(records, time).await.failed_from,
        };
        Ok(delivered(failed_from))
    }
}

fn functions(model: &Model, dynamo: &Embedded, mapping: &Mapping, outage: Outage) -> Functions {
    let (wire, engine) = (Wire::default(), dynamo.engine());
    wire.direct(Arc::new(outage));
    let client =
        wire.client_of(Arc::new(move |operation: &str, body: &[u8]| engine.call(operation, body)));
    let (events, index) = (table(model, "EventTable"), table(model, "IndexTable"));
    let (sources, catalog) = stack::stack().logs();
    let log = DcbLog::new(client.clone(), &events.name, catalog.clone(), Clock::fixed(LONG_AGO_MS));
    let function = model.functions.iter().find(|f| f.binary == mapping.function).unwrap();
    Functions {
        indexer: Indexer::new([log.into()], client, &index.name),
        publisher: Publisher {
            bus: Topic(outage, Arc::default()),
            dead_letters: NoDeadLetters,
            sources,
            catalog,
        },
        timeout: function.timeout,
        deliveries: Mutex::default(),
    }
}

#[tokio::test]
async fn no_event_is_lost_when_everything_is_throttled_for_five_minutes() {
    let model = model();
    let events = table(&model, "EventTable");
    let (dynamo, client) = start(events).await;
    let index = table(&model, "IndexTable");
    dynamo.create_table(&index.properties, &index.name).unwrap();
    write_everything(&client, &events.name).await;
    // From here on nothing waits for real time.
    tokio::time::pause();
    for mapping in readers(&model, events) {
        let function = &mapping.function;
        let outage = Outage(Instant::now() + OUTAGE);
        let functions = Arc::new(functions(&model, &dynamo, mapping, outage));
        let folder = tempfile::tempdir().unwrap();
        let buckets = Buckets::new(folder.path().to_owned(), model.buckets.clone());
        let poller = Poller {
            mapping: mapping.clone(),
            stream: dynamo.stream(&events.name).unwrap(),
            functions: functions.clone(),
            destinations: Destinations { queues: Queues::default(), buckets: buckets.clone() },
            notices: Notices::default(),
        };
        let running = tokio::spawn(poller.run());
        tokio::time::sleep(2 * OUTAGE).await;
        running.abort();

        assert_eq!(*functions.deliveries.lock().unwrap(), 1, "{function} waits for the end");
        let bucket = mapping.on_failure.as_ref().unwrap().rsplit(':').next().unwrap();
        assert!(buckets.list(bucket).unwrap().is_empty(), "{function} gave something up");
        let done = match function.as_str() {
            "index-events" => {
                let items = dynamo.items(&index.name).unwrap();
                items.iter().filter_map(|page| page["e"]["L"].as_array()).map(Vec::len).sum()
            }
            _ => functions.publisher.bus.1.lock().unwrap().len(),
        };
        assert_eq!(done, EVENTS, "{function}");
    }
}
