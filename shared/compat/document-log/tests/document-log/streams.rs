//! The appends in the images of the table's stream.

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use ringfence_aws::Item;
use ringfence_core::Envelope;
use ringfence_document_log::{Batch, Span, StreamAppend, StreamName};
use serde_json::Value;

use crate::basket::{add, baskets, rolling};
use crate::contract::{append, written};
use crate::stack::{Stack, events_max, log};

/// The item of an image in JSON.
pub(crate) fn image(json: &Value) -> Item {
    let attributes = json.as_object().expect("an item").iter();
    attributes.map(|(name, value)| (name.clone(), attribute(value))).collect()
}

fn attribute(json: &Value) -> AttributeValue {
    let (kind, value) = json.as_object().and_then(|a| a.iter().next()).expect("an attribute");
    let text = || value.as_str().expect("a text").to_owned();
    match kind.as_str() {
        "S" => AttributeValue::S(text()),
        "N" => AttributeValue::N(text()),
        "B" => AttributeValue::B(Blob::new(base64(&text()))),
        "L" => AttributeValue::L(value.as_array().expect("a list").iter().map(attribute).collect()),
        "M" => AttributeValue::M(image(value)),
        other => panic!("{other} is in no batch"),
    }
}

fn base64(text: &str) -> Vec<u8> {
    aws_smithy_types::base64::decode(text).expect("base64")
}

#[tokio::test]
async fn each_append_is_reported_once_in_order_with_its_events() {
    let stack = Stack::start().await;
    let log = log(stack.store()).with_limits(events_max(2));
    let mut stream = stack.stream();
    let mut tip = None;
    for range in [0..1, 1..2, 2..5, 5..6] {
        tip = Some(written(append(&log, tip.as_ref(), range).await));
    }
    let records = stream.read().expect("records");
    let images = records.iter().map(|record| image(&record["dynamodb"]["NewImage"]));
    let spans = images.filter_map(|image| Span::of_image(image).expect("a batch"));
    let spans: Vec<_> = spans
        .map(|span| (span.index, span.events.iter().map(|e| e.index).collect::<Vec<_>>()))
        .collect();
    assert_eq!(spans, [(0, vec![0]), (1, vec![1]), (2, vec![2, 3, 4]), (5, vec![5])]);
    assert!(records.len() > spans.len(), "the calves have records too");
}

#[tokio::test]
async fn unfolds_and_streams_of_systems_are_not_reported_as_appends() {
    let stack = Stack::start().await;
    let mut stream = stack.stream();
    add(&baskets(log(stack.store()), rolling(), crate::basket::some_cache()), "x", 1).await;
    let (internal, envelope) =
        (StreamName::new("$Index", "0").expect("a name"), Envelope::default());
    let append = StreamAppend {
        stream: &internal,
        known: None,
        by_etag: false,
        events: crate::contract::events(0..1),
        unfolds: vec![],
        envelope: &envelope,
    };
    log(stack.store()).append(append).await.expect("it is settled");
    let records = stream.read().expect("records");
    assert_eq!(records.len(), 2);
    for record in records {
        let span = Span::of_image(image(&record["dynamodb"]["NewImage"]));
        assert_eq!(span.expect("a batch"), None);
    }
}

#[tokio::test]
async fn an_append_whose_events_were_trimmed_is_not_reported() {
    let log = log(ringfence_document_log::MemoryStore::default());
    let tip = written(append(&log, None, 0..3).await);
    let trimmed = Batch { events: tip.events[3..].to_vec(), ..tip.clone() };
    assert_eq!(Span::of_image(trimmed.to_item()).expect("a batch"), None);
    let trimmed = Batch { events: tip.events[1..].to_vec(), ..tip };
    let span = Span::of_image(trimmed.to_item()).expect("a batch").expect("two are there");
    assert_eq!((span.index, span.events[0].index, span.events.len()), (1, 1, 2));
}

#[tokio::test]
async fn an_image_that_is_not_a_batch_is_an_error() {
    let error = Span::of_image(Item::new()).expect_err("it is empty");
    assert_eq!(error.to_string(), "attribute p of item  is not a string");
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let number = |number: &str| AttributeValue::N(number.to_owned());
    let item = [("p", text("A-1")), ("i", number("0")), ("n", text("1"))];
    let item = item.map(|(name, value)| (name.to_owned(), value)).into();
    let error = Span::of_image(item).expect_err("n is a text");
    assert_eq!(error.to_string(), "attribute n of item A-1 is not an integer");
    let list = AttributeValue::L(vec![text("X")]);
    let item = [("p", text("A-1")), ("i", number("0")), ("n", number("1")), ("c", list)];
    let item = item.map(|(name, value)| (name.to_owned(), value)).into();
    let error = Span::of_image(item).expect_err("no event for the type");
    assert_eq!(error.to_string(), "item A-1 has 1 types for 0 events");
}
