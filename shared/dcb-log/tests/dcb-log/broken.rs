//! Events that can't be read, and events whose type has left the catalog: the report names them, and the check
//! continues.

use aws_sdk_dynamodb::types::AttributeValue;
use ringfence_aws::Item;
use ringfence_core::{Catalog, Event, events};
use ringfence_dcb_log::{DcbReport, FenceDefect};

use crate::reads::{self, Noted, noted, put};
use crate::repair::fence;
use crate::stack::{NOW_MS, Stack, TABLE};
use crate::verify::{Damage, OPTIONS, READER, number, repair, verify};

/// A book has left the shelf.
#[derive(Clone, Debug, PartialEq, Event)]
struct Lent {
    #[tag(partition)]
    book_id: String,
    #[tag(cross_partition)]
    reader_id: String,
}

/// A reader's book with a note and a loan, and another with a note.
async fn library() -> Stack {
    let stack = Stack::start(Catalog::new("library", [Noted::SCHEMA, Lent::SCHEMA])).await;
    let lent = Lent { book_id: "b".to_owned(), reader_id: "r".to_owned() };
    stack.seed(events![noted("b", "r", "one"), lent, noted("c", "r", "two")]).await;
    stack
}

fn count(event_type: &str, counted: u64, found: u64) -> FenceDefect {
    FenceDefect::Count { event_type: event_type.to_owned(), counted, found }
}

/// The defects of each boundary.
fn wrong(report: &DcbReport) -> Vec<(&str, &[FenceDefect])> {
    let all = report.differences.iter().chain(&report.mended);
    all.map(|differs| (differs.boundary.as_str(), &*differs.wrong)).collect()
}

fn broken(report: &DcbReport) -> Vec<(&str, &str)> {
    report.broken.iter().map(|(item, why)| (&**item, &**why)).collect()
}

async fn reader(stack: &Stack) -> Item {
    let mut fence = fence(stack, READER.0).await.expect("a fence");
    fence.remove("repaired");
    fence
}

#[tokio::test]
async fn an_event_without_payload_is_named_and_counted() {
    let stack = library().await;
    let right = reader(&stack).await;
    let items = stack.items().await;
    let note = |item: &&Item| item.get("id") == Some(&AttributeValue::S("bookId:b".to_owned()));
    let note = items.iter().filter(note).find(|item| item["event"] == text("Noted"));
    let mut bare = note.expect("the note").clone();
    bare.remove("data");
    let put = stack.client.put_item().table_name(TABLE).set_item(Some(bare.clone()));
    put.send().await.expect("a put");
    Damage::Set("cnt#Noted", number(7)).inflict(&stack, READER.0).await;

    let expected = [("bookId:b/1", "attribute data is missing or of another type")];
    for report in [verify(&stack).await, repair(&stack).await] {
        assert_eq!(broken(&report), expected);
        assert_eq!(wrong(&report), [(READER.0, &[count("Noted", 7, 2)][..])]);
        assert!(!report.in_order());
        assert_eq!(report.events, 3);
    }
    assert_eq!(reader(&stack).await, right);
}

#[tokio::test]
async fn an_event_without_boundaries_keeps_all_counts_of_its_type() {
    let stack = library().await;
    // The fence counts the event, as it did when its tags could be read.
    put(&stack, "bookId:b", 3, "event", "Noted").await;
    for (name, value) in [("cnt#Noted", number(3)), ("head", number(NOW_MS + 10))] {
        Damage::Set(name, value).inflict(&stack, READER.0).await;
    }
    let right = reader(&stack).await;
    Damage::Set("cnt#Lent", number(5)).inflict(&stack, READER.0).await;

    let expected = [("bookId:b/3", "attribute at is missing or of another type")];
    for report in [verify(&stack).await, repair(&stack).await] {
        assert_eq!(broken(&report), expected);
        assert_eq!(wrong(&report), [(READER.0, &[count("Lent", 5, 1)][..])]);
        assert!(!report.in_order());
    }
    assert_eq!(reader(&stack).await, right);
}

#[tokio::test]
async fn events_whose_type_left_the_catalog_are_named_and_stay_counted() {
    let stack = library().await;
    let right = reader(&stack).await;
    Damage::Set("cnt#Noted", number(7)).inflict(&stack, READER.0).await;
    let catalog = reads::catalog().expect("free of contradictions");
    let log = stack.log_of(&catalog, &stack.clock);
    for report in [log.verify_fences(&OPTIONS).await, log.repair_fences(&OPTIONS).await] {
        let report = report.expect("a report");
        assert_eq!(broken(&report), [("bookId:b/2", "event type Lent is not in the catalog")]);
        assert_eq!(wrong(&report), [(READER.0, &[count("Noted", 7, 2)][..])]);
        assert!(!report.in_order());
    }
    assert_eq!(reader(&stack).await, right);
}

#[tokio::test]
async fn an_event_of_an_unreadable_type_may_be_in_any_count() {
    let stack = library().await;
    let item = [("id", text("bookId:b")), ("position", number(3)), ("event", number(1))];
    let item = item.map(|(name, value)| (name.to_owned(), value));
    let put = stack.client.put_item().table_name(TABLE).set_item(Some(item.into()));
    put.send().await.expect("a put");
    Damage::Set("cnt#Noted", number(3)).inflict(&stack, READER.0).await;
    let damaged = reader(&stack).await;
    let report = repair(&stack).await;
    assert_eq!((wrong(&report), report.broken.len(), report.in_order()), (vec![], 1, false));
    assert_eq!(reader(&stack).await, damaged);
}

fn text(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}
