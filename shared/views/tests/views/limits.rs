//! A row that is too large is parked; changes that are too many for one transaction take several.

use std::time::Duration;

use ringfence_aws::wire::Fault;
use ringfence_core::NewEvent;
use ringfence_views::{Definition, HELD_BYTES_MAX, Parked, ROW_BYTES_MAX, View};

use crate::notes::{Consumed, Notes, Row, catalog, noted, sized, view, wiped};
use crate::world::{FIRST, World};

fn rows(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("r{n:03}")).collect()
}

/// Checks that the event parks the row, and that the view shows the events before and after it.
async fn park(event: NewEvent, row: &str, why: &str) {
    let world = World::new(1, catalog());
    let events = [noted("n1", &["before"]), event, noted("n1", &["behind"])];
    let id = world.publish(events).await[1].id();
    let ran = world.run(&view(), FIRST).await.unwrap();
    assert_eq!((ran.present, ran.parked), (true, 1));
    let found: Vec<_> = world.counts(FIRST).await.into_keys().collect();
    assert_eq!(found, ["before", "behind"]);
    let parked = Parked { event: id, cause: why.to_owned() };
    assert_eq!(world.parked().await, [(row.to_owned(), parked)]);
}

#[tokio::test(start_paused = true)]
async fn a_row_has_at_most_390_kb() {
    // With its id, the names of its fields, and its number.
    let rest = "r000".len() + 3 + (1 + "count".len() + 2) + (1 + "text".len());
    let most = ROW_BYTES_MAX - rest;
    let why = "the row: 399361 bytes, limit 399360; split it into several rows, such as id/1, id/2";
    park(sized("n1", rows(1), most + 1), "r000", why).await;
    let world = World::new(1, catalog());
    world.publish([sized("n1", rows(1), most)]).await;
    world.run(&view(), FIRST).await.unwrap();
    assert_eq!(world.counts(FIRST).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_rows_id_has_1_to_1024_bytes() {
    let why = "the row's id: 0 bytes, limit 1024; use an id of 1 to 1024 bytes";
    park(sized("n1", vec![String::new()], 0), "… (not an id)", why).await;
    let why = "the row's id: 1025 bytes, limit 1024; use an id of 1 to 1024 bytes";
    let row = format!("{}… (not an id)", "x".repeat(1_000));
    park(sized("n1", vec!["x".repeat(1_025)], 0), &row, why).await;
}

#[tokio::test(start_paused = true)]
async fn an_event_of_many_rows_counts_once_whenever_it_breaks_off() {
    for (operation, broken) in [("PutItem", 0), ("PutItem", 170), ("UpdateItem", 0)] {
        let world = World::new(1, catalog());
        world.publish([noted("n1", &["r000", "r099"])]).await;
        world.run(&view(), FIRST).await.unwrap();
        world.publish([sized("n1", rows(300), 0), noted("n1", &["r000", "r299"])]).await;
        world.wire.inject(operation, broken, Fault::error("AccessDeniedException"));
        world.run(&view(), FIRST).await.unwrap_err();
        let ran = world.run(&view(), FIRST).await.unwrap();
        let found = world.counts(FIRST).await;
        let some = ["r000", "r099", "r100", "r299"].map(|row| found[row]);
        assert_eq!((found.len(), some), (300, [3, 2, 1, 2]), "broken: {broken}");
        // Rows that were put before are not put again.
        assert!(operation == "PutItem" && broken == 0 || ran.rows < 200, "{broken}: {ran:?}");
    }
}

/// Each event makes a row, or removes the one that is there.
pub(crate) struct Toggled;

impl View for Toggled {
    const NAME: &'static str = "notes";
    type Reads = Consumed;
    type Row = Row;

    fn rows(event: &Consumed) -> Vec<String> {
        Notes::rows(event)
    }

    fn evolve(row: Option<Row>, id: &str, event: &Consumed) -> Option<Row> {
        row.is_none().then(|| Notes::evolve(None, id, event)).flatten()
    }
}

#[tokio::test(start_paused = true)]
async fn rows_that_an_event_removes_in_several_transactions_stay_removed() {
    let toggled = Definition::of::<Toggled>();
    for broken in [1, 3] {
        let world = World::new(1, catalog());
        world.publish([sized("n1", rows(300), 0)]).await;
        world.run(&toggled, FIRST).await.unwrap();
        assert_eq!(world.counts(FIRST).await.len(), 300);
        world.publish([sized("n1", rows(300), 0)]).await;
        world.wire.inject("TransactWriteItems", broken, Fault::error("AccessDeniedException"));
        world.run(&toggled, FIRST).await.unwrap_err();
        // Nobody may fold the event again onto a row whose tombstone has gone.
        assert_eq!(world.sweep().await, 0);
        world.run(&toggled, FIRST).await.unwrap();
        assert!(world.counts(FIRST).await.is_empty(), "broken: {broken}");
    }
}

#[tokio::test(start_paused = true)]
async fn memory_for_rows_and_events_is_bounded() {
    let world = World::new(1, catalog());
    let large = |_| {
        let mut event = noted("n1", &["one"]);
        event.data["more"] = "x".repeat(HELD_BYTES_MAX / 30).into();
        event
    };
    world.publish((0..40).map(large)).await;
    let ran = world.run(&view(), FIRST).await.unwrap();
    assert_eq!((ran.events, ran.batches), (40, 2));
}

#[tokio::test(start_paused = true)]
async fn a_batch_ends_where_a_transaction_is_full_of_rows_that_it_removes() {
    let world = World::new(1, catalog());
    let rows = |n| (0..33).map(|r| format!("{n}-{r}")).collect::<Vec<_>>();
    world.publish((0..7).map(|n| sized("n2", rows(n), 0))).await;
    world.run(&view(), FIRST).await.unwrap();
    let wiped = |n| wiped("n2", &rows(n).iter().map(String::as_str).collect::<Vec<_>>());
    world.publish((0..7).map(wiped).chain([noted("n3", &["one"])])).await;
    // Three events would remove 99 rows.
    let ran = world.run(&view(), FIRST).await.unwrap();
    assert_eq!((ran.rows, ran.batches), (7 * 33 + 1, 5));
    assert_eq!(world.counts(FIRST).await.into_keys().collect::<Vec<_>>(), ["one"]);
    // All tombstones go in the end.
    tokio::time::sleep(Duration::from_secs(25 * 60 * 60)).await;
    assert_eq!(world.sweep().await, 7 * 33);
}
