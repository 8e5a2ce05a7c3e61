//! `verify` names the faults of a stream's items, and readers refuse a hole.

use aws_sdk_dynamodb::types::AttributeValue;
use futures::TryStreamExt;
use ringfence_aws::wire::Fault;
use ringfence_core::Envelope;
use ringfence_document_log::{
    Batch, Direction, DocumentError, DocumentLog, Expect, Head, Store, StreamDefect, TipChange,
    Write,
};

use crate::contract::{append, read, written};
use crate::on_both;
use crate::stack::{Stack, TABLE, events_max, log, name};

on_both![
    a_hole_is_named_and_not_skipped,
    misplaced_and_spoiled_items_are_named,
    streams_are_listed,
    a_stream_without_a_tip_is_listed
];

/// Writes four calves of two events each, and a Tip of one event. Returns the Tip.
async fn nine<S: Store>(store: S) -> Batch {
    let log = log(store).with_limits(events_max(2));
    let mut tip = None;
    for n in 0..9 {
        tip = Some(written(append(&log, tip.as_ref(), n..n + 1).await));
    }
    tip.expect("nine events")
}

/// The streams of the table. All of its items must be readable.
async fn listed<S: Store>(log: &DocumentLog<S>) -> Vec<Head> {
    let envelope = Envelope::default();
    let listed: Vec<_> = log.streams(&envelope).try_collect().await.expect("a list");
    listed.into_iter().collect::<Result<_, _>>().expect("items of streams")
}

async fn problems<S: Store>(store: S) -> Vec<StreamDefect> {
    log(store).verify(&name("a"), &Envelope::default()).await.expect("an answer").problems
}

async fn a_hole_is_named_and_not_skipped<S: Store + Clone>(store: S) {
    nine(store.clone()).await;
    assert_eq!(problems(store.clone()).await, []);
    store.delete(&name("a"), 4).await.expect("deleted");
    let found = problems(store.clone()).await;
    assert_eq!(found[0], StreamDefect::Hole { from: 4, to: 6 });
    assert_eq!(found[0].to_string(), "events 4 to 5 are missing");
    assert!(matches!(found[1], StreamDefect::CalvedBytes { .. }), "{found:?}");
    let log = log(store);
    for direction in [Direction::Forward, Direction::Backward] {
        let error = read(&log, 0..9, direction).await.expect_err("a hole");
        assert!(matches!(error, DocumentError::Hole { from: 4, to: 6, .. }), "{error:?}");
        assert_eq!(read(&log, 7..9, direction).await.expect("behind it").len(), 2);
        assert_eq!(read(&log, 1..4, direction).await.expect("before it").len(), 3);
    }
}

async fn misplaced_and_spoiled_items_are_named<S: Store + Clone>(store: S) {
    let tip = nine(store.clone()).await;
    // A calf at a wrong key, with events that another calf has too.
    let calf = Batch { key: 5, version: 5, etag: None, ..tip.clone() };
    let etag = Some("spoiled".to_owned());
    let spoiled = Batch { calved_bytes: 1, appended: 99, etag, ..tip.clone() };
    let write = Write {
        calf: Some(calf),
        change: TipChange::Replace,
        expect: Expect::Etag(tip.etag.clone().expect("an etag")),
        tip: spoiled,
    };
    store.write(&write).await.expect("it is written");
    let found = problems(store.clone()).await;
    assert!(found.contains(&StreamDefect::Overlap { from: 4 }), "{found:?}");
    assert!(found.contains(&StreamDefect::Key { key: 5, base: 4 }), "{found:?}");
    assert!(found.contains(&StreamDefect::Appended { appended: 99, version: 9 }), "{found:?}");
    let bytes =
        |problem: &StreamDefect| matches!(problem, StreamDefect::CalvedBytes { said: 1, .. });
    assert!(found.iter().any(bytes), "{found:?}");
}

async fn streams_are_listed<S: Store>(store: S) {
    let (log, envelope) = (log(store), Envelope::default());
    let events = || crate::contract::events(0..1);
    for id in ["a", "b", "c"] {
        let stream = name(id);
        let append = ringfence_document_log::StreamAppend {
            stream: &stream,
            known: None,
            by_etag: false,
            events: events(),
            unfolds: vec![],
            envelope: &envelope,
        };
        log.append(append).await.expect("it is settled");
    }
    let mut streams = listed(&log).await;
    streams.sort_by(|a, b| a.stream.cmp(&b.stream));
    let version = events().len() as u64;
    assert_eq!(streams, ["a", "b", "c"].map(|id| Head { stream: name(id), first: 0, version }));
}

async fn a_stream_without_a_tip_is_listed<S: Store + Clone>(store: S) {
    nine(store.clone()).await;
    store.delete(&name("a"), i64::from(i32::MAX)).await.expect("deleted");
    assert_eq!(problems(store.clone()).await, [StreamDefect::NoTip]);
    let log = log(store);
    let streams = listed(&log).await;
    assert_eq!(streams, [Head { stream: name("a"), first: 0, version: 8 }]);
}

#[tokio::test]
async fn a_stream_on_many_pages_is_listed_once() {
    let stack = Stack::start().await;
    nine(stack.store()).await;
    for page in 0..5 {
        stack.wire.inject("Scan", page, Fault::page(1));
    }
    let log = log(stack.store());
    let streams = listed(&log).await;
    assert_eq!(streams, [Head { stream: name("a"), first: 0, version: 9 }]);
    let scans = stack.operations().iter().filter(|operation| *operation == "Scan").count();
    assert!(scans >= 5, "{scans} pages");
}

#[tokio::test]
async fn an_item_of_no_stream_is_listed_beside_the_streams() {
    let stack = Stack::start().await;
    nine(stack.store()).await;
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let number = |number: u64| AttributeValue::N(number.to_string());
    for (stream, version) in [("nothing", number(1)), ("Basket-b", text("1"))] {
        let put = stack.client.put_item().table_name(TABLE).item("p", text(stream));
        put.item("i", number(0)).item("n", version).send().await.expect("a put");
    }
    // It is listed even if a page ends after it.
    for page in 0..8 {
        stack.wire.inject("Scan", page, Fault::page(1));
    }
    let (log, envelope) = (log(stack.store()), Envelope::default());
    let (mut heads, mut odd) = (Vec::new(), Vec::new());
    for listed in log.streams(&envelope).try_collect::<Vec<_>>().await.expect("a list") {
        match listed {
            Ok(head) => heads.push(head),
            Err(item) => odd.push((item.stream().to_owned(), item.to_string())),
        }
    }
    assert_eq!(heads, [Head { stream: name("a"), first: 0, version: 9 }]);
    // A replica might lack a stream that was written before.
    let scans = stack.take().into_iter().filter(|sent| sent.operation == "Scan");
    let strong: Vec<_> = scans.map(|sent| sent.request["ConsistentRead"] == true).collect();
    assert!(strong.len() > 1 && !strong.contains(&false), "{strong:?}");
    odd.sort();
    let said = [
        ("Basket-b", "attribute n of item Basket-b is not an integer"),
        (
            "nothing",
            r#"item nothing does not belong to a stream: stream name "nothing" has no id; write <category>-<id>"#,
        ),
    ];
    assert_eq!(odd, said.map(|(stream, said)| (stream.to_owned(), said.to_owned())));
}
