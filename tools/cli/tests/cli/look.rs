//! `explain`, `boundary` and `stats`.

use std::fs;
use std::process::Output;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::http::HeaderMap;
use axum::routing::post;
use ringfence_aws::Clock;
use ringfence_core::{Envelope, events, kit::id};
use ringfence_document_log::StreamName;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::logs::{cart, customer};
use crate::world::{QUEUE, World};
use ringfence_programs::shop::{OrderPlaced, ParcelPacked, ProductAdded};

const PACK: &str = r#"{"orderId":"o1","parcelId":"p1","sealIds":["s1","s2"]}"#;

fn explain(world: &World, data: &str) -> (i32, Value) {
    world.json(&["explain", "catalog/pack-parcel", "--data", data])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_is_explained_and_nothing_is_written() {
    let world = World::start().await;
    let (status, explained) = explain(&world, PACK);
    assert_eq!(status, 0);
    let boundaries = |explained: &Value| {
        let reads = explained["reads"].as_array().unwrap().iter();
        reads.map(|read| format!("{}: {}", read["boundary"], read["seen"])).collect::<Vec<_>>()
    };
    let none = [
        r#""orderId+parcelId:o1/p1": "nothing""#,
        r#""sealId:s1": "0 ParcelPacked""#,
        r#""sealId:s2": "0 ParcelPacked""#,
    ];
    assert_eq!(boundaries(&explained), none);
    let written = json!([{
        "type": "ParcelPacked", "partition": "orderId+parcelId:o1/p1", "slot": 1,
        "data": { "orderId": "o1", "parcelId": "p1", "sealIds": ["s1", "s2"] },
    }]);
    assert_eq!(
        explained["answer"],
        json!({ "accepted": true, "repeated": false, "events": written })
    );
    // The event, its two copies, and the fences of the seals.
    assert_eq!(explained["writes"].as_array().unwrap().len(), 5);
    assert_eq!(
        explained["cost"],
        json!({
            "readRequests": 3, "readUnits": 1.5, "writeRequests": 1, "writeUnits": 10.0,
        })
    );
    assert_eq!(world.records().len(), 0, "nothing is written");

    assert_eq!((explained.get("principal"), explained.get("by")), (None, None));

    let (order_id, parcel_id) = (id("o1"), id("p1"));
    let packed = events![ParcelPacked { order_id, parcel_id, seal_ids: vec![id("s1")] }];
    let by_older = [("principal".to_owned(), json!("ada"))];
    world.append_with(packed, std::collections::BTreeMap::from(by_older).try_into().unwrap()).await;
    let (status, explained) = explain(&world, PACK);
    assert_eq!(
        (status, &explained["answer"]["rejection"]),
        (1, &json!({ "code": "AlreadyPacked" }))
    );
    let rests_on = json!([{
        "id": "orderId+parcelId:o1/p1/1", "type": "ParcelPacked",
        "origin": "slice not recorded for ada",
    }]);
    assert_eq!((&explained["events"], &explained["writes"]), (&rests_on, &json!([])));
    let (_, text) = world.run(&["explain", "catalog/pack-parcel", "--data", PACK]);
    for line in [
        "ParcelPacked: slice not recorded for ada",
        "It is rejected: the parcel is packed",
        "sealId:s1\n",
        "Writes nothing.",
    ] {
        assert!(text.contains(line), "{text}");
    }
    let command: Value = serde_json::from_str(PACK).unwrap();
    let (principal, claims) = ("ada", json!({ "iss": "https://id.example.com", "sub": "ada" }));
    let direct = json!({ "command": command, "principal": principal }).to_string();
    let (_, text) = world.run(&["explain", "catalog/pack-parcel", "--data", &direct]);
    assert!(text.starts_with("catalog/pack-parcel, on the DCB log, for direct:ada\n"), "{text}");
    let http = json!({
        "requestContext": { "http": { "method": "POST" }, "authorizer": { "jwt": { "claims": claims } } },
        "body": PACK,
    });
    let issuers = "main=https://id.example.com";
    let data = http.to_string();
    let flags = ["explain", "catalog/pack-parcel", "--data", &data, "--jwt-issuers", issuers];
    assert_eq!(world.json(&flags).1["principal"], "jwt:main:ada");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_explanation_that_fails_names_the_reason() {
    let world = World::start().await;
    let of = |slice: &str, data: &str| world.error(&["explain", slice, "--data", data]);
    let error = of("catalog/pack-parcels", PACK);
    assert!(error.contains("did you mean catalog/pack-parcel?"), "{error}");
    let error = of("catalog/pack-parcel", r#"{"orderId":"o1","sealIds":[]}"#);
    assert!(error.contains("parcelId: is missing"), "{error}");
    let mut command = world.command(&["explain", "catalog/pack-parcel", "--data", PACK]);
    let output = command.env_remove("EVENT_TABLE").output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(
        error.contains("it is on the DCB log: name its table with --table or --stack"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_boundary_shows_its_events_its_length_and_the_slices_that_depend_on_it() {
    let world = World::start().await;
    let order = || OrderPlaced { order_id: id("o1") };
    world.append(events![order()]).await;
    world.append(events![order()]).await;
    let (status, look) = world.json(&["boundary", "orderId:o1", "--limit", "1"]);
    assert_eq!((status, &look["boundaries"]), (0, &json!({ "orderId:o1": { "nextSlot": 3 } })));
    let events = look["events"].as_array().unwrap();
    assert_eq!((events.len(), &events[0]["id"]), (1, &json!("orderId:o1/2")));
    assert_eq!((&look["slices"], look.get("conflicts")), (&json!([]), None));

    let (_, look) = world.json(&["boundary", "sealId:s1"]);
    assert_eq!(look["slices"], json!(["catalog/pack-parcel"]));
    let (_, look) = world.json(&["boundary", "orderId:o1", "parcelId:p1"]);
    let (_, named) = world.json(&["boundary", "orderId+parcelId:o1/p1"]);
    assert_eq!(named, look);
    assert_eq!(look["boundaries"], json!({ "orderId+parcelId:o1/p1": { "nextSlot": 1 } }));

    customer(&world, "ada#1", &[1, 2]).await;
    let (_, look) = world.json(&["boundary", "customers#ada#1"]);
    assert_eq!(look["boundaries"], json!({ "customers#ada#1": { "nextSlot": 3 } }));
    cart(&world, "c1", 3).await;
    let (_, look) = world.json(&["boundary", "carts-c1"]);
    assert_eq!(look["boundaries"], json!({ "carts-c1": { "nextSlot": 3 } }));
    assert_eq!(look["events"].as_array().unwrap().len(), 3);
    let stream = StreamName::new("carts", "c1").unwrap();
    world.documents().prune(&stream, 2, &Envelope::default()).await.unwrap();
    let (_, look) = world.json(&["boundary", "carts-c1"]);
    assert_eq!(look["boundaries"], json!({ "carts-c1": { "nextSlot": 3 } }));
    assert_eq!(look["events"].as_array().unwrap().len(), 1);

    for (name, why) in [
        ("colour:red", "no read returns an event by colour"),
        ("orderId:", "tag orderId is empty"),
        (
            "parcelId:p1",
            "a partition of ParcelPacked has 2 tags: give each, orderId:… parcelId:…, or the name of the partition, \
             orderId+parcelId:…/…",
        ),
        ("$type:OrderPlaced", "no decision reads this type alone"),
        (
            "mug",
            "\"mug\" is neither a tag, KEY:VALUE such as productId:p-1, nor the name of a stream: ",
        ),
    ] {
        let error = world.error(&["boundary", name]);
        assert!(error.contains(why), "{name}: {error}");
    }
    let error = world.error(&["boundary", "a:1", "b"]);
    assert!(error.contains("\"b\" is not a tag: a tag is KEY:VALUE"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_output_has_characters_that_control_a_terminal() {
    let hostile = "\u{9b}31m\u{202e}\u{1b}\n1 done";
    let world = World::start().await;
    let (product_id, name) = (id("p1"), hostile.to_owned());
    let added = ProductAdded { product_id, name, description: String::new() };
    let event = world.append(events![added]).await.remove(0);
    world.index(&[&event.partition]).await;
    let dead_letter = json!({ "cause": hostile, "partition": "productId:p1" });
    world.queues.send(QUEUE, dead_letter.to_string()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let line = json!({
        "timestamp": ringfence_core::rfc3339(Clock::system().now_ms()), "slice": hostile, "outcome": "accepted",
        "attempts": 1, "conflicts": [hostile], "duration_ms": 5, "requests": 4, "read_units": 1, "write_units": 1,
    });
    fs::write(folder.path().join("a.log"), format!("{line}\n")).unwrap();
    let (queue, logs) = (world.queue_url(), folder.path().to_str().unwrap());
    let commands: [&[&str]; 4] = [
        &["boundary", "productId:p1"],
        &["tail", "--from", "start", "--until-present"],
        &["redrive", "--dry-run", "--queue", &queue],
        &["stats", "--logs", logs],
    ];
    for command in commands {
        for json in [&[][..], &["--json"]] {
            let (_, printed) = world.run(&[command, json].concat());
            let raw = |c: char| c != '\n' && (c.is_control() || c == '\u{202e}');
            assert!(!printed.contains(raw), "{command:?}: {printed:?}");
            assert!(printed.contains(r"\u009b31m\u202e\u001b"), "{command:?}: {printed}");
            assert!(!printed.lines().any(|line| line.starts_with("1 done")), "{printed}");
        }
    }
    let (_, look) = world.json(commands[0]);
    assert_eq!(look["events"][0]["data"]["name"], hostile, "it is the same JSON");
    let error = world.error(&["boundary", &format!("a{hostile}"), "b:c"]);
    assert!(!error.contains(['\u{9b}', '\u{202e}', '\u{1b}']), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn conflicts_are_counted_from_the_command_lines() {
    let world = World::start().await;
    let folder = tempfile::tempdir().unwrap();
    let now = ringfence_core::rfc3339(Clock::system().now_ms());
    let line = |at: &str, conflicts: &[&str]| {
        json!({
            "timestamp": at, "slice": "pack-parcel", "outcome": "accepted", "attempts": 2,
            "conflicts": conflicts, "duration_ms": 5, "requests": 4, "read_units": 1.5,
            "write_units": 8.0, "command_id": "c-1", "level": "INFO",
        })
    };
    let old = line("2024-06-23T00:00:00.000Z", &["sealId:old"]);
    let new = line(&now, &["sealId:s1", "sealId:s1"]);
    let log = format!("{old}\nanother line\n{new}\n{{\"timestamp\":\"torn");
    fs::write(folder.path().join("pack-parcel.log"), log).unwrap();
    let logs = folder.path().to_str().unwrap();

    let (status, stats) = world.json(&["stats", "--logs", logs]);
    assert_eq!(status, 0);
    let of = &stats["slices"]["pack-parcel"];
    assert_eq!(
        (&of["commands"], &of["conflicts"], &of["writeUnits"]),
        (&json!(1), &json!(2), &json!(8.0))
    );
    assert_eq!(stats["conflicts"][0]["boundary"], "sealId:s1");
    let (_, text) = world.run(&["stats", "--logs", logs, "--since", "1d"]);
    assert!(text.contains(".......................2      2 sealId:s1"), "{text}");

    let (_, look) = world.json(&["boundary", "sealId:s1", "--logs", logs]);
    let met = look["conflicts"].as_array().unwrap();
    assert_eq!((met.len(), &met[0]["slice"]), (2, &json!("pack-parcel")));

    let error = world.error(&["stats"]);
    assert!(error.contains("name the log group with --log-group"), "{error}");
    assert!(world.error(&["stats", "--logs", "/nowhere"]).contains("in /nowhere"));
}

/// CloudWatch Logs with these pages, each but the last with a link to the next. Also the requests that it got.
async fn log_group(pages: Vec<Vec<String>>) -> (String, Arc<Mutex<Vec<Value>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let requests = asked.clone();
    let give = move |headers: HeaderMap, body: String| {
        assert_eq!(headers["x-amz-target"], "Logs_20140328.FilterLogEvents");
        let request: Value = serde_json::from_str(&body).unwrap();
        let page = request["nextToken"].as_str().map_or(0, |token| token.parse().unwrap());
        requests.lock().unwrap().push(request);
        let events: Value = pages[page].iter().map(|line| json!({ "message": line })).collect();
        let next = (page + 1 < pages.len()).then(|| (page + 1).to_string());
        async move { json!({ "events": events, "nextToken": next }).to_string() }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().route("/", post(give));
    tokio::spawn(async move { axum::serve(listener, router).await });
    (url, asked)
}

#[tokio::test(flavor = "multi_thread")]
async fn command_lines_are_read_from_all_pages_of_a_log_group() {
    let world = World::start().await;
    let now = Clock::system().now_ms();
    let line = |slice: &str, conflicts: &[&str]| {
        json!({
            "timestamp": ringfence_core::rfc3339(now - 1_000), "slice": slice, "outcome": "accepted", "attempts": 2,
            "conflicts": conflicts, "duration_ms": 5, "requests": 4, "read_units": 1.5, "write_units": 8.0,
        })
        .to_string()
    };
    // CloudWatch Logs can answer with an empty page before the last one.
    let pages = vec![
        vec![line("pack-parcel", &["sealId:s1"]), "no line of a command".to_owned()],
        vec![],
        vec![line("add-product", &[])],
    ];
    let (url, asked) = log_group(pages).await;
    let mut command = world.command(&["stats", "--log-group", "shop", "--since", "15m", "--json"]);
    let Output { stdout, stderr, .. } =
        command.env("AWS_ENDPOINT_URL_CLOUDWATCH_LOGS", url).output().unwrap();
    let stats: Value = serde_json::from_slice(&stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&stderr)));
    let slices = stats["slices"].as_object().unwrap();
    assert_eq!(slices.keys().collect::<Vec<_>>(), ["add-product", "pack-parcel"]);
    assert_eq!(slices["pack-parcel"]["retries"], 1);
    assert_eq!(stats["conflicts"][0]["boundary"], "sealId:s1");
    let asked = asked.lock().unwrap();
    assert_eq!(asked.len(), 3);
    for request in asked.iter() {
        assert_eq!(request["logGroupName"], "shop");
        assert_eq!(request["filterPattern"], "{ $.slice = * && $.attempts >= 0 }");
        assert!(request["startTime"].as_u64().unwrap() >= now - 15 * 60_000);
    }
}
