//! Compares fences with events: every damage is named and mended.

use std::collections::BTreeMap;
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use ringfence_aws::wire::Wire;
use ringfence_aws::{Clock, Item};
use ringfence_core::{
    AHEAD_MAX_MS, Append, Appended, Catalog, Event, EventLog, EventSchema, LogError, Plan, Seen,
    SequencedEvent, events,
};
use ringfence_dcb_log::{DcbReport, FenceDefect, VerifyOptions};

use crate::reads::{Noted, catalog, noted, plan, read, seen};
use crate::stack::{NOW_MS, Stack, TABLE, append, committed, envelope};

/// The embedded DynamoDB shows a transaction as a whole.
pub(crate) const OPTIONS: VerifyOptions<'_> =
    VerifyOptions { settle: Duration::ZERO, passes: 1, progress: &|_, _| {} };

fn text(text: impl Into<String>) -> AttributeValue {
    AttributeValue::S(text.into())
}

pub(crate) fn number(n: u64) -> AttributeValue {
    AttributeValue::N(n.to_string())
}

pub(crate) fn fence_key(boundary: &str) -> Item {
    let key = [("id", text(format!("fence#{boundary}"))), ("position", number(0))];
    key.map(|(name, value)| (name.to_owned(), value)).into()
}

/// A change of a fence by somebody who should not have made it.
#[derive(Clone, Debug)]
pub(crate) enum Damage {
    Set(&'static str, AttributeValue),
    Remove(&'static str),
    Delete,
}

impl Damage {
    pub(crate) async fn inflict(&self, stack: &Stack, boundary: &str) {
        let key = Some(fence_key(boundary));
        let update = stack.client.update_item().table_name(TABLE).set_key(key.clone());
        let ended = match self {
            Self::Set(name, value) => {
                let update = update.update_expression("SET #name = :value");
                let update = update.expression_attribute_names("#name", *name);
                let update = update.expression_attribute_values(":value", value.clone());
                update.send().await.map(drop).map_err(aws_sdk_dynamodb::Error::from)
            }
            Self::Remove(name) => {
                let update = update.update_expression("REMOVE #name");
                let update = update.expression_attribute_names("#name", *name);
                update.send().await.map(drop).map_err(aws_sdk_dynamodb::Error::from)
            }
            Self::Delete => {
                let delete = stack.client.delete_item().table_name(TABLE).set_key(key);
                delete.send().await.map(drop).map_err(aws_sdk_dynamodb::Error::from)
            }
        };
        ended.unwrap_or_else(|error| panic!("{self:?}: {error:?}"));
    }
}

/// A boundary that has a fence, and the tag by which it is read.
pub(crate) type Fenced = (&'static str, (&'static str, &'static str));
/// A tag across partitions: the fence orders what it counts.
pub(crate) const READER: Fenced = ("readerId:r", ("readerId", "r"));
/// A partition whose type is declared `fenced`: the slots order what its fence counts.
pub(crate) const BOOK: Fenced = ("bookId:b", ("bookId", "b"));

/// Two notes of the boundary, the second one an hour after the first, and one note elsewhere.
pub(crate) async fn library((boundary, _): Fenced) -> (Stack, [u64; 2]) {
    let schema = EventSchema { fenced: boundary == BOOK.0, ..Noted::SCHEMA };
    let stack = Stack::start(Catalog::new("library", [schema])).await;
    let note = async |ms, book, reader, note| {
        let log = stack.log_at(&Clock::fixed(ms));
        committed(append(&log, events![noted(book, reader, note)], &envelope()).await).remove(0).at
    };
    let first = note(NOW_MS - 7_200_000, "b", "r", "one").await;
    let second = note(NOW_MS - 3_600_000, "b", "r", "two").await;
    note(NOW_MS - 1_800_000, "c", "q", "three").await;
    (stack, [first, second])
}

fn count(event_type: &str, counted: u64, found: u64) -> FenceDefect {
    FenceDefect::Count { event_type: event_type.to_owned(), counted, found }
}

pub(crate) async fn verify(stack: &Stack) -> DcbReport {
    stack.log().verify_fences(&OPTIONS).await.expect("a report")
}

pub(crate) async fn repair(stack: &Stack) -> DcbReport {
    stack.log().repair_fences(&OPTIONS).await.expect("a report")
}

#[tokio::test]
async fn a_clean_table_has_no_difference() {
    let (stack, _) = library(BOOK).await;
    stack.wire.forget();
    for (passes, scans) in [(1, 2), (3, 6)] {
        let options = VerifyOptions { passes, ..OPTIONS };
        let report = stack.log().verify_fences(&options).await.expect("a report");
        // Two books, two readers, and each book with its reader.
        assert_eq!(report, DcbReport { events: 3, fences: 6, ..DcbReport::default() });
        assert!(report.in_order());
        let operations = stack.wire.take().into_iter().map(|exchange| exchange.operation);
        assert_eq!(operations.collect::<Vec<_>>(), vec!["Scan"; scans]);
    }
}

#[tokio::test]
async fn events_more_than_a_minute_ahead_of_the_clock_are_named_and_in_order() {
    let (stack, _) = library(READER).await;
    for (book, ahead_ms) in [("d", AHEAD_MAX_MS), ("e", AHEAD_MAX_MS + 1)] {
        let log = stack.log_at(&Clock::fixed(NOW_MS + ahead_ms));
        committed(append(&log, events![noted(book, book, "ahead")], &envelope()).await);
    }
    let report = verify(&stack).await;
    let ahead = BTreeMap::from([("bookId:e/1".to_owned(), NOW_MS + AHEAD_MAX_MS + 1)]);
    assert_eq!((report.in_order(), report.ahead), (true, ahead));
}

/// Every damage to the fence of the boundary, and the defects in the report.
pub(crate) fn damages([first, second]: &[u64; 2]) -> Vec<(Damage, Vec<FenceDefect>)> {
    let head = |says: Option<u64>| FenceDefect::Head { says, found: Some(*second) };
    let high = NOW_MS + 3_600_000;
    vec![
        (Damage::Set("cnt#Noted", number(1)), vec![count("Noted", 1, 2)]),
        (Damage::Set("cnt#Noted", number(3)), vec![count("Noted", 3, 2)]),
        (Damage::Set("head", number(*first)), vec![head(Some(*first))]),
        (Damage::Delete, vec![FenceDefect::NoFence, count("Noted", 0, 2), head(None)]),
        (Damage::Set("cnt#Noted", number(0)), vec![count("Noted", 0, 2)]),
        (Damage::Set("cnt#Noted", text("two")), vec![count("Noted", 0, 2)]),
        (Damage::Remove("cnt#Noted"), vec![count("Noted", 0, 2)]),
        (Damage::Set("cnt#Heard", number(2)), vec![count("Heard", 2, 0)]),
        (Damage::Set("cnt#Heard", number(0)), vec![count("Heard", 0, 0)]),
        (Damage::Set("head", number(high)), vec![head(Some(high))]),
        (Damage::Set("head", text("late")), vec![head(Some(0))]),
        (Damage::Remove("head"), vec![head(None)]),
    ]
}

/// The number of kinds of damage: a count too low, a count too high, a head set back, no fence.
pub(crate) const KINDS: usize = 4;

/// The plan that reads the boundary.
pub(crate) fn plan_of(stack: &Stack, (_, tag): Fenced) -> Plan {
    plan(stack, &[&[tag]])
}

#[tokio::test]
async fn an_append_of_several_events_moves_each_fence_to_its_last_counted_event() {
    let schema = EventSchema { fenced: true, ..Noted::SCHEMA };
    let stack = Stack::start(Catalog::new("library", [schema])).await;
    stack.seed(events![noted("b", "r", "1"), noted("c", "q", "2"), noted("c", "r", "3")]).await;
    stack.seed(events![noted("c", "q", "4"), noted("b", "p", "5")]).await;
    stack.check_fences().await;
    assert!(verify(&stack).await.in_order());
}

#[tokio::test]
async fn every_damage_is_named_and_mended() {
    for fenced in [READER, BOOK] {
        let (stack, times) = library(fenced).await;
        for (damage, wrong) in damages(&times) {
            damage.inflict(&stack, fenced.0).await;
            let found = verify(&stack).await.differences;
            assert_eq!(found.len(), 1, "{damage:?}: {found:?}");
            assert_eq!((found[0].boundary.as_str(), &found[0].wrong), (fenced.0, &wrong));

            let report = repair(&stack).await;
            assert_eq!(report.mended, found, "{damage:?}");
            assert!(report.in_order(), "{damage:?}: {report:?}");
            stack.check_fences().await;
            assert_eq!(repair(&stack).await.mended, [], "{damage:?}");
        }
        let plan = plan_of(&stack, fenced);
        let seen = seen(&plan, &read(&stack, &plan).await.expect("a read"));
        assert_eq!(stack.log().verify(&seen, &envelope()).await.expect("a comparison"), None);
    }
}

#[tokio::test]
async fn every_kind_of_boundary_is_mended_at_once() {
    let (stack, [first, _]) = library(BOOK).await;
    for boundary in ["bookId:b", "readerId:r", "bookId:b#readerId:r", "bookId:c"] {
        Damage::Delete.inflict(&stack, boundary).await;
    }
    // A fence of a boundary without events.
    for (name, value) in [("cnt#Noted", number(2)), ("head", number(first))] {
        Damage::Set(name, value).inflict(&stack, "readerId:nobody").await;
    }
    for passes in [1, 2] {
        let options = VerifyOptions { passes, ..OPTIONS };
        let report = stack.log().verify_fences(&options).await.expect("a report");
        let mut texts: Vec<_> = report.differences.iter().map(ToString::to_string).collect();
        texts.sort();
        assert_eq!(texts.len(), 5, "{texts:#?}");
        let nobody = "readerId:nobody: no events, or no longer declared; counts 2 Noted, found 0; \
                      head is 2024-06-22T22:00:00.000Z, found no event";
        assert_eq!(texts[3], nobody);
        let reader = "readerId:r: no fence; counts 0 Noted, found 2; \
                      head is missing, found 2024-06-22T23:00:00.000Z";
        assert_eq!(texts[4], reader);
    }
    assert_eq!(repair(&stack).await.mended.len(), 5);
    stack.check_fences().await;
    assert!(verify(&stack).await.in_order());
    stack.seed(events![noted("nowhere", "nobody", "first")]).await;
    stack.check_fences().await;
}

pub(crate) mod before {
    use super::{Catalog, Event};

    /// The [`crate::reads::Noted`] of the version before decisions read readers.
    #[derive(Clone, Debug, PartialEq, Event)]
    pub(crate) struct Noted {
        #[tag(partition)]
        pub(crate) book_id: String,
        pub(crate) reader_id: String,
        pub(crate) note: String,
    }

    pub(crate) fn catalog() -> Catalog {
        Catalog::new("library", [Noted::SCHEMA]).expect("no contradictions")
    }
}

#[tokio::test]
async fn a_newly_declared_boundary_is_filled() {
    let stack = Stack::start(catalog()).await;
    let old = stack.log_through(&Wire::default(), &before::catalog());
    for note in ["one", "two"] {
        let (book_id, reader_id, note) = ("b".to_owned(), "r".to_owned(), note.to_owned());
        let events = events![before::Noted { book_id, reader_id, note }];
        committed(append(&old, events, &envelope()).await);
    }
    // The new version files its first event, so its fences begin to count.
    stack.seed(events![noted("b", "r", "three")]).await;
    let report = verify(&stack).await;
    let indexes = || BTreeMap::from(["tag_composite", "tag_readerId"].map(|i| (i.to_owned(), 2)));
    assert_eq!(report.unindexed, indexes());
    let wrong = report.differences.iter().map(|d| (d.boundary.as_str(), d.wrong.as_slice()));
    let expected = [count("Noted", 1, 3)];
    let boundaries = ["bookId:b#readerId:r", "readerId:r"];
    assert_eq!(wrong.collect::<Vec<_>>(), boundaries.map(|boundary| (boundary, &expected[..])));

    let report = repair(&stack).await;
    assert_eq!((report.in_order(), report.indexed, report.mended.len()), (true, indexes(), 2));
    assert!(verify(&stack).await.in_order());
    // Slices may condition on them now.
    let plan = plan(&stack, &[&[("readerId", "r")], &[("bookId", "b"), ("readerId", "r")]]);
    let read = read(&stack, &plan).await.expect("a read");
    assert_eq!(read.len(), 3);
    decide(&stack, READER, &seen(&plan, &read)).await.expect("the condition holds");
    stack.check_fences().await;
}

/// Appends a decision on `seen`, a little after everything else. For a reader's fence it appends in the boundary
/// itself. For a partition's fence it appends elsewhere, because in the partition the slots are the condition.
pub(crate) async fn decide(
    stack: &Stack,
    fenced: Fenced,
    seen: &Seen,
) -> Result<Vec<SequencedEvent>, LogError> {
    let envelope = envelope();
    let events = match fenced {
        BOOK => events![noted("elsewhere", "r", "decided")],
        _ => events![noted("b", "r", "decided")],
    };
    let append = Append { events, seen: Some(seen), record: None, envelope: &envelope };
    match stack.log().append(append).await? {
        Appended::Committed(events) => Ok(events),
        Appended::Repeated(_) => panic!("without an idempotency key"),
    }
}
