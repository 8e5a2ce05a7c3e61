//! A row that can't be written stops neither its view nor other rows.

use std::collections::BTreeMap;
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use futures::future::join;
use ringfence_aws::wire::Fault;
use ringfence_core::Reads;
use ringfence_views::{Content, Definition, Ran, Retried, View, ViewError, ViewRead};
use serde_json::{Value, json};

use crate::notes::{Consumed, Notes, Row, catalog, noted, sized, view, wiped};
use crate::world::{FIRST, LONG, SECOND, World, count, generation};

/// The notes with a mended fold, which keeps their texts short.
struct Mended;

impl View for Mended {
    const NAME: &'static str = "notes";
    type Reads = Consumed;
    type Row = Row;

    fn rows(event: &Consumed) -> Vec<String> {
        Notes::rows(event)
    }

    fn evolve(row: Option<Row>, id: &str, event: &Consumed) -> Option<Row> {
        Notes::evolve(row, id, event).map(|row| Row { text: "short".to_owned(), ..row })
    }
}

pub(crate) fn mended() -> Definition {
    Definition::of::<Mended>()
}

pub(crate) fn too_large() -> ringfence_core::NewEvent {
    sized("n1", vec!["a".to_owned()], 400_000)
}

pub(crate) async fn retry(world: &World, view: &Definition) -> Retried {
    world.projector().retry(view, &|_| {}).await.unwrap()
}

pub(crate) fn shown(shown: u64) -> Retried {
    Retried { shown, ..Retried::default() }
}

/// A world whose row `a` is parked at its second event of three.
async fn parked(seed: u64) -> World {
    let world = just_parked(seed).await;
    world.publish([noted("n1", &["a", "b"])]).await;
    let ran = world.run(&view(), FIRST).await.unwrap();
    assert_eq!((ran.present, ran.parked, ran.rows), (true, 0, 1));
    world
}

/// A world whose row `a` is parked at its second event, which is the last one.
async fn just_parked(seed: u64) -> World {
    let world = World::new(seed, catalog());
    world.publish([noted("n1", &["a", "b"]), too_large()]).await;
    let ran = world.run(&view(), FIRST).await.unwrap();
    assert_eq!((ran.present, ran.parked, ran.rows), (true, 1, 2));
    world
}

#[tokio::test(start_paused = true)]
async fn a_row_stays_parked_until_it_is_folded_again_with_all_its_events() {
    let world = parked(1).await;
    world.publish([noted("n1", &["a", "b"])]).await;
    let ran = world.run(&view(), FIRST).await.unwrap();
    assert_eq!((ran.parked, ran.rows), (0, 1));
    assert_eq!(world.counts(FIRST).await, BTreeMap::from([("b".to_owned(), 3)]));
    assert_eq!(world.projector().register(&view()).await.unwrap().parked, 1);
    let ViewRead::Found(Some(row)) = world.reader().row("notes", "a", None).await.unwrap() else {
        panic!("the row's place has an item");
    };
    let [(_, why)] = &world.parked().await[..] else { panic!("one is parked") };
    assert_eq!(row.content, Content::Parked(why.clone()));

    // It fits again by the same fold, because the last event makes it small.
    assert_eq!(retry(&world, &view()).await, shown(1));
    assert_eq!(world.counts(FIRST).await["a"], 4);
    assert!(world.parked().await.is_empty());
    assert_eq!(retry(&world, &view()).await, shown(0));
}

#[tokio::test(start_paused = true)]
async fn a_retry_leaves_a_row_that_still_cannot_be_written_and_a_mended_fold_shows_it() {
    let world = World::new(2, catalog());
    world.publish([noted("n1", &["a"]), too_large()]).await;
    world.run(&view(), FIRST).await.unwrap();
    let left = world.parked().await;
    assert_eq!(retry(&world, &view()).await, Retried { left: left.clone(), ..shown(0) });
    assert_eq!(world.parked().await, left);
    assert_eq!(retry(&world, &mended()).await, shown(1));
    assert_eq!(world.counts(FIRST).await["a"], 2);
    // From then on it is folded like any other row.
    world.publish([noted("n1", &["a"]), wiped("n1", &["a"]), too_large()]).await;
    world.run(&view(), FIRST).await.unwrap();
    assert_eq!(world.projector().register(&view()).await.unwrap().parked, 1);
    world.publish([wiped("n1", &["a"])]).await;
    world.run(&view(), FIRST).await.unwrap();
    assert_eq!(retry(&world, &view()).await, shown(1));
    assert!(world.rows("notes", FIRST).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_retry_and_a_projector_at_once_lose_no_event() {
    // The projector comes between the retry's reads of checkpoint and row.
    let world = parked(3).await;
    world.wire.inject("TransactWriteItems", 0, Fault::Delay(Duration::from_secs(10)));
    let go_on = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        world.publish([noted("n1", &["a"])]).await;
        world.run(&view(), FIRST).await.unwrap();
    };
    // The fault is injected before, so it meets the first transaction, which is the retry's.
    let (retried, ()) = join(retry(&world, &view()), go_on).await;
    assert_eq!((retried, world.counts(FIRST).await["a"]), (shown(1), 4));

    // The retry comes between the projector's read of the row and its put. In the second world it shows the row as of
    // the checkpoint at which it was parked.
    for events in [4, 3] {
        let world = if events == 4 { parked(4).await } else { just_parked(4).await };
        world.publish([noted("n1", &["a"])]).await;
        world.wire.inject("PutItem", 0, Fault::Delay(Duration::from_secs(10)));
        let retried = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            retry(&world, &mended()).await
        };
        let (ran, retried) = join(world.run(&view(), FIRST), retried).await;
        assert_eq!((retried, ran.unwrap().rows), (shown(1), 1));
        assert_eq!(world.counts(FIRST).await["a"], events);
    }

    // Two retries at once show it once.
    for events in [3, 2] {
        let world = if events == 3 { parked(5).await } else { just_parked(5).await };
        let notes = mended();
        let (one, two) = join(retry(&world, &notes), retry(&world, &notes)).await;
        assert_eq!((one.shown + two.shown, world.counts(FIRST).await["a"]), (1, events));
        assert_eq!(world.projector().register(&notes).await.unwrap().parked, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_row_that_is_parked_before_the_checkpoint_is_retried_after_it() {
    let world = World::new(6, catalog());
    let rows = (0..120).map(|row| format!("{row:03}")).collect();
    world.publish([sized("n1", rows, 400_000)]).await;
    // The first transaction parks 97 rows; the second breaks off.
    world.wire.inject("TransactWriteItems", 1, Fault::error("AccessDeniedException"));
    world.run(&view(), FIRST).await.unwrap_err();
    assert_eq!(world.projector().register(&view()).await.unwrap().parked, 97);
    let waited = world.projector().retry(&view(), &|_| {}).await.unwrap_err();
    assert!(matches!(waited, ViewError::Contention { .. }), "{waited}");
    world.run(&view(), FIRST).await.unwrap();
    assert_eq!(world.projector().register(&view()).await.unwrap().parked, 120);
    assert_eq!(retry(&world, &mended()).await, shown(120));
    let found = world.counts(FIRST).await;
    assert!(found.len() == 120 && found.values().all(|count| *count == 1), "{found:?}");
}

#[tokio::test(start_paused = true)]
async fn a_rebuild_has_no_parked_rows_of_the_generation_before() {
    let world = parked(7).await;
    world.projector().rebuild(&mended(), &|_| {}).await.unwrap();
    assert_eq!(world.counts(SECOND).await["a"], 3);
    assert_eq!(world.projector().register(&view()).await.unwrap().parked, 0);
    // A rebuild that parks rows itself is served with them.
    world.publish([too_large()]).await;
    world.projector().rebuild(&view(), &|_| {}).await.unwrap();
    assert_eq!(world.projector().register(&view()).await.unwrap().parked, 1);
    assert_eq!(world.parked().await.len(), 1);
    assert_eq!(world.counts(generation(3)).await["b"], 2);
}

#[tokio::test(start_paused = true)]
async fn a_run_names_ten_of_the_rows_that_it_parks() {
    let world = World::new(8, catalog());
    let large = |n| sized("n1", vec![format!("r{n:02}")], 400_000);
    world.publish((0..12).map(large)).await;
    let ran: Ran = world.run(&view(), FIRST).await.unwrap();
    assert_eq!((ran.parked, ran.examples.len()), (12, 10));
    assert_eq!(ran.examples[..], world.parked().await[..10]);
    assert_eq!(world.projector().register(&view()).await.unwrap().parked, 12);
}

/// Rows that no item can hold, by the number of bytes that an event asks for.
struct Odd;

#[derive(Reads)]
enum Noted {
    Noted { rows: Vec<String>, bytes: usize },
}

impl View for Odd {
    const NAME: &'static str = "odd";
    type Reads = Noted;
    type Row = Value;

    fn rows(event: &Noted) -> Vec<String> {
        let Noted::Noted { rows, .. } = event;
        rows.clone()
    }

    fn evolve(_row: Option<Value>, _id: &str, event: &Noted) -> Option<Value> {
        let Noted::Noted { bytes, .. } = event;
        Some(match bytes {
            1 => json!({ "": 1 }),
            2 => (0..40).fold(json!(1), |inner, _| json!([inner])),
            3 => json!({ "price": 1e126 }),
            4 => json!({ "x".repeat(70_000): 1 }),
            _ => json!("plain"),
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_row_that_dynamodb_cannot_hold_is_parked() {
    let world = World::new(9, catalog());
    let odd = |n: usize| sized("n1", vec![format!("r{n}")], n);
    world.publish((0..6).map(odd)).await;
    let odd = Definition::of::<Odd>();
    let registered = world.projector().register(&odd).await.unwrap();
    let mut ran = Ran::default();
    world.projector().run(&odd, registered.live, LONG, &mut ran).await.unwrap();
    assert_eq!((ran.present, ran.parked), (true, 4));
    assert_eq!(world.rows("odd", FIRST).await.into_keys().collect::<Vec<_>>(), ["r0", "r5"]);
    let causes = world.projector().parked(&odd).await.unwrap();
    let causes: Vec<_> = causes.iter().map(|(_, parked)| &*parked.cause).collect();
    assert!(
        causes.iter().all(|cause| cause.starts_with("the row can't be stored: row")),
        "{causes:?}"
    );
    assert!(causes.iter().all(|cause| cause.len() <= 1_000));
}

#[tokio::test(start_paused = true)]
async fn a_stored_row_that_the_view_cannot_read_is_parked() {
    let world = World::new(10, catalog());
    world.publish([noted("n1", &["a", "b"])]).await;
    world.run(&view(), FIRST).await.unwrap();
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let key = [("view".to_owned(), text("notes#1")), ("id".to_owned(), text("a"))];
    let update = world.client.update_item().table_name("views").set_key(Some(key.into()));
    let update = update.update_expression("SET #row.#count = :many");
    let update = update.expression_attribute_names("#row", "row");
    let update = update.expression_attribute_names("#count", "count");
    update.expression_attribute_values(":many", text("many")).send().await.unwrap();
    world.publish([noted("n1", &["a", "b"])]).await;
    assert_eq!(world.run(&view(), FIRST).await.unwrap().parked, 1);
    assert_eq!(world.counts(FIRST).await, BTreeMap::from([("b".to_owned(), 2)]));
    let [(row, why)] = &world.parked().await[..] else { panic!("one is parked") };
    assert!(
        row == "a" && why.cause.starts_with("the row can't be folded: invalid type"),
        "{why:?}"
    );
    assert_eq!(retry(&world, &view()).await, shown(1));
    let ViewRead::Found(row) = world.reader().row("notes", "a", None).await.unwrap() else {
        panic!("it is there");
    };
    assert_eq!(count(row), 2);
}
