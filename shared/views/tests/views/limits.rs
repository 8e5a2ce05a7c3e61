//! A row that is too large is parked; changes that are too large for one transaction take several.

use ringfence_aws::wire::Fault;
use ringfence_core::NewEvent;
use ringfence_views::{
    BATCH_BYTES_MAX, Definition, HELD_BYTES_MAX, Parked, ROW_BYTES_MAX, ROWS_MAX, View, ViewRead,
};

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
async fn an_event_may_touch_more_rows_than_a_transaction_holds() {
    let world = World::new(1, catalog());
    world.publish([sized("n1", rows(ROWS_MAX), 0)]).await;
    let ran = world.run(&view(), FIRST).await.unwrap();
    assert_eq!((ran.rows, ran.batches), (97, 1));
    world.publish([sized("n1", rows(ROWS_MAX + 1), 0)]).await;
    let ran = world.run(&view(), FIRST).await.unwrap();
    assert_eq!((ran.rows, ran.batches), (98, 2));
    // The rows of both transactions show the event.
    for row in ["r000", "r097"] {
        let found = world.reader().row("notes", row, None).await.unwrap();
        let ViewRead::Found(Some(found)) = found else { panic!("{row} is there") };
        assert_eq!(Some(found.as_of), ran.checkpoint, "{row}");
    }
    // By bytes.
    world.publish([sized("n1", rows(12), 320_000)]).await;
    let ran = world.run(&view(), FIRST).await.unwrap();
    assert_eq!((ran.rows, ran.batches), (12, 2));
    let found = world.counts(FIRST).await;
    assert_eq!((found["r000"], found["r012"], found["r097"]), (3, 2, 1));
    assert!(world.parked().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_event_that_takes_several_transactions_counts_once_whenever_it_breaks_off() {
    for broken in 0..4 {
        let world = World::new(1, catalog());
        world.publish([noted("n1", &["r000", "r099"])]).await;
        world.run(&view(), FIRST).await.unwrap();
        world.publish([sized("n1", rows(300), 0), noted("n1", &["r000", "r299"])]).await;
        world.wire.inject("TransactWriteItems", broken, Fault::error("AccessDeniedException"));
        world.run(&view(), FIRST).await.unwrap_err();
        world.run(&view(), FIRST).await.unwrap();
        let found = world.counts(FIRST).await;
        let some = ["r000", "r099", "r100", "r299"].map(|row| found[row]);
        assert_eq!((found.len(), some), (300, [3, 2, 1, 2]), "broken: {broken}");
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_part_of_an_event_the_next_event_counts_as_well() {
    for broken in 1..3 {
        let world = World::new(1, catalog());
        // The rows have too many bytes for one transaction. The rest of the first event's rows would fit into one with
        // the second event.
        let next = sized("n1", ["r000", "r011"].map(str::to_owned).to_vec(), 320_000);
        world.publish([sized("n1", rows(12), 320_000), next]).await;
        world.wire.inject("TransactWriteItems", broken, Fault::error("AccessDeniedException"));
        world.run(&view(), FIRST).await.unwrap_err();
        world.run(&view(), FIRST).await.unwrap();
        let found = world.counts(FIRST).await;
        let some = ["r000", "r001", "r010", "r011"].map(|row| found[row]);
        assert_eq!(some, [2, 1, 1, 2], "broken: {broken}");
    }
}

/// Each event makes a row, or removes the one that is there.
struct Toggled;

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
async fn a_row_that_a_part_of_an_event_removes_stays_removed() {
    let toggled = Definition::of::<Toggled>();
    let world = World::new(1, catalog());
    world.publish([sized("n1", rows(300), 0)]).await;
    world.run(&toggled, FIRST).await.unwrap();
    assert_eq!(world.counts(FIRST).await.len(), 300);
    world.publish([sized("n1", rows(300), 0)]).await;
    world.wire.inject("TransactWriteItems", 1, Fault::error("AccessDeniedException"));
    world.run(&toggled, FIRST).await.unwrap_err();
    world.run(&toggled, FIRST).await.unwrap();
    assert!(world.counts(FIRST).await.is_empty());
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
    // Rows as they were count, though the event removes them.
    let rows = |n| [format!("r{n}"), format!("s{n}")];
    let large = |n| sized("n1", rows(n).to_vec(), HELD_BYTES_MAX / 30);
    world.publish((0..20).map(large)).await;
    world.run(&view(), FIRST).await.unwrap();
    world.publish((0..20).map(|n| wiped("n1", &rows(n).each_ref().map(String::as_str)))).await;
    let ran = world.run(&view(), FIRST).await.unwrap();
    assert_eq!((ran.events, ran.rows, ran.batches), (20, 40, 2));
    assert_eq!(world.counts(FIRST).await.into_iter().collect::<Vec<_>>(), [("one".to_owned(), 40)]);
}

#[tokio::test(start_paused = true)]
async fn changes_that_do_not_fit_into_one_transaction_take_several() {
    let world = World::new(1, catalog());
    // By bytes, by rows, and by events.
    let large = (0..30).map(|n| sized("n1", vec![format!("large{n}")], 300_000));
    world.publish(large).await;
    let ran = world.run(&view(), FIRST).await.unwrap();
    assert!(ran.batches >= (30 * 300_000_u64).div_ceil(BATCH_BYTES_MAX as u64), "{ran:?}");
    // Three of these events have one row more than a transaction holds.
    world
        .publish((0..7).map(|n| sized("n2", (0..33).map(|r| format!("{n}-{r}")).collect(), 0)))
        .await;
    let ran = world.run(&view(), FIRST).await.unwrap();
    assert_eq!((ran.rows, ran.batches), (7 * 33, 4));
    for _ in 0..8 {
        world.append(vec![noted("n3", &["one"]); 50]).await;
    }
    world.publish([noted("n3", &["one"])]).await;
    let ran = world.run(&view(), FIRST).await.unwrap();
    assert_eq!((ran.events, ran.batches), (401, 3));
    let found = world.counts(FIRST).await;
    assert_eq!((found.len(), found["one"]), (30 + 7 * 33 + 1, 401));
}
