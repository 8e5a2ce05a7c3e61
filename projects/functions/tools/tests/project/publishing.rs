//! Local projects that become projects of a stack.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use ringfence_harness::bound;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;

use crate::local::{fails, local, works};
use crate::world::World;

/// The parts of a line that do not depend on the place in the index or in the file.
fn contents(lines: &[Value]) -> Vec<Value> {
    let mut contents: Vec<Value> = lines
        .iter()
        .map(|line| {
            let mut line = line.clone();
            for of_file in ["checkpoint", "rest", "sum"] {
                line.as_object_mut().unwrap().remove(of_file);
            }
            line
        })
        .collect();
    contents.sort_by_key(|line| line["timestamp"].to_string());
    contents
}

#[tokio::test(flavor = "multi_thread")]
async fn a_published_project_has_the_same_events_and_its_file_is_a_copy() {
    let world = World::start().await;
    let primary = local(&world);
    works(&primary);
    let before = primary.lines("events.jsonl");
    let torn = primary.text("events.jsonl") + "{\"agent_id";
    fs::write(primary.path("events.jsonl"), torn).unwrap();
    let published = primary.runs(&["publish"]);
    published.ends(0);
    assert_eq!(primary.text("events.jsonl.torn"), "{\"agent_id\n");
    let expected = "6 imported, 0 were there before\nthe index has 0 of them by now: `ringfence project pull` brings the rest\n";
    assert_eq!(published.stdout, expected);
    world.indexes(&before).await;
    primary.pulls();
    assert_eq!(contents(&primary.lines("events.jsonl")), contents(&before));
    assert_eq!(primary.lines("events.jsonl")[0]["rest"], Value::Null);
    // It goes on in the stack.
    works(&primary);
    assert_eq!(world.requests().last().unwrap(), "converge-edge");
    fails(&primary.runs(&["publish"]), "shop is not local");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_that_stays_local_is_published_again_and_again() {
    let world = World::start().await;
    let primary = local(&world);
    let publish = |expected: &str| {
        let published = primary.runs(&["publish", "--stay-local"]);
        assert_eq!((published.status, &*published.stdout), (0, expected), "{}", published.stderr);
    };
    publish("3 imported, 0 were there before\n");
    works(&primary);
    publish("3 imported, 3 were there before\n");
    publish("0 imported, 6 were there before\n");
    works(&primary);
    assert_eq!(world.requests(), [""; 0], "it is decided here");
    // At last it becomes one of the stack.
    let lines = primary.lines("events.jsonl");
    primary.runs(&["publish"]).ends(0);
    world.indexes(&lines).await;
    primary.pulls();
    assert_eq!(contents(&primary.lines("events.jsonl")), contents(&lines));
    works(&primary);
    assert_eq!(world.requests().last().unwrap(), "converge-edge");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_lies_in_the_future_is_not_published() {
    let world = World::start().await;
    let primary = local(&world);
    let time = primary.lines("events.jsonl")[2]["timestamp"].as_str().unwrap().to_owned();
    let later = primary.text("events.jsonl").replace(&time, "2999-01-01T00:00:00.000Z");
    let summed = later.lines().map(|line| {
        let (object, _) = line.rsplit_once(",\"sum\"").unwrap();
        let sum =
            Sha256::digest(object)[..8].iter().map(|it| format!("{it:02x}")).collect::<String>();
        format!("{object},\"sum\":\"{sum}\"}}\n")
    });
    let later: String = summed.collect();
    fs::write(primary.path("events.jsonl"), &later).unwrap();
    let refused = primary.runs(&["publish"]);
    fails(
        &refused,
        "nothing is imported: feature:shop%2FREQ-F-SEARCH-001/1: its time lies in the future",
    );
    assert_eq!(primary.text("events.jsonl"), later);
    // Nothing is in the way of another project of the name.
    world.single();
}

/// A DynamoDB that answers this many requests and refuses all later ones. `takes_effect` says whether the first refused
/// request takes effect all the same.
async fn breaking(dynamo: String, answered: usize, takes_effect: bool) -> String {
    let requests = Arc::new(AtomicUsize::new(0));
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let forward = async move |mut headers: HeaderMap, body: Bytes| {
        headers.remove("host");
        let number = requests.fetch_add(1, Ordering::SeqCst);
        let refused = json!({ "__type": "com.amazon.coral.service#AccessDeniedException" });
        let refused = (StatusCode::BAD_REQUEST, Bytes::from(refused.to_string()));
        if number > answered || number == answered && !takes_effect {
            return refused;
        }
        let answer = http.post(&dynamo).headers(headers).body(body).send().await.unwrap();
        let status = answer.status();
        let answer = (status, answer.bytes().await.unwrap());
        if number == answered { refused } else { answer }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new().fallback(forward);
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}")
}

/// Publishings that end at a request, which takes effect or does not: at the first one, and then at every `step`-th.
async fn ends_at_requests(takes_effect: bool, step: usize) {
    let first = World::start().await;
    let primary = local(&first);
    works(&primary);
    let text = primary.text("events.jsonl");
    let lines = primary.lines("events.jsonl");
    let mut ended = 0;
    loop {
        let world = World::start().await;
        let primary = world.agent("primary");
        fs::create_dir_all(primary.path("")).unwrap();
        fs::write(primary.path("events.jsonl"), &text).unwrap();
        let dynamo = breaking(world.dynamo().to_owned(), ended, takes_effect).await;
        if primary.runs_on_dynamo(&dynamo, &["publish"]).status == 0 {
            break;
        }
        assert_eq!(primary.text("events.jsonl"), text, "it is the log until all are there");
        let published = primary.runs(&["publish"]);
        published.ends(0);
        let counts =
            published.stdout.split([' ', ',']).filter_map(|word| word.parse::<usize>().ok());
        assert_eq!(counts.take(2).sum::<usize>(), lines.len(), "{}", published.stdout);
        world.indexes(&lines).await;
        let reader = world.agent("reader");
        reader.pulls();
        assert_eq!(contents(&reader.lines("events.jsonl")), contents(&lines));
        ended += step;
    }
    assert!(ended > lines.len(), "{ended}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_publishing_that_ends_at_any_request_is_repeated_and_adds_each_event_once() {
    ends_at_requests(false, bound(5, 1)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_publishing_that_ends_after_any_request_is_repeated_and_adds_each_event_once() {
    // The table is the same as if the next request had not arrived.
    ends_at_requests(true, bound(12, 1)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_published_over_another_project_of_the_name() {
    let world = World::start().await;
    world.single();
    let primary = local(&world);
    let text = primary.text("events.jsonl");
    let refused = primary.runs(&["publish"]);
    fails(&refused, "nothing is written: the stack has an event project:shop/1 that is not");
    assert_eq!(primary.text("events.jsonl"), text);
    let reader = world.agent("reader");
    reader.pulls();
    assert_eq!(reader.types(), ["project_initialized", "feature_created", "feature_created"]);
    // Nor if the file goes on from a common beginning: two copies of one local project.
    let (one, other) =
        (World::start().await, json!({ "project": "shop", "sha256": "0a".repeat(32) }));
    let first = local(&one);
    let second = one.agent("primary");
    fs::create_dir_all(second.path("")).unwrap();
    fs::copy(first.path("events.jsonl"), second.path("events.jsonl")).unwrap();
    for (agent, note) in [(&first, "first"), (&second, "second")] {
        let mut checkpoint = other.clone();
        (checkpoint["uri"], checkpoint["note"]) = (json!("s3://files"), json!(note));
        agent.does("create-checkpoint", &checkpoint).ends(0);
    }
    first.runs(&["publish"]).ends(0);
    fails(&second.runs(&["publish"]), "nothing is written: the stack has an event checkpoint:shop");
}
