//! Every event has its effect once.

use std::sync::Arc;
use std::time::Duration;

use futures::future::{join, join3};
use ringfence_aws::Retry;
use ringfence_aws::wire::{Capacity, Edit, Fault, Limits, Wire};
use ringfence_core::Catalogs;
use ringfence_dcb_log::DcbLog;
use ringfence_feed::Index;
use ringfence_harness::bound;
use ringfence_views::{Projector, Ran};
use serde_json::json;

use crate::notes::{catalog, noted, sized, view, wiped};
use crate::weather::Weather;
use crate::world::{FIRST, LONG, SECOND, World, store};

fn counts(of: &[(&str, u64)]) -> std::collections::BTreeMap<String, u64> {
    of.iter().map(|(id, count)| ((*id).to_owned(), *count)).collect()
}

#[tokio::test(start_paused = true)]
async fn rows_follow_from_the_events_and_are_deleted_when_a_fold_removes_them() {
    let world = World::new(1, catalog());
    world.publish([noted("n1", &["a", "b"]), noted("n2", &["a"]), wiped("n3", &["b", "c"])]).await;
    let ran = world.run(&view(), FIRST).await.unwrap();
    assert_eq!((ran.events, ran.batches, ran.present), (3, 1, true));
    assert_eq!(world.counts(FIRST).await, counts(&[("a", 2)]));
    world.publish([noted("n3", &["b"]), wiped("n1", &["a"]), noted("n1", &["a"])]).await;
    world.run(&view(), FIRST).await.unwrap();
    assert_eq!(world.counts(FIRST).await, counts(&[("a", 1), ("b", 1)]));
}

#[tokio::test(start_paused = true)]
async fn a_row_that_changed_after_it_was_read_is_read_again() {
    let world = World::new(2, catalog());
    world.publish([noted("n1", &["a", "b"])]).await;
    world.run(&view(), FIRST).await.unwrap();
    world.publish([noted("n1", &["a", "b"])]).await;
    // One of the rows that another run has put is not visible yet.
    let hidden = Edit::new(|answer| {
        let rows = answer["Responses"]["views"].as_array_mut().unwrap();
        rows.retain(|row| row["id"]["S"] == "a");
    });
    // The first batch has the events.
    world.wire.inject("BatchGetItem", 1, Fault::Reply(hidden));
    world.run(&view(), FIRST).await.unwrap();
    assert!(world.wire.is_spent());
    assert_eq!(world.counts(FIRST).await, counts(&[("a", 2), ("b", 2)]));
    // The same, with an older version of the row.
    world.publish([noted("n1", &["a"])]).await;
    let older = Edit::new(|answer| {
        let row = &mut answer["Responses"]["views"][0];
        row["as_of"]["N"] = "1".into();
        row["row"]["M"]["count"]["N"] = "1".into();
    });
    world.wire.inject("BatchGetItem", 1, Fault::Reply(older));
    world.run(&view(), FIRST).await.unwrap();
    assert_eq!(world.counts(FIRST).await, counts(&[("a", 3), ("b", 2)]));
}

#[tokio::test(start_paused = true)]
async fn rows_that_something_else_keeps_changing_stop_the_view() {
    let world = World::new(3, catalog());
    world.publish([noted("n1", &["a"])]).await;
    world.run(&view(), FIRST).await.unwrap();
    world.publish([noted("n1", &["a"])]).await;
    for _ in 0..20 {
        world.wire.inject(
            "BatchGetItem",
            0,
            Fault::Reply(Edit::new(|answer| {
                answer["Responses"]["views"] = json!([]);
            })),
        );
    }
    let error = world.run(&view(), FIRST).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "view notes: gave up after 8 attempts; another program changes its rows"
    );
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_does_not_repeat_its_batch() {
    for lost in ["PutItem", "UpdateItem", "TransactWriteItems"] {
        let world = World::new(4, catalog());
        world.publish([noted("n1", &["a", "b"]), wiped("n1", &["b"])]).await;
        world.projector().register(&view()).await.unwrap();
        if lost == "UpdateItem" {
            world.publish([noted("n1", &["b"])]).await;
        }
        world.wire.inject(lost, 0, Fault::LostAfter);
        if lost == "TransactWriteItems" {
            world.wire.inject(lost, 1, Fault::without_token());
        }
        world.run(&view(), FIRST).await.unwrap();
        assert!(world.wire.is_spent());
        assert_eq!(world.counts(FIRST).await["a"], 1, "{lost}");
    }
}

#[tokio::test(start_paused = true)]
async fn runs_that_are_out_of_time_get_further_each_time() {
    let world = World::new(6, catalog());
    let rows = |n| (0..60).map(|row| format!("{n}/{row}")).chain(["all".to_owned()]).collect();
    world.publish((0..12).map(|n| sized("n1", rows(n), 0))).await;
    let weather = Arc::new(Weather::new(6, 0));
    world.direct(&weather);
    let (projector, mut runs, mut ran) = (world.projector(), 0, Ran::default());
    projector.register(&view()).await.unwrap();
    while !ran.present {
        ran = Ran::default();
        projector.run(&view(), FIRST, Duration::from_millis(30), &mut ran).await.unwrap();
        runs += 1;
        assert!(runs < 100, "it never gets further");
    }
    assert!(runs > 1, "it took one run");
    weather.calm();
    let found = world.counts(FIRST).await;
    assert_eq!((found["all"], found["11/59"], found.len()), (12, 1, 12 * 60 + 1));
}

#[tokio::test(start_paused = true)]
async fn projectors_at_once_count_each_event_once() {
    for seed in 0..bound(4, 12) {
        let world = World::new(seed, catalog());
        let weather = Arc::new(Weather::new(seed, 20));
        world.publish((0..5).map(|_| noted("n1", &["all", "n1"]))).await;
        world.projector().register(&view()).await.unwrap();
        world.direct(&weather);
        let project = async || {
            let (projector, mut ran) = (world.projector(), Ran::default());
            for _ in 0..10 {
                // A failure is a crash: the next round goes on.
                let _ = projector.run(&view(), FIRST, LONG, &mut ran).await;
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let write = async {
            let index = async |note| {
                for _ in 0..10 {
                    world.append(vec![noted(note, &["all", note])]).await;
                    let partition = ringfence_core::BoundaryId::tag("noteId", note);
                    let _ = world.indexer.index([partition], Retry::default()).await;
                }
            };
            join(index("n2"), index("n3")).await
        };
        join3(project(), project(), write).await;
        weather.calm();
        let partitions =
            ["n1", "n2", "n3"].map(|note| ringfence_core::BoundaryId::tag("noteId", note));
        world.indexer.index(partitions, Retry::default()).await;
        world.run(&view(), FIRST).await.unwrap();
        let expected = counts(&[("all", 25), ("n1", 5), ("n2", 10), ("n3", 10)]);
        assert_eq!(world.counts(FIRST).await, expected, "seed {seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn projectors_that_a_table_refuses_catch_up_and_count_each_event_once() {
    let world = World::new(9, catalog());
    world.publish((0..120).map(|n| noted(&format!("n{n}"), &["all", &format!("r{n}")]))).await;
    world.projector().register(&view()).await.unwrap();
    let limits = Limits { ranges: 2, write: 10.0, read: 100.0 };
    let capacity = Capacity::new(store(&world.engine), limits);
    let wire = Wire::default();
    wire.direct(Arc::new(Weather::new(9, 0)));
    let client = wire.client_of(capacity.backend());
    let project = async || {
        let log = DcbLog::new(client.clone(), "events", catalog().unwrap(), world.clock.clone());
        let index = Index::new(client.clone(), "index", [log.into()]);
        let catalogs = Catalogs::default();
        let projector =
            Projector::new(client.clone(), index, "views", catalogs, world.clock.clone());
        let mut ran = Ran::default();
        while !ran.present {
            match projector.run(&view(), FIRST, LONG, &mut ran).await {
                Ok(()) => {}
                Err(error) => assert!(error.is_transient(), "{error:?}"),
            }
        }
    };
    tokio::time::timeout(LONG, join(project(), project())).await.expect("they catch up");
    let log = DcbLog::new(client.clone(), "events", catalog().unwrap(), world.clock.clone());
    let index = Index::new(client.clone(), "index", [log.into()]);
    let rebuilds =
        Projector::new(client.clone(), index, "views", Catalogs::default(), world.clock.clone());
    // What is refused after the rows are put does not begin them again.
    while let Err(error) = rebuilds.rebuild(&view(), &|_| {}).await {
        assert!(error.is_transient(), "{error:?}");
    }
    assert!(capacity.refused() > 10, "{} refused", capacity.refused());
    let found = world.counts(SECOND).await;
    assert_eq!((found["all"], found.len()), (120, 121));
    assert!(found.iter().all(|(id, count)| id == "all" || *count == 1), "{found:?}");
}

#[tokio::test(start_paused = true)]
async fn events_that_touch_nothing_move_the_checkpoint_alone() {
    let world = World::new(7, catalog());
    world.run(&view(), FIRST).await.unwrap();
    world.publish((0..50).map(|_| noted("n1", &[]))).await;
    world.wire.forget();
    let ran = world.run(&view(), FIRST).await.unwrap();
    assert_eq!((ran.events, ran.batches, ran.rows), (50, 1, 0));
    let writes = world.wire.take().into_iter().map(|exchange| exchange.operation);
    let writes: Vec<_> = writes.filter(|o| o.contains("Write") || o.contains("Update")).collect();
    assert_eq!(writes, ["UpdateItem"]);
    // It moves again after many of them, so that they are not all read again after a crash.
    for _ in 0..20 {
        world.append((0..50).map(|_| noted("n1", &[])).collect()).await;
    }
    world.publish([noted("n1", &[])]).await;
    let ran = world.run(&view(), FIRST).await.unwrap();
    assert_eq!((ran.events, ran.batches, ran.rows), (1_001, 2, 0));
    // After an event that touches a row, the checkpoint moves past them at once.
    world.publish([noted("n1", &["a"]), noted("n1", &[]), noted("n1", &[])]).await;
    let ran = world.run(&view(), FIRST).await.unwrap();
    assert_eq!((ran.events, ran.batches, ran.rows), (3, 1, 1));
    assert_eq!(ran.checkpoint, Some(world.index.end().await.unwrap()));
}

#[tokio::test(start_paused = true)]
async fn an_event_costs_a_read_and_a_write_of_its_row_and_a_write_of_the_checkpoint() {
    let world = World::new(8, catalog());
    world.publish([noted("n1", &["a"])]).await;
    world.run(&view(), FIRST).await.unwrap();
    world.publish([noted("n1", &["a"])]).await;
    let (projector, mut ran) = (world.projector(), Ran::default());
    world.wire.forget();
    projector.run(&view(), FIRST, LONG, &mut ran).await.unwrap();
    let expected = [
        ("GetItem", 1.0),      // the checkpoint
        ("Query", 0.5),        // the new page
        ("BatchGetItem", 0.5), // the event, from its log
        ("BatchGetItem", 1.0), // the row
        ("PutItem", 1.0),      // the row
        ("UpdateItem", 1.0),   // the checkpoint
        ("Query", 0.5),        // nothing more, by a replica
        ("Query", 1.0),        // nothing more, by a strong read
    ];
    let mut found = world.units();
    // The feed reads ahead, at the same time as rows are read and written.
    let mut expected: Vec<_> = expected.map(|(name, units)| (name.to_owned(), units)).into();
    let order = |a: &(String, f64), b: &(String, f64)| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1));
    found.sort_by(order);
    expected.sort_by(order);
    assert_eq!(found, expected);

    // A hundred events of one row are one write of it.
    world.publish((0..100).map(|_| noted("n1", &["a"]))).await;
    world.wire.forget();
    projector.run(&view(), FIRST, LONG, &mut ran).await.unwrap();
    let units = world.units().into_iter();
    let writes = units.filter(|(name, _)| ["PutItem", "UpdateItem"].contains(&&**name));
    let one = |name: &str| (name.to_owned(), 1.0);
    assert_eq!(writes.collect::<Vec<_>>(), [one("PutItem"), one("UpdateItem")]);

    // A row that is removed goes with the checkpoint.
    world.publish([wiped("n1", &["a"])]).await;
    world.wire.forget();
    projector.run(&view(), FIRST, LONG, &mut ran).await.unwrap();
    let writes = world.units().into_iter().filter(|(name, _)| name.contains("Write"));
    assert_eq!(writes.collect::<Vec<_>>(), [("TransactWriteItems".to_owned(), 4.0)]);
}
