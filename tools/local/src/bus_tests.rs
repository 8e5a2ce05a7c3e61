use std::{collections::BTreeMap, time::Duration};

use tokio::sync::broadcast::Receiver;

use super::*;
use crate::{
    buckets::Buckets,
    invoke::InvokeError,
    notices::Notice,
    pattern::Pattern,
    queues::{Message, Queues},
    template::{DeliveryTarget, FunctionResource, Retries},
};

/// A function that fails a given number of times and then answers. It records its payloads.
struct Fake {
    failures: Mutex<u32>,
    error: fn() -> InvokeError,
    given: tokio::sync::mpsc::UnboundedSender<(String, Value)>,
}

impl Invoke for Fake {
    async fn invoke(&self, function: &str, payload: &Value) -> Result<Value, InvokeError> {
        let _ = self.given.send((function.to_owned(), payload.clone()));
        let mut failures = self.failures.lock().expect("a lock");
        if *failures == 0 {
            return Ok(Value::Null);
        }
        *failures -= 1;
        Err((self.error)())
    }
}

fn failed() -> InvokeError {
    InvokeError::Function { function: "on-order".to_owned(), error: json!("broken") }
}

fn undelivered() -> InvokeError {
    InvokeError::Unknown { function: "on-order".to_owned() }
}

struct Setup {
    bus: Buses<Fake>,
    given: tokio::sync::mpsc::UnboundedReceiver<(String, Value)>,
    queues: Queues,
    topic: Receiver<Notice>,
}

fn arn(queue: &str) -> Option<String> {
    Some(format!("arn:aws:sqs:{REGION}:{ACCOUNT}:{queue}"))
}

fn start(failures: u32, error: fn() -> InvokeError) -> Setup {
    let retries = Retries { attempts_max: Some(1), age_max: None };
    let pattern = json!({ "source": ["ordering"], "detail-type": ["OrderPlaced"] });
    let model = Model {
        functions: vec![FunctionResource {
            id: "OnOrder".to_owned(),
            binary: "on-order".to_owned(),
            environment: BTreeMap::new(),
            timeout: Duration::from_secs(1),
            concurrency_max: None,
            memory_mb: 128,
            log_level: None,
            retries,
            on_failure: arn("failed"),
        }],
        buses: ["topic", "other"].map(str::to_owned).into(),
        rules: vec![Rule {
            name: "OnOrder".to_owned(),
            bus: "topic".to_owned(),
            pattern: Pattern::parse(&pattern).expect("a pattern"),
            targets: vec![DeliveryTarget {
                function: "on-order".to_owned(),
                retries,
                dead_letter_queue: arn("undelivered"),
            }],
        }],
        ..Model::default()
    };
    let queues = Queues::new(["failed".to_owned(), "undelivered".to_owned()]);
    let notices = Notices::default();
    let topic = notices.watch();
    let (sender, given) = tokio::sync::mpsc::unbounded_channel();
    let fake = Fake { failures: Mutex::new(failures), error, given: sender };
    let destinations = Destinations {
        queues: queues.clone(),
        buckets: Buckets::new("nowhere".into(), Vec::new()),
    };
    Setup { bus: Buses::new(&model, Arc::new(fake), destinations, notices), given, queues, topic }
}

fn entry(kind: &str) -> BusEntry {
    BusEntry {
        source: Some("ordering".to_owned()),
        detail_type: Some(kind.to_owned()),
        detail: Some("{\"id\":\"1\"}".to_owned()),
        event_bus_name: Some("topic".to_owned()),
        ..BusEntry::default()
    }
}

async fn finish(setup: &Setup) {
    let mut running = std::mem::take(&mut *setup.bus.running.lock().expect("a lock"));
    while running.join_next().await.is_some() {}
}

#[tokio::test(start_paused = true)]
async fn matching_target_gets_the_envelope() {
    let mut setup = start(0, failed);
    let at = BusEntry { time: Some(1_719_100_800.0), ..entry("OrderPlaced") };
    let id = setup.bus.put(at).expect("taken");
    setup.bus.put(entry("OrderCancelled")).expect("taken");
    let event_bus_name = Some("other".to_owned());
    setup.bus.put(BusEntry { event_bus_name, ..entry("OrderPlaced") }).expect("taken");
    finish(&setup).await;
    let (function, event) = setup.given.recv().await.expect("an event");
    assert_eq!(function, "on-order");
    assert_eq!(event["id"], id);
    assert_eq!(event["version"], "0");
    assert_eq!(event["source"], "ordering");
    assert_eq!(event["detail-type"], "OrderPlaced");
    assert_eq!(event["detail"], json!({ "id": "1" }));
    assert_eq!(event["time"], "2024-06-23T00:00:00Z");
    assert!(setup.given.is_empty(), "the other events match no rule of their bus");
    for kind in ["OrderPlaced", "OrderCancelled", "OrderPlaced"] {
        match setup.topic.recv().await.expect("a notice") {
            Notice::Event(event) => assert_eq!(event["detail-type"], kind),
            Notice::Mail(_) | Notice::Webhook(_) => {}
            Notice::Trouble(text) => panic!("{text}"),
        }
    }
}

/// The invocations, and the messages in queues, after `failures` failures of one kind.
async fn play(failures: u32, error: fn() -> InvokeError) -> (usize, usize, usize) {
    let setup = start(failures, error);
    setup.bus.put(entry("OrderPlaced")).expect("taken");
    finish(&setup).await;
    let queues = setup.queues.messages();
    (setup.given.len(), queues["failed"].len(), queues["undelivered"].len())
}

#[tokio::test(start_paused = true)]
async fn failed_function_is_retried_then_its_own_destination_is_used() {
    assert_eq!(play(1, failed).await, (2, 0, 0));
    assert_eq!(play(9, failed).await, (2, 1, 0));
}

#[tokio::test(start_paused = true)]
async fn undelivered_event_goes_to_the_rules_queue() {
    assert_eq!(play(1, undelivered).await, (2, 0, 0));
    assert_eq!(play(9, undelivered).await, (2, 0, 1));
}

/// The dead letter that is in `queue` after nine failures.
async fn dead_letter(error: fn() -> InvokeError, queue: &str) -> Message {
    let setup = start(9, error);
    setup.bus.put(entry("OrderPlaced")).expect("taken");
    finish(&setup).await;
    setup.queues.messages()[queue][0].clone()
}

#[tokio::test(start_paused = true)]
async fn a_dead_letter_names_its_function_and_an_undelivered_one_its_rule() {
    let here = format!("{REGION}:{ACCOUNT}");
    let function = format!("arn:aws:lambda:{here}:function:on-order");
    let Message { attributes, .. } = dead_letter(undelivered, "undelivered").await;
    let named: Vec<_> = attributes.iter().map(|(name, value)| (&**name, &**value)).collect();
    let expected = [
        ("ERROR_CODE", "NO_RESOURCE"),
        ("ERROR_MESSAGE", "there is no function on-order"),
        ("RULE_ARN", &*format!("arn:aws:events:{here}:rule/topic/OnOrder")),
        ("TARGET_ARN", &*function),
    ];
    assert_eq!(named, expected);
    let Message { body, attributes, .. } = dead_letter(failed, "failed").await;
    let record: Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!(record["requestContext"]["functionArn"], format!("{function}:$LATEST"));
    assert!(attributes.is_empty(), "{attributes:?}");
}

#[track_caller]
fn check_refused(entry: BusEntry, code: &str) {
    let setup = start(0, failed);
    let refused = setup.bus.put(entry).expect_err("a refusal");
    assert_eq!(refused.code, code, "{refused}");
    assert!(setup.given.is_empty() && setup.topic.is_empty());
}

#[tokio::test]
async fn bad_entries_are_refused() {
    let bad = || entry("OrderPlaced");
    check_refused(BusEntry { source: None, ..bad() }, "InvalidArgument");
    check_refused(BusEntry { detail_type: Some(String::new()), ..bad() }, "InvalidArgument");
    check_refused(BusEntry { detail: None, ..bad() }, "InvalidArgument");
    check_refused(BusEntry { event_bus_name: None, ..bad() }, "InvalidArgument");
    check_refused(BusEntry { detail: Some("{".to_owned()), ..bad() }, "MalformedDetail");
    check_refused(BusEntry { detail: Some("[]".to_owned()), ..bad() }, "MalformedDetail");
    let source = Some("aws.ec2".to_owned());
    check_refused(BusEntry { source, ..bad() }, "NotAuthorizedForSourceException");
}
