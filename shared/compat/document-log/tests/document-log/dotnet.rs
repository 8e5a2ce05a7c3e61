//! Tips in the form of the original for .NET, Equinox.DynamoStore 4. According to its source, it leaves out empty
//! lists, and the number of an encoding that is 0. Bodies have the form of FsCodec 3, according to its source: a union
//! is an object whose `case` names it, an option without a value is null, and Brotli has the settings of .NET's
//! `Optimal`. The packages themselves do not run here.

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use futures::TryStreamExt;
use ringfence_aws::Item;
use ringfence_core::{Consistency, Envelope};
use ringfence_document_log::{
    AccessStrategy, Batch, Body, Cache, Direction, Encoding, Payload, Pruned, Span, StreamAppend,
    StreamAppended, TimelineEvent,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::basket::{Event, State, add, added, baskets, rolling, snapshot, state};
use crate::contract::events;
use crate::stack::{Stack, TABLE, log, name};

fn text(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

fn number(number: u64) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

fn map<const N: usize>(attributes: [(&str, AttributeValue); N]) -> Item {
    attributes.map(|(name, value)| (name.to_owned(), value)).into()
}

/// The type of an event, and the event without it.
fn written(event: &Event) -> (AttributeValue, Item) {
    let (event_type, data) = event.stored();
    let time = text("2024-06-23T02:00:00.0000000+02:00");
    let data = AttributeValue::B(Blob::new(data.expect("a payload").to_string()));
    (text(&event_type), map([("t", time), ("d", data)]))
}

/// A Tip with these events and this unfold.
fn tip(version: u64, appended: u64, events: &[Event], unfold: Option<&Event>) -> Item {
    let mut item = map([
        ("p", text("Basket-x")),
        ("i", AttributeValue::N(i32::MAX.to_string())),
        ("n", number(version)),
        ("a", number(appended)),
        ("b", number(0)),
        ("etag", text("0f8fad5bd9cb469fa16570867728950e")),
    ]);
    let (types, events): (Vec<_>, Vec<_>) = events.iter().map(written).unzip();
    let unfolds = unfold.map(|unfold| {
        let (event_type, mut unfold) = written(unfold);
        unfold.extend(map([("i", number(version)), ("c", event_type)]));
        unfold
    });
    let maps = |items: Vec<Item>| items.into_iter().map(AttributeValue::M).collect();
    for (name, list) in [("c", types), ("e", maps(events)), ("u", maps(Vec::from_iter(unfolds)))] {
        if !list.is_empty() {
            item.insert(name.to_owned(), AttributeValue::L(list));
        }
    }
    item
}

async fn with(item: Item) -> Stack {
    let stack = Stack::start().await;
    let put = stack.client.put_item().table_name(TABLE).set_item(Some(item));
    put.send().await.expect("a put");
    stack
}

/// A state with this many things.
fn things(count: u32) -> Event {
    Event::Snapshot { items: [(1, count)].into(), closed: false }
}

/// Adds one thing. Returns the new number of things, and the stream's version.
async fn one_more(stack: &Stack, access: fn() -> AccessStrategy<State>) -> (u32, u64) {
    let category = baskets(log(stack.store()), access(), Cache::none());
    let version = add(&category, "x", 9).await;
    let report = category.log().verify(&name("x"), &Envelope::default()).await;
    let report = report.expect("an answer");
    assert_eq!((report.version, report.problems), (version, vec![]));
    (state(&category, "x").await.total(), version)
}

#[tokio::test]
async fn a_tip_of_unfolds_alone_is_read_and_appended_to() {
    for (access, expected) in [
        (snapshot as fn() -> AccessStrategy<State>, (8, 1)),
        (rolling, (8, 0)),
        // Without unfolds the stream is empty.
        (|| AccessStrategy::Unoptimized, (1, 1)),
    ] {
        let stack = with(tip(0, 0, &[], Some(&things(7)))).await;
        assert_eq!(one_more(&stack, access).await, expected);
    }
}

#[tokio::test]
async fn a_tip_whose_events_are_all_pruned_is_read_and_appended_to() {
    // A trim by the original does not change the count of the last append.
    let pruned = tip(5, 2, &[], Some(&things(7)));
    assert_eq!(Span::of_image(pruned.clone()).expect("a Tip"), None);
    for (access, expected) in
        [(snapshot as fn() -> AccessStrategy<State>, (8, 6)), (rolling, (8, 5))]
    {
        let stack = with(pruned.clone()).await;
        assert_eq!(one_more(&stack, access).await, expected);
        let (log, envelope) = (log(stack.store()), Envelope::default());
        let done = log.prune(&name("x"), 5, &envelope).await.expect("pruned");
        assert_eq!(done, Pruned { deleted: 0, deferred: 0, first: 5 });
    }
}

#[tokio::test]
async fn a_tip_without_events_takes_unfolds_and_a_trimmed_tip_is_a_conflict() {
    let stack = with(tip(5, 2, &[], None)).await;
    let (log, stream, envelope) = (log(stack.store()), name("x"), Envelope::default());
    let append = async |known: &Batch, new: std::ops::Range<u64>| {
        let unfolds = vec![Payload::new("Snapshot", Some(Value::from(1)))];
        let (known, events) = (Some(known), events(new));
        let append = StreamAppend {
            stream: &stream,
            known,
            by_etag: false,
            events,
            unfolds,
            envelope: &envelope,
        };
        log.append(append).await.expect("it is settled")
    };
    let known = log.tip(&stream, Consistency::Strong, &envelope).await.expect("an answer");
    let known = known.expect("a Tip");
    let StreamAppended::Written(unfolded) = append(&known, 5..5).await else {
        panic!("a conflict")
    };
    let StreamAppended::Written(appended) = append(&unfolded, 5..6).await else {
        panic!("a conflict")
    };
    assert_eq!((appended.version, appended.base()), (6, 5));
    // As if the event had been trimmed away.
    let trimmed = Batch { events: vec![], ..appended };
    assert!(matches!(append(&trimmed, 6..7).await, StreamAppended::Conflict(Some(_))));
}

#[tokio::test]
async fn a_tip_without_unfolds_is_read_and_appended_to() {
    let first = [added(1), added(2)];
    let image = tip(2, 2, &first, None);
    let span = Span::of_image(image.clone()).expect("a Tip").expect("an append");
    assert_eq!((span.index, span.events.len()), (0, 2));
    let fed = span.events[0].fed(&span.stream).expect("readable");
    assert_eq!(fed.recorded_at(), "2024-06-23T00:00:00.000Z");
    let stack = with(image).await;
    assert_eq!(one_more(&stack, || AccessStrategy::Unoptimized).await, (3, 3));
    let (log, stream, envelope) = (log(stack.store()), name("x"), Envelope::default());
    let read = log.read(&stream, 0..9, Direction::Forward, Consistency::Strong, &envelope);
    let read: Vec<TimelineEvent> = read.try_collect().await.expect("whole");
    let skus = read.iter().map(|recorded| recorded.event.data.json().expect("JSON"));
    let skus: Vec<_> = skus.map(|data| data.expect("a payload")["sku"].clone()).collect();
    assert_eq!(skus, [json!(1), json!(2), json!(9)]);
}

/// The content of [`PACKED`], in the form of System.Text.Json.
const ORDER_PAID: &str = r#"{"orderId":"7","paidBy":{"case":"Card","number":"4242","holder":"Jørgen + Ada"},"tips":[{"case":"Cash"},{"case":"Cash"},{"case":"Card","number":"4242","holder":"Ada"}],"note":null}"#;
/// Packed by the reference implementation of Brotli, which .NET uses, with quality 4 and a window of 22 bits.
const PACKED: &str = "1bb40000049e9e6da6cafb954be0d78004a19aceb5f6f579c0c5877879ee54f123c1c618d239365ec437fbf0bf7440f1\
    110eed72889fe89bbe3d8f28497b1a10ce911614c7722c84c57e33649efd7fa779dc19a6110d2d5fe1b23c9cd15ce29e\
    177c05a104ea500abbfd654477d7cde60b";

/// An event with unions, as a program in Rust declares it.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct OrderPaid {
    order_id: String,
    paid_by: Payment,
    tips: Vec<Payment>,
    note: Option<String>,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(tag = "case")]
enum Payment {
    Cash,
    #[serde(rename_all = "camelCase")]
    Card {
        number: String,
        holder: String,
    },
}

#[tokio::test]
async fn brotli_and_unions_of_dotnet_are_read_and_our_brotli_has_the_same_number() {
    let bytes = (0..PACKED.len()).step_by(2).map(|n| u8::from_str_radix(&PACKED[n..n + 2], 16));
    let bytes = bytes.collect::<Result<Vec<u8>, _>>().expect("hexadecimal digits");
    let mut item = tip(1, 1, &[added(1)], None);
    let mut event = map([("t", text("2024-06-23T02:00:00.0000000+02:00"))]);
    event.extend(map([("d", AttributeValue::B(Blob::new(bytes))), ("D", number(2))]));
    item.insert("c".to_owned(), AttributeValue::L(vec![text("OrderPaid")]));
    item.insert("e".to_owned(), AttributeValue::L(vec![AttributeValue::M(event)]));
    let span = Span::of_image(item).expect("a Tip").expect("an append");
    let body = &span.events[0].event.data;
    assert_eq!(body.unpacked().expect("it unpacks"), ORDER_PAID.as_bytes());
    let json = body.json().expect("JSON").expect("a payload");
    let card =
        |holder: &str| Payment::Card { number: "4242".to_owned(), holder: holder.to_owned() };
    let expected = OrderPaid {
        order_id: "7".to_owned(),
        paid_by: card("Jørgen + Ada"),
        tips: vec![Payment::Cash, Payment::Cash, card("Ada")],
        note: None,
    };
    assert_eq!(serde_json::from_value::<OrderPaid>(json).expect("its shape"), expected);
    // This crate stores the number with which .NET unpacks Brotli.
    let ours = Body::of_bytes(ORDER_PAID.into(), Encoding::Brotli);
    assert_eq!((ours.encoding, ours.bytes.len() < ORDER_PAID.len()), (2, true));
}
