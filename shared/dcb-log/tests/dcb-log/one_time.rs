//! Events of different partitions that were recorded in the same millisecond.

use futures::TryStreamExt;
use ringfence_aws::Clock;
use ringfence_aws::wire::Fault;
use ringfence_core::{
    Append, Consistency, EventLog, NewEvent, Page, Plan, Query, QueryItem, Reading, Seen,
    SequencedEvent, Tag, events,
};

use crate::items::{self, moved};
use crate::reads::{catalog, noted, plan, seen};
use crate::stack::{NOW_MS, Stack, append, committed, envelope};
use crate::unindexed;
use crate::verify::{before, repair, verify};

/// Two notes of a reader in different books. They were recorded in the same millisecond, before the reader's notes
/// were filed. Also returns the report of the repair that files them.
async fn at_one_time() -> Stack {
    let stack = Stack::start(catalog()).await;
    for book in ["b", "c", "a"] {
        let old = stack.log_of(&before::catalog(), &Clock::fixed(NOW_MS - 1_000));
        let [book_id, reader_id, note] = [book, "r", book].map(str::to_owned);
        committed(
            append(&old, events![before::Noted { book_id, reader_id, note }], &envelope()).await,
        );
    }
    assert!(repair(&stack).await.in_order());
    assert!(verify(&stack).await.in_order());
    stack.seed(events![noted("d", "r", "d"), noted("e", "r", "e")]).await;
    stack.check_fences().await;
    stack
}

/// Checks that a decision on the plan's boundaries can commit.
async fn commits(stack: &Stack, seen: &Seen, event: NewEvent) {
    let envelope = envelope();
    let append =
        Append { events: vec![event], seen: Some(seen), record: None, envelope: &envelope };
    committed(stack.log().append(append).await);
}

#[tokio::test]
async fn events_of_one_millisecond_are_read_once_and_in_order_whatever_the_page() {
    let stack = at_one_time().await;
    let both = plan(&stack, &[&[("readerId", "r")], &[("bookId", "c")]]);
    let log = stack.log();
    for limit in [None, Some(1), Some(2)] {
        // This holds even if each page of the index has one entry.
        limit
            .into_iter()
            .for_each(|n| (0..9).for_each(|_| stack.wire.inject("Query", 0, Fault::page(n))));
        let read = log.read(&both, Consistency::Eventual, &envelope()).try_collect().await;
        let read: Vec<SequencedEvent> = read.expect("a read");
        let books: Vec<_> = read.iter().map(|event| event.partition.as_str()).collect();
        let expected = ["bookId:a", "bookId:b", "bookId:c", "bookId:d", "bookId:e"];
        assert_eq!(books, expected, "{limit:?}");
    }
    let query =
        Query { items: vec![QueryItem { tags: vec![Tag::new("readerId", "r")], types: vec![] }] };
    let reading = Reading::new(&query, &stack.catalog).expect("a reading");
    for backwards in [false, true] {
        let mut page = Page { limit: Some(1), backwards, ..Page::default() };
        let mut notes = Vec::new();
        loop {
            let found: Vec<_> = log.query(&reading, &page).try_collect().await.expect("a page");
            let [event] = &found[..] else { break };
            notes.push(event.data["note"].as_str().expect("a note").to_owned());
            page.after = Some(event.place());
        }
        let mut expected = ["a", "b", "c", "d", "e"];
        if backwards {
            expected.reverse();
        }
        assert_eq!(notes, expected);
    }
    // If the times differ, a page is one request.
    let page = Page { limit: Some(2), backwards: true, ..Page::default() };
    stack.wire.forget();
    let latest: Vec<_> = log.query(&reading, &page).try_collect().await.expect("a page");
    assert_eq!((latest.len(), stack.wire.take().len()), (2, 1));
    let plan = plan(&stack, &[&[("readerId", "r")]]);
    let read = log.read(&plan, Consistency::Eventual, &envelope()).try_collect::<Vec<_>>().await;
    commits(&stack, &seen(&plan, &read.expect("a read")), noted("f", "r", "f").into()).await;
}

#[tokio::test]
async fn each_event_of_one_millisecond_has_its_own_index_item() {
    let stack = Stack::start(items::catalog()).await;
    for parcel in ["p", "q", "r"] {
        unindexed::moved_before(&stack, NOW_MS - 1_000, parcel).await;
    }
    let report = repair(&stack).await;
    assert_eq!(
        (report.in_order(), report.indexed["tag#$type"], report.indexed["tag#depot"]),
        (true, 3, 6)
    );
    assert!(verify(&stack).await.in_order());
    stack.seed(vec![moved("s", "x", "z")]).await;
    stack.check_fences().await;
    // Each of these decisions appends one more event, which the type counts.
    for (tags, expected) in [(&[("depot", "x")][..], 4), (&[("depot", "y")], 3), (&[], 6)] {
        let plan: Plan = items::plan(&stack, tags);
        let read = stack.log().read(&plan, Consistency::Strong, &envelope()).try_collect().await;
        let read: Vec<SequencedEvent> = read.expect("a read");
        assert_eq!(read.len(), expected);
        commits(&stack, &seen(&plan, &read), moved(&format!("new{}", tags.len()), "u", "v")).await;
        if tags.is_empty() {
            continue;
        }
        let mut pages = Vec::new();
        let mut page = Page { limit: Some(1), backwards: true, ..Page::default() };
        let types = vec!["Moved".into()];
        let tags = tags.iter().map(|(key, value)| Tag::new(*key, *value)).collect();
        let query = Query { items: vec![QueryItem { tags, types }] };
        let reading = Reading::new(&query, &stack.catalog).expect("a reading");
        loop {
            let log = stack.log();
            let found: Vec<_> = log.query(&reading, &page).try_collect().await.expect("a page");
            let [event] = &found[..] else { break };
            page.after = Some(event.place());
            pages.push(event.clone());
        }
        pages.reverse();
        assert_eq!(pages, read);
    }
}
