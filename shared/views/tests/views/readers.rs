//! What readers see.

use std::time::Duration;

use futures::future::join;
use ringfence::BoundaryId;
use ringfence_dynamo::wire::Fault;
use ringfence_views::{ListPage, Listed, Read, Shown, Wait};

use crate::notes::{catalog, noted, view};
use crate::world::{FIRST, World, wait};

#[track_caller]
fn found<T: std::fmt::Debug>(read: Read<T>) -> T {
    match read {
        Read::Found(found) => found,
        other => panic!("not found: {other:?}"),
    }
}

fn page(limit: u16, prefix: &str, after: Option<String>) -> ListPage {
    ListPage { prefix: prefix.to_owned(), after, limit }
}

#[tokio::test(start_paused = true)]
async fn a_view_that_never_ran_is_unknown() {
    let world = World::new(1, catalog());
    assert_eq!(world.reader().row("notes", "a", None).await.unwrap(), Read::UnknownView);
    let listed = world.reader().list("notes", &page(1, "", None), None).await.unwrap();
    assert_eq!(listed, Read::UnknownView);
    let event = &world.publish([noted("n1", &["a"])]).await[0];
    let row = world.reader().row("notes", "a", Some(&wait(event, 5))).await.unwrap();
    assert_eq!(row, Read::UnknownView);
}

#[tokio::test(start_paused = true)]
async fn pages_hold_every_row_once_in_the_order_of_ids() {
    let world = World::new(2, catalog());
    let ids: Vec<String> = (0..23).map(|n| format!("{}/{n:02}", ["a", "b"][n % 2])).collect();
    world.publish(ids.iter().map(|id| noted("n1", &[id]))).await;
    world.run(&view(), FIRST).await.unwrap();
    let reader = world.reader();
    for (prefix, limit) in
        [("", 100), ("", 1), ("", 5), ("b/", 4), ("b/", 11), ("c", 3), ("b/2", 9)]
    {
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let page = page(limit, prefix, after);
            let Listed { rows, next, as_of } =
                found(reader.list("notes", &page, None).await.unwrap());
            assert!(rows.len() <= usize::from(limit));
            // The last event is behind the first epoch, which ends with 23 entries.
            assert_eq!(as_of.to_string(), "23");
            seen.extend(rows.into_iter().map(|row| row.id));
            after = next;
            if after.is_none() {
                break;
            }
        }
        let mut expected: Vec<_> =
            ids.iter().filter(|id| id.starts_with(prefix)).cloned().collect();
        expected.sort();
        assert_eq!(seen, expected, "{limit} rows with {prefix:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_waits_for_the_event_that_it_has_to_show() {
    let world = World::new(3, catalog());
    world.publish([noted("n1", &["a"])]).await;
    world.run(&view(), FIRST).await.unwrap();
    let event = world.append(vec![noted("n1", &["a"])]).await.remove(0);
    let reader = world.reader();
    let later = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        world.publish([]).await;
        let retry = ringfence_dynamo::Retry::default();
        world.indexer.index([event.partition.clone()], retry).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        world.run(&view(), FIRST).await.unwrap();
    };
    let ask = wait(&event, 5_000);
    let (row, ()) = join(reader.row("notes", "a", Some(&ask)), later).await;
    let Shown { row, as_of, .. } = found(row.unwrap()).unwrap();
    assert_eq!((row["count"].as_u64(), as_of.to_string()), (Some(2), "2".to_owned()));
    // What is shown already is not waited for.
    let none = Wait { most: Duration::ZERO, ..ask };
    found(reader.list("notes", &page(1, "", None), Some(&none)).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_waits_too_long_says_where_the_view_is() {
    let world = World::new(4, catalog());
    world.publish([noted("n1", &["a"])]).await;
    world.run(&view(), FIRST).await.unwrap();
    let event = &world.publish([noted("n1", &["a"])]).await[0];
    let reader = world.reader();
    let before = world.clock.now_ms();
    let row = reader.row("notes", "a", Some(&wait(event, 700))).await.unwrap();
    let at = |text: &str| Some(text.parse().unwrap());
    assert_eq!(row, Read::Behind { until: at("2"), at: at("1") });
    assert!(world.clock.now_ms() - before <= 700);
    let nowhere = Wait {
        partition: BoundaryId::tag("noteId", "n9"),
        position: "1719100800000-x".parse().unwrap(),
        most: Duration::from_millis(50),
    };
    let row = reader.row("notes", "a", Some(&nowhere)).await.unwrap();
    assert_eq!(row, Read::Behind { until: None, at: None });
}

#[tokio::test(start_paused = true)]
async fn a_row_that_is_deleted_under_a_reader_is_found_in_the_next_generation() {
    for list in [false, true] {
        let world = World::new(5, catalog());
        world.publish([noted("n1", &["a"])]).await;
        world.run(&view(), FIRST).await.unwrap();
        // The reader knows the generation, and the view is rebuilt before it reads the row.
        let late = Fault::Delay(Duration::from_secs(10));
        match list {
            false => world.wire.inject("GetItem", 1, late),
            true => world.wire.inject("Query", 0, late),
        }
        let reader = world.reader();
        let read = async {
            if list {
                found(reader.list("notes", &page(1, "", None), None).await.unwrap()).rows.pop()
            } else {
                found(reader.row("notes", "a", None).await.unwrap())
            }
        };
        let rebuild = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            world.projector().rebuild(&view(), &|_| {}).await.unwrap();
            assert!(world.rows("notes", FIRST).await.is_empty());
        };
        let (row, ()) = join(read, rebuild).await;
        assert_eq!(row.expect("the row is there").row["count"], 1, "list: {list}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_row_costs_half_a_unit_and_half_a_unit_to_find_it() {
    let world = World::new(6, catalog());
    let event = &world.publish([noted("n1", &["a"])]).await[0];
    world.run(&view(), FIRST).await.unwrap();
    let reader = world.reader();
    let _ = world.wire.take();
    let get = |units: &[f64]| units.iter().map(|u| ("GetItem".to_owned(), *u)).collect::<Vec<_>>();
    found(reader.row("notes", "a", None).await.unwrap());
    assert_eq!(world.units(), get(&[0.5, 0.5]));
    // Generation, where the event is, checkpoint, row: strong.
    found(reader.row("notes", "a", Some(&wait(event, 0))).await.unwrap());
    assert_eq!(world.units(), get(&[1.0, 1.0, 1.0, 1.0]));
}
