//! `ringfence import` into the logs of single streams and of Propulsion's index, and `ringfence aggregates list`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use ringfence_aggregate_log::{
    AggregateKey, AggregateTable, NewAggregateEvent, PushPlace, legacy_table_layout,
};
use ringfence_aws::Clock;
use ringfence_harness::NodeProgram;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::logs::customer;
use crate::world::{AGGREGATES, DOCUMENTS, INDEX, World};

/// A table of Castore's older layout.
const LEGACY: &str = "castore-customers";
const IMPORT: [&str; 6] = ["import", "--from", "castore-legacy", LEGACY, "--context", "customers"];
/// Propulsion's index.
const PROPULSION: &str = "propulsion";

static EQUINOX: NodeProgram = NodeProgram::new(
    "the import of Propulsion's index",
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/compat/document-log/tests/equinox"),
    concat!(env!("CARGO_TARGET_TMPDIR"), "/equinox"),
);

/// The stack, and another table with customers in the older layout.
async fn world() -> (World, AggregateTable) {
    let world = World::start().await;
    world.dynamo.create_table(&legacy_table_layout().properties(), LEGACY).unwrap();
    let (client, clock) = (world.client.clone(), Clock::system());
    let legacy = AggregateTable::legacy(client, LEGACY, "customers", clock).unwrap();
    for (n, id) in (0..).zip(["ada", "bob", "ada"]) {
        push(&legacy, id, "CustomerRenamed", json!({ "name": id }), n).await;
    }
    (world, legacy)
}

/// The address of the store, which is too busy for the first puts.
async fn busy_store(world: &World, puts: usize) -> String {
    let (store, left) = (world.dynamo.endpoint().to_owned(), Arc::new(AtomicUsize::new(puts)));
    let answer = move |headers: HeaderMap, body: Bytes| {
        let is_put = headers["x-amz-target"].as_bytes().ends_with(b".PutItem");
        let less = |left: usize| left.checked_sub(1);
        let is_busy = || left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_ok();
        let is_refused = is_put && is_busy();
        let request = reqwest::Client::new().post(&store).headers(headers).body(body);
        async move {
            if is_refused {
                let said = br#"{"__type":"com.amazonaws.dynamodb.v20120810#ThrottlingException"}"#;
                return (StatusCode::BAD_REQUEST, Bytes::from_static(said));
            }
            let answer = request.send().await.unwrap();
            (answer.status(), answer.bytes().await.unwrap())
        }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(answer)).await });
    format!("http://{address}")
}

async fn push(table: &AggregateTable, id: &str, event_type: &str, payload: Value, seconds: u64) {
    let event = NewAggregateEvent {
        event_type: event_type.to_owned(),
        payload: Some(payload),
        metadata: None,
        timestamp_ms: Some(1_719_100_800_000 + seconds * 1_000),
    };
    let key = AggregateKey::new("customers", id).unwrap();
    table.push_event(&key, PushPlace::End, event).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_of_castores_older_layout_is_imported_once() {
    let (world, legacy) = world().await;
    let dry = world.run(&[&IMPORT[..], &["--dry-run"]].concat());
    assert_eq!(dry, (0, "3 events can be imported\n".to_owned()));
    let list = |more: &[&str]| {
        world.run(&[&["aggregates", "list", "--context", "customers"], more].concat())
    };
    assert_eq!(list(&[]), (0, "0 aggregates\n".to_owned()));
    // The import waits for a table that is busy for longer than a request is sent again.
    let busy = busy_store(&world, 30).await;
    let output = world.command(&IMPORT).env("AWS_ENDPOINT_URL_DYNAMODB", busy).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said, "3 imported, 0 were there before\n", "{output:?}");
    push(&legacy, "eve", "CustomerRenamed", json!({ "name": "Eve" }), 9).await;
    let said = world.run(&IMPORT);
    assert_eq!(said, (0, "1 imported, 3 were there before\n".to_owned()));
    let in_order = "4 events, 3 aggregates: all in order\n".to_owned();
    assert_eq!(world.run(&["aggregates", "verify"]), (0, in_order));

    // Both tables list the same.
    let (ada, bob) = ("2024-06-23T00:00:00.000Z  ada\n", "2024-06-23T00:00:01.000Z  bob\n");
    let eve = "2024-06-23T00:00:09.000Z  eve\n";
    for table in [AGGREGATES, LEGACY] {
        let table = ["--aggregate-table", table];
        assert_eq!(list(&table), (0, format!("{ada}{bob}{eve}3 aggregates\n")));
        let two = list(&[&table[..], &["--reverse", "--limit", "2"]].concat());
        assert_eq!(two, (0, format!("{eve}{bob}2 aggregates\n")));
        let after = ["--after", "2024-06-23T00:00:01.000Z", "--before", "2024-06-23T00:00:02.000Z"];
        assert_eq!(list(&[&table[..], &after].concat()), (0, format!("{bob}1 aggregates\n")));
        // The same time in another time zone.
        let before = ["--before", "2024-06-23T01:00:00+01:00"];
        assert_eq!(list(&[&table[..], &before].concat()), (0, format!("{ada}1 aggregates\n")));
    }
    let said = world.error(&["aggregates", "list", "--context", "customer"]);
    let expected =
        "this build has no context customer on the aggregate log: its contexts are customers";
    assert_eq!(said, format!("error: {expected}\n"));
    let said = world.error(&["aggregates", "list", "--context", "a", "--after", "yesterday"]);
    assert!(said.contains("must be a time of RFC 3339 from 1970 to 9999, such as"), "{said}");
    let said = world.error(&["aggregates", "list", "--context", "a", "--aggregate-table", INDEX]);
    assert!(said.starts_with(&format!("error: {INDEX} is the table of a document log")), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn events_that_do_not_fit_the_context_are_named_and_nothing_is_written() {
    let (world, legacy) = world().await;
    push(&legacy, "eve", "CustomerLost", json!({}), 3).await;
    let (status, said) = world.run(&IMPORT);
    let expected = "broken    item customers#eve 1: the context customers has no event type CustomerLost\n\
                    1 events can't be imported, and nothing is written\n";
    assert_eq!((status, &*said), (1, expected));
    assert_eq!(world.run(&["aggregates", "verify"]).1, "0 events, 0 aggregates: all in order\n");
    // Another event has the place of one.
    let client = world.client.clone();
    let other = "castore-other";
    world.dynamo.create_table(&legacy_table_layout().properties(), other).unwrap();
    let second = AggregateTable::legacy(client, other, "customers", Clock::system()).unwrap();
    push(&second, "ada", "CustomerRenamed", json!({ "name": "Ada" }), 0).await;
    customer(&world, "ada", &[1]).await;
    let said =
        world.error(&["import", "--from", "castore-legacy", other, "--context", "customers"]);
    assert!(said.starts_with("error: conflict: customers#ada has an event of version 1"), "{said}");
    let said = world.run(&["tables", "check", "--aggregate-table", LEGACY]).1;
    let way = format!("ringfence import --from castore-legacy {LEGACY} --context STORE");
    assert!(said.contains(&way), "{said}");
    let said =
        world.error(&["import", "--from", "castore-legacy", AGGREGATES, "--context", "customers"]);
    assert!(said.contains("is the table of an aggregate log"), "{said}");
    let said = world.error(&["import", "--from", "castore-legacy", LEGACY, "--context", "carts"]);
    let expected =
        "this build has no context carts on the aggregate log: its contexts are customers";
    assert_eq!(said, format!("error: {expected}\n"));
    let said = world.error(&["import", "--from", "castore-legacy", LEGACY]);
    assert!(said.contains("name the context whose events the table has: --context"), "{said}");
}

/// The order of the index: the stream and the slot of each entry.
fn order(world: &World) -> Vec<String> {
    let (_, printed) = world.run(&["tail", "--from", "start", "--until-present", "--json"]);
    let ids = printed.lines().map(|line| {
        let line: Value = serde_json::from_str(line).unwrap();
        line["id"].as_str().unwrap().to_owned()
    });
    ids.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_order_of_propulsions_index_is_imported() {
    let world = World::start().await;
    let keys = ringfence_document_log::table_layout().properties();
    world.dynamo.create_table(&keys, PROPULSION).unwrap();
    let endpoint = ("ENDPOINT", world.dynamo.endpoint());
    let environment = [endpoint, ("TABLE", DOCUMENTS), ("INDEX", PROPULSION)];
    let Some(mut original) = EQUINOX.start(&environment).await else { return };
    let limits = json!({ "maxEvents": 2 });
    let checked_out = |items: u32| json!({ "type": "CheckedOut", "data": { "items": items } });
    for (id, events) in [("a", 2), ("b", 1), ("a", 1), ("c", 2)] {
        let events: Vec<_> = (0..events).map(checked_out).collect();
        let command = json!({ "category": "carts", "id": id, "tip": limits, "events": events });
        original.call("transact", command).await;
    }
    // Batches as an indexer gets them: one repeats earlier events, and there are epochs of two batches.
    let span = |id: &str, i: u64, n: usize| json!({ "p": format!("carts-{id}"), "i": i, "c": vec!["CheckedOut"; n] });
    for spans in [
        vec![span("b", 0, 1)],
        vec![span("a", 0, 2), span("b", 0, 1)],
        vec![span("c", 0, 2), span("a", 2, 1)],
    ] {
        original.call("ingest", json!({ "spans": spans, "epoch": 2 })).await;
    }
    let import = ["import", "--from", "propulsion-index", PROPULSION];
    let dry = world.run(&[&import[..], &["--dry-run"]].concat());
    assert_eq!(dry, (0, "6 events can be imported\n".to_owned()));
    assert!(order(&world).is_empty());
    assert_eq!(world.run(&import), (0, "6 imported, 0 were there before\n".to_owned()));
    let places = order(&world);
    assert_eq!(places[..3], ["carts-b/0", "carts-a/0", "carts-a/1"]);
    let mut last = places[3..].to_vec();
    last.sort();
    assert_eq!(last, ["carts-a/2", "carts-c/0", "carts-c/1"]);
    assert_eq!(world.run(&import), (0, "0 imported, 6 were there before\n".to_owned()));
    assert_eq!(world.run(&["index", "verify"]).0, 0);

    // The type in Propulsion's index differs from the type in the stream.
    let spans = json!([{ "p": "carts-d", "i": 0, "c": ["ItemLost"] }]);
    original.call("ingest", json!({ "spans": spans, "epoch": 2 })).await;
    let command = json!({ "category": "carts", "id": "d", "events": [checked_out(1)] });
    original.call("transact", command).await;
    let (status, said) = world.run(&import);
    let expected = "broken    carts-d/0: Propulsion has indexed the type ItemLost, and the event has another\n\
                    1 events can't be imported, and nothing is written\n";
    assert_eq!((status, &*said), (1, expected));
    let said = world.error(&[
        "import",
        "--from",
        "propulsion-index",
        PROPULSION,
        "--index-table",
        PROPULSION,
    ]);
    assert!(
        said.contains("propulsion is an index of Propulsion; see `ringfence import`"),
        "{said}"
    );
    let said = world.error(&["import", "--from", "propulsion-index", INDEX]);
    assert!(said.contains("index is an index of all events"), "{said}");
}
