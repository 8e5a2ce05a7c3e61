//! Reads are complete and ordered, and return each event once, for every page size, projection and id.

use aws_sdk_dynamodb::types::AttributeValue;
use futures::TryStreamExt;
use ringfence_aws::wire::{Edit, Fault};
use ringfence_core::{
    Catalog, CatalogError, Consistency, Envelope, Event, EventLog, Extent, LogError, NewEvent,
    Plan, Query, QueryItem, Seen, SequencedEvent, Tag, events,
};
use serde_json::json;

use crate::stack::{NOW_MS, Stack, TABLE, append, committed, envelope};

/// A note on a page of a book: one partition, one tag that is read across partitions, one composite.
#[derive(Clone, Debug, PartialEq, Event)]
#[event(read_as_composite)]
pub(crate) struct Noted {
    #[tag(partition)]
    pub(crate) book_id: String,
    #[tag(cross_partition)]
    pub(crate) reader_id: String,
    pub(crate) note: String,
}

pub(crate) fn catalog() -> Result<Catalog, CatalogError> {
    Catalog::new("library", [Noted::SCHEMA])
}

pub(crate) fn noted(book: &str, reader: &str, note: &str) -> Noted {
    Noted { book_id: book.to_owned(), reader_id: reader.to_owned(), note: note.to_owned() }
}

/// One clause for each list of tags.
pub(crate) fn plan(stack: &Stack, clauses: &[&[(&'static str, &str)]]) -> Plan {
    plan_of(&stack.catalog, clauses)
}

pub(crate) fn plan_of(catalog: &Catalog, clauses: &[&[(&'static str, &str)]]) -> Plan {
    let items = clauses.iter().map(|tags| QueryItem {
        tags: tags.iter().map(|(key, value)| Tag::new(*key, *value)).collect(),
        types: vec!["Noted".into()],
    });
    Plan::new(&Query { items: items.collect() }, catalog).expect("a route for each clause")
}

pub(crate) async fn read(stack: &Stack, plan: &Plan) -> Result<Vec<SequencedEvent>, LogError> {
    stack.log().read(plan, Consistency::Eventual, &envelope()).try_collect().await
}

fn notes(events: &[SequencedEvent]) -> Vec<&str> {
    events.iter().map(|event| event.data["note"].as_str().expect("a note")).collect()
}

pub(crate) fn seen(plan: &Plan, events: &[SequencedEvent]) -> Seen {
    let mut seen = Seen::nothing(plan);
    for event in events {
        assert!(seen.observe(plan, event), "{event:?} is not the next one");
    }
    seen
}

#[tokio::test]
async fn appended_events_are_read_unchanged() {
    let stack = Stack::start(catalog()).await;
    let appended = stack.seed(events![noted("b", "r", "one"), noted("b", "", "two")]).await;
    // An effect is later than its cause, even if the clock of the cause's writer is ahead.
    let caused = Envelope { cause_ms: Some(NOW_MS + 30_000), ..envelope() };
    let effect = committed(append(&stack.log(), events![noted("b", "r", "three")], &caused).await);
    assert_eq!(effect[0].at, NOW_MS + 30_001);
    let read = read(&stack, &plan(&stack, &[&[("bookId", "b")]])).await;
    assert_eq!(read.expect("a read"), [appended, effect].concat());
    stack.check_fences().await;
}

#[tokio::test]
async fn clauses_are_merged_by_time_and_a_common_event_counts_once() {
    let stack = Stack::start(catalog()).await;
    for (book, reader, note) in [
        ("b1", "r1", "1"),
        ("b2", "r1", "2"),
        ("b1", "r2", "3"),
        ("b3", "r3", "4"),
        ("b1", "r1", "5"),
    ] {
        stack.seed(events![noted(book, reader, note)]).await;
    }
    let pair: &[_] = &[("bookId", "b3"), ("readerId", "r3")];
    let plan = plan(&stack, &[&[("bookId", "b1")], &[("readerId", "r1")], pair]);
    let read = read(&stack, &plan).await.expect("a read");
    assert_eq!(notes(&read), ["1", "2", "3", "4", "5"]);
    let seen = seen(&plan, &read);
    let extents = seen.iter().map(|(boundary, extent)| match extent {
        Extent::Prefix(prefix) => (boundary.as_str(), "slots", prefix.slot),
        Extent::Fence { counts, .. } => (boundary.as_str(), "counts", counts["Noted"]),
    });
    let expected = [
        ("bookId:b1", "slots", 3),
        ("bookId:b3#readerId:r3", "counts", 1),
        ("readerId:r1", "counts", 3),
    ];
    assert_eq!(extents.collect::<Vec<_>>(), expected);
    // The table's copy is kept, because it has the metadata that the index does not project.
    assert_eq!(read[0].metadata, crate::stack::envelope().metadata);
}

#[tokio::test]
async fn a_partition_over_one_page_is_read_whole() {
    let stack = Stack::start(catalog()).await;
    let large = "x".repeat(300_000);
    for _ in 0..8 {
        stack.seed(events![noted("b", "r", &large)]).await;
    }
    stack.wire.forget();
    for clause in [("bookId", "b"), ("readerId", "r")] {
        let read = read(&stack, &plan(&stack, &[&[clause]])).await.expect("a read");
        assert_eq!(read.len(), 8);
        assert!(read.is_sorted_by(|a, b| a.place() < b.place()));
        let pages = stack.take("Query").len();
        assert!(pages > 2, "2.4 MB came in {pages} pages");
    }
}

#[tokio::test]
async fn an_index_of_keys_is_completed_from_the_table() {
    let keys_only = json!({ "ProjectionType": "KEYS_ONLY" });
    let stack = Stack::projecting(catalog(), &keys_only).await;
    let mut appended = Vec::new();
    for n in 0..6 {
        let notes = (0..30).map(|m| noted(&format!("b{}", m % 7), "r", &format!("{n} {m}")).into());
        appended.extend(of_index(stack.seed(notes.collect()).await));
    }
    stack.wire.forget();
    let plan = plan(&stack, &[&[("readerId", "r")]]);
    let read = read(&stack, &plan).await.expect("a read");
    assert_eq!(read, appended);
    let batches = stack.take("BatchGetItem");
    assert_eq!(batches.len(), 2, "180 keys in batches of 100");

    // A batch has no order.
    for mut answer in batches.into_iter().map(|batch| batch.answer) {
        answer["Responses"][TABLE].as_array_mut().expect("items").reverse();
        stack.wire.inject("BatchGetItem", 0, Fault::Answer(200, answer));
    }
    assert_eq!(self::read(&stack, &plan).await.expect("a read"), appended);
    assert!(stack.wire.is_spent());
}

#[tokio::test]
async fn a_page_with_an_item_without_payload_is_completed() {
    let stack = Stack::start(catalog()).await;
    let notes = ["one", "two", "three"].map(|note| noted("b", "r", note).into());
    let appended = stack.seed(notes.to_vec()).await;
    let without_payload = Edit::new(|page| {
        page["Items"][1].as_object_mut().expect("an item").remove("data");
    });
    stack.wire.inject("Query", 0, Fault::Reply(without_payload));
    let read = read(&stack, &plan(&stack, &[&[("readerId", "r")]])).await;
    assert_eq!(read.expect("a read"), of_index(appended));
}

fn of_index(events: Vec<SequencedEvent>) -> Vec<SequencedEvent> {
    events.into_iter().map(SequencedEvent::of_index).collect()
}

#[tokio::test]
async fn an_index_of_keys_is_completed_with_the_requested_consistency() {
    let keys_only = json!({ "ProjectionType": "KEYS_ONLY" });
    let stack = Stack::projecting(catalog(), &keys_only).await;
    let appended = of_index(stack.seed(events![noted("b", "r", "one")]).await);
    let plan = plan(&stack, &[&[("readerId", "r")]]);
    for (consistency, strong) in [(Consistency::Eventual, false), (Consistency::Strong, true)] {
        let log = stack.log();
        let read = log.read(&plan, consistency, &envelope()).try_collect::<Vec<_>>().await;
        assert_eq!(read.expect("a read"), appended);
        let [batch] = &stack.take("BatchGetItem")[..] else { panic!("not one batch") };
        assert_eq!(batch.request["RequestItems"][TABLE]["ConsistentRead"], strong);
    }
}

#[tokio::test]
async fn the_tables_copy_is_kept_even_if_the_index_is_named_first() {
    #[derive(Clone, Debug, PartialEq, Event)]
    struct Shelved {
        #[tag(partition)]
        shelf_id: String,
        #[tag(cross_partition)]
        book_id: String,
    }
    let stack = Stack::start(Catalog::new("library", [Shelved::SCHEMA])).await;
    let shelved = Shelved { shelf_id: "s".to_owned(), book_id: "b".to_owned() };
    let appended = stack.seed(events![shelved]).await;
    let items = [("bookId", "b"), ("shelfId", "s")].map(|(key, value)| QueryItem {
        tags: vec![Tag::new(key, value)],
        types: vec!["Shelved".into()],
    });
    let plan = Plan::new(&Query { items: items.to_vec() }, &stack.catalog).expect("two routes");
    assert!(!plan.reads[0].access.is_of_table());
    assert_eq!(read(&stack, &plan).await.expect("a read"), appended);
}

#[tokio::test]
async fn unprocessed_keys_are_asked_for_again() {
    let keys_only = json!({ "ProjectionType": "KEYS_ONLY" });
    let stack = Stack::projecting(catalog(), &keys_only).await;
    // 18 MB: more than the 16 MB that end a batch.
    let large = "x".repeat(300_000);
    for n in 0..60 {
        stack.seed(events![noted(&format!("b{n}"), "r", &large)]).await;
    }
    stack.wire.forget();
    let read = read(&stack, &plan(&stack, &[&[("readerId", "r")]])).await.expect("a read");
    assert_eq!(read.len(), 60);
    assert_eq!(stack.take("BatchGetItem").len(), 2);
}

#[tokio::test]
async fn hostile_values_stay_apart_and_come_back() {
    let stack = Stack::start(catalog()).await;
    let values = ["a#b", "a:b", "a/b", "a\0b", "a%23b", "🦀", "fence#x", "$type", "a"];
    let append = |value: &str| stack.seed(events![noted(value, value, value)]);
    for value in values {
        append(value).await;
    }
    for value in values {
        let (book, reader) = (("bookId", value), ("readerId", value));
        for clauses in [&[&[book][..]][..], &[&[reader]], &[&[book, reader]]] {
            let read = read(&stack, &plan(&stack, clauses)).await.expect("a read");
            assert_eq!(notes(&read), [value]);
            assert_eq!(read[0].tags, [Tag::new("bookId", value), Tag::new("readerId", value)]);
        }
    }
}

#[tokio::test]
async fn a_scan_returns_every_event_and_nothing_else() {
    let stack = Stack::start(catalog()).await;
    let large = "x".repeat(300_000);
    let mut appended = Vec::new();
    for n in 0..5 {
        appended.extend(stack.seed(events![noted(&format!("b{n}"), "r", &large)]).await);
    }
    let mut scanned: Vec<_> = stack.log().scan().try_collect().await.expect("a scan");
    scanned.sort_by_key(SequencedEvent::place);
    assert_eq!(scanned, appended);
    assert!(stack.take("Scan").len() > 1, "1.5 MB came in one page");
}

#[tokio::test]
async fn opening_the_connection_reads_nothing_from_the_table() {
    let stack = Stack::start(catalog()).await;
    ringfence_aws::open(&stack.client, &stack.clock).await;
    let operations = stack.wire.take().into_iter().map(|exchange| exchange.operation);
    assert_eq!(operations.collect::<Vec<_>>(), ["DescribeEndpoints"]);
}

/// Puts an item by hand. Its type is under `name`, and it has no tags. No writer of this project does that.
pub(crate) async fn put(stack: &Stack, id: &str, position: u64, name: &str, event_type: &str) {
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let put = stack.client.put_item().table_name(TABLE);
    let position = AttributeValue::N(position.to_string());
    let put = put.item("id", text(id)).item("position", position);
    let put = put.item(name, text(event_type)).item("data", text("x"));
    put.send().await.expect("a put");
}

#[tokio::test]
async fn an_undecodable_event_of_a_consumed_type_fails_the_read_and_is_named() {
    let stack = Stack::start(catalog()).await;
    put(&stack, "bookId:b", 1, "event", "Noted").await;
    let error = read(&stack, &plan(&stack, &[&[("bookId", "b")]])).await.expect_err("no tags");
    assert_eq!(error.to_string(), "event bookId:b/1 can't be decoded");
}

#[tokio::test]
async fn an_event_of_a_partition_without_payload_is_named_and_not_looked_for_again() {
    let stack = Stack::start(catalog()).await;
    let notes = ["one", "two", "three"].map(|note| noted("b", "r", note).into());
    stack.seed(notes.to_vec()).await;
    let without_payload = Edit::new(|page| {
        page["Items"][1].as_object_mut().expect("an item").remove("data");
    });
    stack.wire.inject("Query", 0, Fault::Reply(without_payload));
    let error = read(&stack, &plan(&stack, &[&[("bookId", "b")]])).await.expect_err("no payload");
    assert_eq!(error.to_string(), "event bookId:b/2 can't be decoded");
    assert!(stack.take("BatchGetItem").is_empty());
}

#[tokio::test]
async fn events_that_are_not_consumed_need_not_be_decodable() {
    let stack = Stack::start(catalog()).await;
    put(&stack, "bookId:b", 1, "event", "Unheard").await;
    let appended = stack.seed(vec![NewEvent::from(noted("b", "r", "one"))]).await;
    let plan = plan(&stack, &[&[("bookId", "b")]]);
    let log = stack.log();
    let read = log.read_with_seen(&plan, Consistency::Eventual, &envelope()).await;
    let (events, seen) = read.expect("a read");
    // The event still takes its slot.
    let partition = &appended[0].partition;
    assert_eq!((events, seen.prefix(partition).map(|prefix| prefix.slot)), (appended, Some(2)));
}
