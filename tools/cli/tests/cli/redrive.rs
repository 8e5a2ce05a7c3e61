use std::collections::VecDeque;
use std::fs;
use std::process::Output;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use ringfence_feed::{Index, Until};
use ringfence_local::queues::MessageOrder;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::world::{BUCKET, COMMANDS, INDEX, QUEUE, World};

/// The bus event of a stream record's image.
fn bus_event(record: &Value, order: &str) -> Value {
    let image = &record["dynamodb"]["NewImage"];
    json!({
        "version": "0",
        "id": "of the bus",
        "source": "catalog",
        "detail-type": "ProductDemandRecorded",
        "detail": {
            "id": format!("{}/{}", image["id"]["S"], image["position"]["N"]),
            "slot": 1,
            "recordedAt": "2024-06-23T00:00:00.000Z",
            "data": { "orderId": order },
        },
    })
}

fn orders(events: &[Arc<Value>]) -> Vec<&str> {
    events.iter().map(|event| event["detail"]["data"]["orderId"].as_str().unwrap()).collect()
}

/// A record of an event whose item lacks attributes.
fn poison() -> Value {
    json!({ "eventID": "1", "eventName": "INSERT", "awsRegion": "eu-central-1", "dynamodb": {
        "Keys": { "id": { "S": "productId:p9" } },
        "NewImage": { "id": { "S": "productId:p9" }, "event": { "S": "X" } },
        "SizeBytes": 1,
    }})
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_that_succeed_are_deleted_and_the_others_stay() {
    let mut world = World::start().await;
    for order in ["o1", "o2"] {
        world.demand("p1", order).await;
    }
    let records = world.records();
    let image = &records[1]["dynamodb"]["NewImage"];
    let key = json!({ "id": image["id"], "position": image["position"] });
    let dead_letters = [
        json!({ "cause": "the bus refuses the entry", "record": records[0] }),
        json!({ "cause": "too large", "key": key, "sequenceNumber": "7" }),
        json!({ "cause": "not an event", "record": poison() }),
        json!({ "cause": "counts differ", "partition": "productId:p1" }),
        bus_event(&records[0], "o3"),
        json!({
            "requestContext": { "condition": "RetriesExhausted" },
            "responsePayload": { "errorMessage": "no table" },
            "requestPayload": bus_event(&records[0], "o4"),
        }),
        json!("hello"),
        refused_by_the_bus(&records[0]),
        json!({ "cause": "throttled", "queued": queued("c-1"), "tries": 8, "firstFailed": "2024-06-23T00:00:00.000Z" }),
        // SQS has moved it here.
        queued("c-2"),
    ];
    for dead_letter in &dead_letters {
        world.queues.send(QUEUE, dead_letter.to_string()).unwrap();
    }
    let url = world.queue_url();
    let redrive = ["redrive", "--queue", &url];
    let (status, printed) = world.run(&redrive);
    assert_eq!(status, 1, "{printed}");
    let lines: Vec<_> = printed.lines().collect();
    assert_eq!(lines.len(), 5, "{printed}");
    assert!(lines[0].starts_with("stays  "), "{printed}");
    assert!(lines[0].contains(": not an event: the item is not a complete event: "), "{printed}");
    assert!(lines[0].ends_with(" (kept: not an event)"), "{printed}");
    assert!(
        lines[1].contains("the message is neither a dead letter of this stack nor"),
        "{printed}"
    );
    assert!(lines[2].contains(": NotAuthorizedForSourceException: "), "{printed}");
    assert_eq!(lines[3], "3 done, 4 sent again, 3 left");
    assert!(
        lines[4].ends_with(
            "comes back as a new dead letter, under a new name: look again with --dry-run."
        ),
        "{printed}"
    );

    let messages = world.queues.messages();
    let left: Vec<_> = messages[QUEUE].iter().map(|m| m.body.clone()).collect();
    assert_eq!(left, [2, 6, 7].map(|n: usize| dead_letters[n].to_string()));
    let delete = ["redrive", "--queue", &url, "--delete"];
    let nothing = world.error(&[&delete[..], &["x", "--why", "a test"]].concat());
    assert!(nothing.contains("there is no dead letter x: --dry-run shows the names"), "{nothing}");
    let hello = [&*messages[QUEUE][1].message_id, "--why", "a test"];
    assert_eq!(world.run(&[&delete[..], &hello].concat()), (0, String::new()));
    assert_eq!(world.queues.messages()[QUEUE].len(), 2);
    let commands = &world.queues.messages()[COMMANDS];
    for (message, expected) in commands.iter().zip([queued("c-1"), queued("c-2")]) {
        assert_eq!(serde_json::from_str::<Value>(&message.body).unwrap(), expected);
        assert_eq!(message.group.as_deref(), Some("roomId:r1"));
    }
    assert_eq!(commands.len(), 2);
    // A FIFO queue deletes only a message that its receiver hides.
    let fifo = url.replace(QUEUE, COMMANDS);
    let delete = ["redrive", "--queue", &fifo, "--why", "a test", "--delete"];
    for left in [1, 0] {
        let name = &*world.queues.messages()[COMMANDS][left].message_id;
        assert_eq!(world.run(&[&delete[..], &[name]].concat()), (0, String::new()));
        assert_eq!(world.queues.messages()[COMMANDS].len(), left);
    }
    let events = world.on_the_bus();
    assert_eq!(orders(&events), ["o1", "o2", "o3", "o4"]);
    assert_eq!(events[0]["source"], "catalog");
    assert_eq!(events[0]["detail"].get("replay"), None);
    assert_eq!(Index::new(world.client.clone(), INDEX, []).end().await.map(i64::from).unwrap(), 2);
}

/// A command in the form of the queue.
fn queued(id: &str) -> Value {
    json!({ "slice": "rooms/book", "commandId": id, "group": "roomId:r1", "command": { "roomId": "r1" } })
}

/// An event that the bus refuses.
fn refused_by_the_bus(record: &Value) -> Value {
    let mut event = bus_event(record, "o5");
    event["source"] = "aws.other".into();
    event
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_letter_that_comes_back_stays_and_has_a_history() {
    let mut world = World::start().await;
    world.demand("p1", "o1").await;
    let failed = |event: Value, at: &str| {
        json!({
            "timestamp": at,
            "requestContext": {
                "functionArn": "arn:aws:lambda:eu-west-1:1:function:PlaceOrder:$LATEST",
                "condition": "RetriesExhausted", "approximateInvokeCount": 3,
            },
            "requestPayload": event,
        })
    };
    let event = bus_event(&world.records()[0], "o1");
    world.queues.send(QUEUE, failed(event, "2024-06-23T00:00:01.000Z").to_string()).unwrap();
    let url = world.queue_url();
    let (status, done) = world.json(&["redrive", "--queue", &url]);
    assert_eq!((status, &done["done"], &done["sent"]), (0, &json!(0), &json!(1)), "{done}");

    // The function fails again, as often as before, also while a redrive works.
    let mut again = json!({});
    for (n, expected) in [(1, 3), (2, 6)] {
        let sent = Value::clone(&world.on_the_bus()[0]);
        assert_eq!(sent["detail"]["data"], json!({ "orderId": "o1" }));
        let history = json!({ "firstFailed": "2024-06-23T00:00:01.000Z", "tries": expected });
        assert_eq!(sent["detail"]["redriven"], json!({ "PlaceOrder": history }));
        again = failed(sent, "2024-06-23T00:00:02.000Z");
        world.queues.send(QUEUE, again.to_string()).unwrap();
        if n == 1 {
            let (_, shown) = world.run(&["redrive", "--dry-run", "--queue", &url]);
            let history = " of function PlaceOrder, tried 6 times, failed first at 2024-06-23T00:00:01.000Z: ";
            assert!(shown.contains(history), "{shown}");
            let (status, _) = world.run(&["redrive", "--queue", &url]);
            assert_eq!(status, 0);
        }
    }
    let mut event = again["requestPayload"].clone();
    event["detail"]["redriven"]["PlaceOrder"]["tries"] = 9.into();
    world.queues.send(QUEUE, failed(event, "2024-06-23T00:00:03.000Z").to_string()).unwrap();
    let (status, done) = world.json(&["redrive", "--queue", &url]);
    assert_eq!(
        (status, &done["sent"], &done["left"][0]["tries"]),
        (1, &json!(1), &json!(12)),
        "{done}"
    );
    let cause = "this run has sent it to the bus, and it has failed again";
    assert_eq!(done["left"][0]["cause"], cause);
    assert_eq!(world.on_the_bus().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_changes_nothing() {
    let mut world = World::start().await;
    world.demand("p1", "o1").await;
    let dead_letter = json!({ "cause": "why", "record": world.records()[0] });
    world.queues.send(QUEUE, dead_letter.to_string()).unwrap();
    let url = world.queue_url();
    // The second dry run shows the dead letter too.
    for _ in 0..2 {
        let (status, shown) = world.json(&["redrive", "--dry-run", "--queue", &url]);
        assert_eq!((status, &shown["done"]), (0, &json!(0)));
        assert_eq!(shown["left"][0]["kept"], "why");
        assert_eq!(shown["left"][0]["cause"], Value::Null);
    }
    assert!(world.on_the_bus().is_empty());
    assert_eq!(world.queues.messages()[QUEUE].len(), 1);
    let (status, printed) = world.run(&["redrive", "--queue", &url]);
    assert_eq!((status, &*printed), (0, "1 done, 0 left\n"));

    // Of a group it shows the first ones, in their order.
    for n in 0..12 {
        let id = format!("c-{n}");
        let order =
            MessageOrder { group: Some("roomId:r1".to_owned()), deduplication: Some(id.clone()) };
        world.queues.put(COMMANDS, queued(&id).to_string(), [].into(), order).unwrap();
    }
    let of_commands = format!("{}/0/{COMMANDS}", world.services);
    let ordered: Vec<_> =
        world.queues.messages()[COMMANDS].iter().map(|it| it.message_id.clone()).collect();
    let (_, shown) = world.json(&["redrive", "--dry-run", "--queue", &of_commands]);
    let names = shown["left"].as_array().unwrap().iter().map(|left| left["name"].as_str().unwrap());
    assert_eq!(names.collect::<Vec<_>>(), ordered[..10]);
    assert_eq!(shown["more"], 2, "{shown}");
    let (_, printed) = world.run(&["redrive", "--dry-run", "--queue", &of_commands]);
    let more = "more   2 may follow: SQS gives the later dead letters of a group only when the earlier ones are";
    assert!(printed.lines().nth(10).is_some_and(|line| line.starts_with(more)), "{printed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_letter_of_an_automation_is_shown_with_its_function_and_its_rule() {
    let world = World::start().await;
    world.demand("p1", "o1").await;
    let event = bus_event(&world.records()[0], "o1");
    let failed = json!({
        "requestContext": {
            "functionArn": "arn:aws:lambda:eu-west-1:1:function:PlaceOrder:$LATEST",
            "condition": "RetriesExhausted",
        },
        "requestPayload": event,
    });
    world.queues.send(QUEUE, failed.to_string()).unwrap();
    let attributes = [
        ("ERROR_CODE", "NO_PERMISSIONS"),
        ("RULE_ARN", "arn:aws:events:eu-west-1:1:rule/topic/DemandRule"),
        ("TARGET_ARN", "arn:aws:lambda:eu-west-1:1:function:RecordDemand"),
    ];
    let attributes = attributes.map(|(name, value)| (name.to_owned(), value.to_owned()));
    world.queues.send_with(QUEUE, event.to_string(), attributes.into()).unwrap();
    let (_, printed) = world.run(&["redrive", "--dry-run", "--queue", &world.queue_url()]);
    let lines: Vec<_> = printed.lines().collect();
    assert!(lines[0].ends_with(" of function PlaceOrder: RetriesExhausted"), "{printed}");
    let of_rule = " of function RecordDemand, rule DemandRule: NO_PERMISSIONS";
    assert!(lines[1].ends_with(of_rule), "{printed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_batches_are_published_or_indexed() {
    let mut world = World::start().await;
    for order in ["o1", "o2"] {
        world.demand("p1", order).await;
    }
    let records = world.records();
    let object = |records: &[Value]| {
        let payload = json!({ "Records": records }).to_string();
        json!({ "requestContext": { "condition": "EventAgeExceeded" }, "payload": payload })
    };
    let buckets = world.buckets.clone();
    let put = |key: &str, records: &[Value]| {
        buckets.put(BUCKET, key, object(records).to_string().as_bytes()).unwrap();
    };
    let keys = |world: &World| -> Vec<String> {
        world.buckets.list(BUCKET).unwrap().into_iter().map(|object| object.key).collect()
    };
    put("aws/a", &records[..1]);
    put("aws/b", &[poison(), records[1].clone()]);
    put("aws/c", &records);
    let redrive = ["redrive", "--bucket", BUCKET, "--to", "bus"];
    let (status, done) = world.json(&redrive);
    assert_eq!((status, &done["done"]), (1, &json!(2)));
    assert_eq!(done["left"][0]["name"], "aws/b");
    assert_eq!(done["left"][0]["kept"], "EventAgeExceeded");
    let cause = done["left"][0]["cause"].as_str().unwrap();
    assert!(cause.starts_with("not an event: the item is not a complete event: "), "{cause}");
    assert_eq!(keys(&world), ["aws/b"]);
    assert_eq!(orders(&world.on_the_bus()), ["o1", "o2", "o1", "o2"]);

    put("aws/b", &records);
    let (status, printed) = world.run(&["redrive", "--bucket", BUCKET, "--to", "index"]);
    assert_eq!((status, &*printed), (0, "1 done, 0 left\n"));
    assert!(keys(&world).is_empty() && world.on_the_bus().is_empty());
    let index = Index::new(world.client.clone(), INDEX, world.bodies());
    let entries = futures::TryStreamExt::try_collect::<Vec<_>>(
        index.read(ringfence_feed::Checkpoint::START, Until::Present),
    );
    assert_eq!(entries.await.unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_letter_stays_when_a_flag_that_it_needs_is_missing() {
    let world = World::start().await;
    let dead_letter = json!({ "cause": "why", "partition": "productId:p1" }).to_string();
    world.queues.send(QUEUE, dead_letter).unwrap();
    let url = world.queue_url();
    let mut redrive = world.command(&["redrive", "--queue", &url]);
    let printed = redrive.env_remove("INDEX_TABLE").output().unwrap().stdout;
    let printed = String::from_utf8(printed).unwrap();
    let missing = "this work needs the index: give --table and --index-table, or --stack";
    assert!(printed.contains(missing), "{printed}");
    assert_eq!(world.queues.messages()[QUEUE].len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stack_names_tables_bus_queues_and_buckets() {
    let mut world = World::start().await;
    for order in ["o1", "o2"] {
        world.demand("p1", order).await;
    }
    let records = world.records();
    let run = |world: &World, arguments: &[&str]| {
        let mut command = world.command(&[arguments, &["--stack", "ringfence-local"]].concat());
        // These belong to another stack, and are ignored.
        let variables = ["EVENT_TABLE", "INDEX_TABLE", "VIEW_TABLE", "EVENT_BUS"];
        let output = command.envs(variables.map(|name| (name, "of-another-stack"))).output();
        let output = output.unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.code().unwrap(), String::from_utf8(said).unwrap())
    };
    let index = json!({ "cause": "why", "partition": "productId:p1" });
    let publish = json!({ "cause": "why", "record": records[0] });
    for (name, dead_letter) in [("automations", index), ("Automations", publish)] {
        world.queues.send(QUEUE, dead_letter.to_string()).unwrap();
        let done = run(&world, &["redrive", "--queue", name]);
        assert_eq!(done, (0, "1 done, 0 left\n".to_owned()));
    }
    assert_eq!(orders(&world.on_the_bus()), ["o1"]);
    let payload = json!({ "Records": &records[1..] }).to_string();
    let object = json!({ "payload": payload }).to_string();
    world.buckets.put(BUCKET, "aws/a", object.as_bytes()).unwrap();
    let done = run(&world, &["redrive", "--bucket", "publish-events", "--to", "bus"]);
    assert_eq!(done, (0, "1 done, 0 left\n".to_owned()));
    assert_eq!(orders(&world.on_the_bus()), ["o2"]);

    let tail = ["tail", "--until-present", "--reader", "audit"];
    let (status, printed) = run(&world, &tail);
    assert_eq!((status, printed.lines().count()), (0, 2), "{printed}");
    // A flag takes precedence over the stack.
    let (status, said) = run(&world, &[&tail[..], &["--index-table", "nowhere"]].concat());
    assert!(status == 2 && said.contains("ResourceNotFoundException"), "{said}");
    let (status, said) = run(&world, &["redrive", "--queue", "add-product"]);
    assert!(status == 2 && said.contains("ringfence-local has these: Automations\n"), "{said}");
    let unknown = world.error(&["verify", "--stack", "shop"]);
    let expected = "error: reading the outputs of --stack shop: ";
    assert!(unknown.starts_with(expected) && unknown.contains("shop does not exist"), "{unknown}");
}

/// A queue that returns these messages, by their ids, one batch for each request, and deletes none.
async fn queue(batches: &[&[&str]]) -> String {
    let message = |id: &&str| json!({ "MessageId": id, "ReceiptHandle": id, "Body": "hello" });
    let batch = |ids: &&[&str]| json!({ "Messages": ids.iter().map(message).collect::<Value>() });
    let batches: VecDeque<Value> = batches.iter().map(batch).collect();
    let batches = Arc::new(Mutex::new(batches));
    let give = move |headers: HeaderMap| {
        let is_deletion = headers["x-amz-target"] == "AmazonSQS.DeleteMessage";
        let status = if is_deletion { StatusCode::FORBIDDEN } else { StatusCode::OK };
        let batch = batches.lock().unwrap().pop_front().unwrap_or_else(|| json!({}));
        async move { (status, batch.to_string()) }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().route("/", post(give));
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_that_stay_and_come_again_hide_no_others() {
    let world = World::start().await;
    let left = async |batches: &[&[&str]]| {
        let url = queue(batches).await;
        let mut command = world.command(&["redrive", "--queue", &url, "--json"]);
        let Output { stdout, .. } = command.env("AWS_ENDPOINT_URL_SQS", &url).output().unwrap();
        let printed: Value = serde_json::from_slice(&stdout).unwrap();
        let names = printed["left"].as_array().unwrap().iter();
        names.map(|left| left["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(left(&[&["a", "b"], &["a", "b"], &["c"], &["a"]]).await, "a b c");
    // It ends when all have been returned twice.
    assert_eq!(left(&[&["a"], &["a"], &["a"], &["late"]]).await, "a");

    let url = queue(&[&["a"]]).await;
    let mut delete = world.command(&["redrive", "--queue", &url, "--delete", "a", "--why", "w"]);
    let said = delete.env("AWS_ENDPOINT_URL_SQS", &url).output().unwrap().stderr;
    assert!(String::from_utf8(said).unwrap().contains("the message can't be deleted"));
    let kept = fs::read_to_string(world.folder.path().join("deleted-dead-letters.jsonl")).unwrap();
    assert!(kept.contains(r#""body":"hello""#), "it is kept before it is deleted: {kept}");
}
