//! What is too large is refused by name, and nothing of it is written.

use ringfence::NewEvent;
use ringfence_views::{BATCH_BYTES_MAX, HELD_BYTES_MAX, ROW_BYTES_MAX, ROWS_MAX};

use crate::notes::{catalog, noted, sized, view, wiped};
use crate::world::{FIRST, World};

fn rows(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("r{n:03}")).collect()
}

/// The view stops at the event, applies what comes before it, and says why.
async fn refuse(event: NewEvent, why: &str) {
    let world = World::new(1, catalog());
    let events = [noted("n1", &["before"]), event, noted("n1", &["behind"])];
    let position = world.publish(events).await[1].position.clone();
    let error = world.run(&view(), FIRST).await.unwrap_err().to_string();
    assert_eq!(error, format!("view notes, event {position}{why}"));
    let found: Vec<_> = world.counts(FIRST).await.into_keys().collect();
    assert_eq!(found, ["before"]);
}

#[tokio::test(start_paused = true)]
async fn an_event_touches_at_most_99_rows() {
    refuse(sized("n1", rows(100), 0), ": 100 rows, limit 99; let it touch fewer").await;
    let world = World::new(1, catalog());
    world.publish([sized("n1", rows(ROWS_MAX), 0)]).await;
    let ran = world.run(&view(), FIRST).await.unwrap();
    assert_eq!((ran.rows, ran.batches), (99, 1));
}

#[tokio::test(start_paused = true)]
async fn a_row_has_at_most_390_kb() {
    // With its id, the names of its fields, and its number.
    let rest = "r000".len() + 3 + (1 + "count".len() + 2) + (1 + "text".len());
    let most = ROW_BYTES_MAX - rest;
    let why = ", row \"r000\": 399361 bytes, limit 399360; \
               split it into several rows, such as id/1, id/2";
    refuse(sized("n1", rows(1), most + 1), why).await;
    let world = World::new(1, catalog());
    world.publish([sized("n1", rows(1), most)]).await;
    world.run(&view(), FIRST).await.unwrap();
    assert_eq!(world.counts(FIRST).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_rows_of_an_event_have_at_most_3_5_mb_together() {
    let why = ", its rows together: 3840240 bytes, limit 3500000; \
               let one event touch fewer or smaller rows";
    refuse(sized("n1", rows(12), 320_000), why).await;
}

#[tokio::test(start_paused = true)]
async fn a_rows_id_has_1_to_1024_bytes() {
    let why = ", a row's id: 0 bytes, limit 1024; name it by 1 to 1024 bytes";
    refuse(sized("n1", vec![String::new()], 0), why).await;
    let why = ", a row's id: 1025 bytes, limit 1024; name it by 1 to 1024 bytes";
    refuse(sized("n1", vec!["x".repeat(1_025)], 0), why).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_held_at_once_is_bounded_by_its_bytes() {
    let world = World::new(1, catalog());
    let large = |_| {
        let mut event = noted("n1", &["one"]);
        event.data["more"] = "x".repeat(HELD_BYTES_MAX / 30).into();
        event
    };
    world.publish((0..40).map(large)).await;
    let ran = world.run(&view(), FIRST).await.unwrap();
    assert_eq!((ran.events, ran.batches), (40, 2));
    // Rows as they were, though nothing is left of them.
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
async fn what_does_not_fit_into_one_transaction_takes_several() {
    let world = World::new(1, catalog());
    // By bytes, by rows, and by events.
    let large = (0..30).map(|n| sized("n1", vec![format!("large{n}")], 300_000));
    world.publish(large).await;
    let ran = world.run(&view(), FIRST).await.unwrap();
    assert!(ran.batches >= (30 * 300_000_u64).div_ceil(BATCH_BYTES_MAX as u64), "{ran:?}");
    world
        .publish((0..10).map(|n| sized("n2", (0..20).map(|r| format!("{n}-{r}")).collect(), 0)))
        .await;
    let ran = world.run(&view(), FIRST).await.unwrap();
    assert_eq!((ran.rows, ran.batches), (200, 3));
    world.publish((0..401).map(|_| noted("n3", &["one"]))).await;
    let ran = world.run(&view(), FIRST).await.unwrap();
    assert_eq!((ran.events, ran.batches), (401, 3));
    let found = world.counts(FIRST).await;
    assert_eq!((found.len(), found["one"]), (30 + 200 + 1, 401));
}
