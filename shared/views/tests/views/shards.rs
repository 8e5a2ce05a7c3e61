//! Rows that are spread over several keys.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use ringfence_aws::wire::{Capacity, Director, Fault, Limits};
use ringfence_harness::bound;
use ringfence_views::{Definition, Generation, ListPage, Listed, Parked, Ran, ViewRead};

use serde_json::Value;
use tokio::time::Instant;

use crate::notes::{catalog, noted, sized, spread, view, wiped};
use crate::parked::retry;
use crate::together::{Crash, expected};
use crate::world::{LONG, SECOND, World, store};

/// The partition keys of all rows of the notes.
async fn keys(world: &World) -> BTreeSet<String> {
    let items = world.client.scan().table_name("views").send().await.unwrap().items.unwrap();
    let keys = items.iter().map(|item| item["view"].as_s().unwrap().clone());
    keys.filter(|key| key.starts_with("notes#")).collect()
}

async fn listed(world: &World, page: &ListPage) -> Listed {
    match world.reader().list("notes", page, None).await.unwrap() {
        ViewRead::Found(listed) => listed,
        other => panic!("it is not served: {other:?}"),
    }
}

/// A rebuild to another number of shards crashes at a request, or before its answer, and what it sent arrives late.
/// Another one builds the view. Returns whether it crashed.
async fn crashed(at: usize, is_sent: bool, [before, after]: [u32; 2]) -> bool {
    let world = World::new(5, catalog());
    let [before, after] = [before, after].map(spread);
    let first = Generation::first(&before);
    world.publish([noted("n1", &["a", "b", "c", "d", "e"]), wiped("n1", &["b"])]).await;
    world.run(&before, first).await.unwrap();
    let crash = |at| Arc::new(Crash { requests: AtomicUsize::new(0), at, is_sent, mutant: None });
    world.direct(&crash(at));
    let (projector, none) = (world.projector(), |_| {});
    let crashed = tokio::time::timeout(LONG / 2, projector.rebuild(&after, &none)).await.is_err();
    world.direct(&crash(usize::MAX));
    let live = world.projector().register(&before).await.unwrap().live;
    world.publish([noted("n1", &["a", "f"])]).await;
    world.run(&before, live).await.unwrap();
    assert_eq!(world.counts(live).await, expected(&world).await, "{at} {is_sent}: before");
    let rebuilt = world.projector().rebuild(&after, &none).await.unwrap();
    // A rebuild that was interrupted after its rows were written is completed first.
    let live = match rebuilt.number {
        1 => world.projector().rebuild(&after, &none).await.unwrap(),
        _ => rebuilt,
    };
    assert_eq!(live.shards, after.shards, "{at} {is_sent}");
    assert_eq!(world.counts(live).await, expected(&world).await, "{at} {is_sent}: after");
    // Requests that were late have arrived, and rows that they left go with the next rebuild.
    tokio::time::sleep(3 * LONG).await;
    let last = world.projector().rebuild(&before, &none).await.unwrap();
    assert_eq!(world.counts(last).await, expected(&world).await, "{at} {is_sent}: in the end");
    let of_last = |key: &String| key.strip_prefix(&format!("notes#{last}")).is_some();
    assert!(keys(&world).await.iter().all(of_last), "{at} {is_sent}: {:?}", keys(&world).await);
    crashed
}

#[tokio::test(start_paused = true)]
async fn a_rebuild_with_other_shards_that_crashes_has_the_rows_of_a_serial_fold() {
    // Every fifth request, and in `cargo proof` each.
    for (is_sent, shards, first) in [(false, [1, 3], 0), (true, [3, 1], 2)] {
        for at in (bound(first, 0)..).step_by(bound(5, 1)) {
            if !crashed(at, is_sent, shards).await {
                assert!(at > 20, "it has only {at} requests");
                break;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn rows_of_the_old_generation_put_after_a_flip_go_with_the_next_rebuild() {
    for shards in [1, 3] {
        put_after_a_flip(&spread(shards)).await;
    }
}

async fn put_after_a_flip(old: &Definition) {
    let (world, first) = (World::new(4, catalog()), Generation::first(old));
    world.publish([noted("n1", &["a"])]).await;
    world.run(old, first).await.unwrap();
    world.publish([noted("n1", &["a"])]).await;
    // It has read the row, and is about to write it.
    world.wire.inject("PutItem", 0, Fault::Delay(Duration::from_secs(10)));
    let late = async {
        let (projector, mut ran) = (world.projector(), Ran::default());
        projector.run(old, first, LONG, &mut ran).await.unwrap();
        ran
    };
    let rebuild = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        world.projector().rebuild(&view(), &|_| {}).await.unwrap();
    };
    let (ran, ()) = futures::future::join(late, rebuild).await;
    assert_eq!((ran.batches, ran.overtaken), (0, 1));
    assert_eq!(world.counts(SECOND).await["a"], 2);
    assert_eq!(world.rows("notes", first).await.len(), 1);
    world.projector().rebuild(&view(), &|_| {}).await.unwrap();
    assert!(world.rows("notes", first).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_page_has_at_most_1_mb_and_reads_few_rows_of_each_shard() {
    let ids: Vec<String> = (0..120).map(|n| format!("r{n:03}")).collect();
    for shards in [1, 4] {
        let (world, view) = (World::new(6, catalog()), spread(shards));
        world.publish([sized("n1", ids[..24].to_vec(), 100_000)]).await;
        world.run(&view, Generation::first(&view)).await.unwrap();
        let (mut seen, mut page) = (Vec::new(), ListPage { limit: 100, ..ListPage::default() });
        loop {
            let Listed { rows, next, .. } = listed(&world, &page).await;
            assert!((1..=11).contains(&rows.len()), "{}", rows.len());
            seen.extend(rows.into_iter().map(|row| row.id));
            page.after = next;
            if page.after.is_none() {
                break;
            }
        }
        assert_eq!(seen, ids[..24]);
    }
    let (world, view) = (World::new(7, catalog()), spread(4));
    world.publish([sized("n1", ids.clone(), 400)]).await;
    world.run(&view, Generation::first(&view)).await.unwrap();
    world.wire.forget();
    let page = ListPage { limit: 40, ..ListPage::default() };
    let rows = listed(&world, &page).await.rows.into_iter();
    assert_eq!(rows.map(|row| row.id).collect::<Vec<_>>(), ids[..40]);
    // Generation, 24 rows of each shard, generation.
    let cost = |operation: &str, units| (operation.to_owned(), units);
    let mut expected = vec![cost("GetItem", 0.5)];
    expected.extend((0..4).map(|_| cost("Query", 1.5)));
    expected.push(cost("GetItem", 1.0));
    assert_eq!(world.units(), expected);
}

/// Requests take some milliseconds.
struct Line;

impl Director for Line {
    fn faults(&self, operation: &str, _request: &Value) -> Vec<Fault> {
        vec![Fault::Delay(Duration::from_millis(if operation == "PutItem" { 9 } else { 5 }))]
    }

    fn carried_out(&self, _operation: &str, _request: &Value, _status: u16) {}
}

#[tokio::test(start_paused = true)]
async fn shards_take_more_rows_a_second_than_one_key() {
    let mut world = World::new(9, catalog());
    let rows = |n| (0..100).map(|row| format!("{n}-{row}")).collect();
    world.publish((0..20).map(|n| sized("n1", rows(n), 0))).await;
    let limits = Limits { ranges: 40, ..Limits::default() };
    let capacity = Capacity::new(store(&world.engine), limits);
    world.client = world.wire.client_of(capacity.backend());
    world.direct(&Arc::new(Line));
    // One key takes two seconds, and 9,000 rows a second are what many batches reach.
    let (view, begun) = (spread(32), Instant::now());
    let ran = world.run(&view, Generation::first(&view)).await.unwrap();
    assert_eq!((ran.rows, ran.present), (2_000, true));
    assert!(begun.elapsed() < Duration::from_millis(500), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn parked_rows_of_all_shards_are_listed_and_tried_again_once_each() {
    let (world, view) = (World::new(8, catalog()), spread(3));
    // A row whose id is too long is parked under its beginning.
    let ids: Vec<String> = (0..130).map(|n| format!("{n:03}{}", "x".repeat(1_100))).collect();
    world.publish([sized("n1", ids.clone(), 0)]).await;
    let ran = world.run(&view, Generation::first(&view)).await.unwrap();
    assert_eq!(ran.parked, 130);
    let begin = |parked: &(String, Parked)| parked.0[..3].to_owned();
    let begins: Vec<_> = ids.iter().map(|id| id[..3].to_owned()).collect();
    let parked = world.projector().parked(&view).await.unwrap();
    assert_eq!(parked.iter().map(begin).collect::<Vec<_>>(), begins);
    let mut left: Vec<_> = retry(&world, &view).await.left.iter().map(begin).collect();
    left.sort();
    assert_eq!(left, begins);
}
