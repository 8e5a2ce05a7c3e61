//! Rounds of project-views over all views.

use std::time::Duration;

use ringfence_aws::wire::Fault;
use ringfence_feed::Until;
use ringfence_views::project_views::run_views;
use ringfence_views::{Definition, View};
use serde_json::json;

use crate::notes::{Consumed, Notes, Row, catalog, noted, poison, view, wiped};
use crate::world::{FIRST, SECOND, World};

/// The same rows under another name, by a fold that never sees the poison.
pub(crate) struct Others;

#[derive(ringfence_core::Reads)]
pub(crate) enum Wipes {
    Wiped { rows: Vec<String> },
}

impl View for Others {
    const NAME: &'static str = "others";
    type Reads = Wipes;
    type Row = Row;

    fn rows(event: &Wipes) -> Vec<String> {
        let Wipes::Wiped { rows } = event;
        rows.clone()
    }

    fn evolve(row: Option<Row>, id: &str, _event: &Wipes) -> Option<Row> {
        Notes::evolve(
            row,
            id,
            &Consumed::Noted { note_id: ringfence_core::kit::id("n"), rows: Vec::new(), bytes: 0 },
        )
    }
}

#[tokio::test(start_paused = true)]
async fn a_view_that_fails_fails_the_round_but_neither_stops_nor_delays_others() {
    let world = World::new(6, catalog());
    let wiped = |row: &str| wiped("n1", &[row]);
    world.publish([noted("n1", &["a"])]).await;
    for _ in 0..2 {
        world.append(vec![poison("n1"); 50]).await;
    }
    world.publish([poison("n1"), wiped("b")]).await;
    let (views, seconds) = ([view(), Definition::of::<Others>()], Duration::from_secs);
    let projector = world.projector();
    let time = seconds(10);
    let running = run_views(&projector, &views, Until::Present, time, &world.clock, "r-1");
    let meanwhile = async {
        tokio::time::sleep(seconds(5)).await;
        let before = world.rows("others", FIRST).await.len();
        world.publish([wiped("c")]).await;
        tokio::time::sleep(seconds(2)).await;
        [before, world.rows("others", FIRST).await.len()]
    };
    let (round, rows) = futures::future::join(running, meanwhile).await;
    assert_eq!(rows, [1, 2]);
    assert_eq!(round.unfinished.len(), 1);
    let why = "notes: view notes: 100 events are parked, the limit, and event noteId:n1/102 can't be read either;";
    assert!(round.unfinished[0].starts_with(why), "{round:?}");
    let line = &round.line.json;
    let names = ["message", "outcome", "level", "furthest_behind", "rows_parked"];
    let found: Vec<_> = names.iter().map(|name| line[name].clone()).collect();
    assert_eq!(json!(found), json!(["views failed", "failed", "ERROR", "notes", 100]));
    let metrics = line["_aws"]["CloudWatchMetrics"][0]["Metrics"].as_array().unwrap();
    assert_eq!(metrics.len(), 2);
    assert!(metrics.iter().all(|metric| line[metric["Name"].as_str().unwrap()].is_number()));
    assert_eq!(line["_aws"]["CloudWatchMetrics"][0]["Dimensions"], json!([[]]));
    let [notes, others] = &line["views"].as_array().unwrap()[..] else { panic!("{round:?}") };
    assert_eq!(notes["parked"].as_array().unwrap().len(), 10, "it does not name a hundred");
    for (figures, expected) in
        [(notes, json!(["notes", "failed", 3, 100])), (others, json!(["others", "present", 0, 0]))]
    {
        let names = ["view", "outcome", "events_behind", "rows_parked"];
        let found: Vec<_> = names.iter().map(|name| figures[name].clone()).collect();
        assert_eq!(json!(found), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_view_that_is_behind_does_not_stop_others() {
    let world = World::new(13, catalog());
    world.publish([noted("n1", &["a"])]).await;
    let (views, seconds) = ([view(), Definition::of::<Others>()], Duration::from_secs);
    world.wire.inject("PutItem", 0, Fault::Delay(seconds(20)));
    let projector = world.projector();
    let running = world.round(&projector, &views);
    let meanwhile = async {
        tokio::time::sleep(seconds(10)).await;
        assert!(world.wire.is_spent(), "notes waits for its rows");
        world.publish([wiped("n1", &["b"])]).await;
        tokio::time::sleep(seconds(2)).await;
        [world.rows("others", FIRST).await.len(), world.rows("notes", FIRST).await.len()]
    };
    let (round, rows) = futures::future::join(running, meanwhile).await;
    assert_eq!((rows, round.unfinished), ([1, 0], vec![]));
    assert_eq!(world.rows("notes", FIRST).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_lag_is_logged_and_measured_for_each_view_that_could_be_read() {
    let world = World::new(9, catalog());
    world.publish([noted("n1", &["a"])]).await;
    let projector = world.projector();
    for asked in [false, true] {
        if !asked {
            // The registry can be read, the end of the index can't.
            world.wire.inject("Query", 0, Fault::error("AccessDeniedException"));
        }
        let time = Duration::from_millis(500);
        let round =
            run_views(&projector, &[view()], Until::Present, time, &world.clock, "r-1").await;
        let line = &round.line.json;
        assert_eq!(line["outcome"], if asked { "present" } else { "failed" });
        assert_eq!(line["views"][0].get("events_behind").is_some(), asked, "{line}");
        let metrics = line["_aws"]["CloudWatchMetrics"][0]["Metrics"].to_string();
        assert_eq!(metrics.contains("view_lag"), asked, "{line}");
    }
}

#[tokio::test(start_paused = true)]
async fn events_that_a_view_does_not_read_make_it_no_later() {
    let (world, views) = (World::new(14, catalog()), [Definition::of::<Others>()]);
    world.publish([wiped("n1", &["b"])]).await;
    let projector = world.projector();
    let run = async || {
        let time = Duration::from_secs(1);
        run_views(&projector, &views, Until::Present, time, &world.clock, "r-1").await.line.json
    };
    run().await;
    // Its checkpoint can't move.
    for (event, is_late) in [(noted("n1", &["a"]), false), (wiped("n1", &["c"]), true)] {
        world.publish([event]).await;
        for operation in ["UpdateItem", "TransactWriteItems"] {
            world.wire.inject(operation, 0, Fault::Delay(Duration::from_secs(2)));
        }
        tokio::time::sleep(Duration::from_secs(60)).await;
        let line = run().await;
        assert_eq!((&line["outcome"], &line["level"]), (&json!("behind"), &json!("WARN")));
        assert_eq!(line["view_lag"].as_u64().unwrap() > 60_000, is_late, "{line}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_round_without_time_says_that_it_is_behind() {
    let world = World::new(8, catalog());
    // More than two epochs of the index.
    let notes: Vec<_> = (0..50).map(|n| format!("n{n}")).collect();
    world.publish(notes.iter().map(|note| noted(note, &["a"]))).await;
    let late = Fault::Delay(Duration::from_secs(5));
    world.wire.inject("PutItem", 0, late);
    let projector = world.projector();
    let time = Duration::from_secs(2);
    let round = run_views(&projector, &[view()], Until::Present, time, &world.clock, "r-1").await;
    assert_eq!(round.unfinished, ["notes: behind"]);
    let line = &round.line.json;
    let behind = &line["views"][0]["events_behind"];
    assert_eq!((&line["level"], behind), (&json!("WARN"), &json!(50)));
    assert!(line["view_lag"].as_u64().is_some_and(|ms| ms >= 2_000), "{line}");
}

#[tokio::test(start_paused = true)]
async fn an_event_that_comes_while_a_rebuild_changes_over_is_in_the_new_rows() {
    let world = World::new(6, catalog());
    world.publish([noted("n1", &["a"])]).await;
    world.run(&view(), FIRST).await.unwrap();
    // After the begin of the generation the change over.
    world.wire.inject("TransactWriteItems", 1, Fault::Delay(Duration::from_secs(2)));
    let rebuild = async { world.projector().rebuild(&view(), &|_| {}).await.unwrap() };
    // Its notification finds the old generation.
    let event = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        world.publish([noted("n1", &["a"])]).await;
    };
    let (live, ()) = futures::future::join(rebuild, event).await;
    assert!(live == SECOND && world.wire.is_spent());
    assert_eq!(world.counts(SECOND).await["a"], 2);
}
