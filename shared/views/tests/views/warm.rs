//! What a process remembers between two runs saves reads, and is only a hint.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ringfence_aws::wire::{Director, Fault};
use ringfence_feed::Until;
use ringfence_views::project_views::run_views;
use ringfence_views::{Definition, Projector};
use serde_json::{Value, json};

use crate::limits::Toggled;
use crate::notes::{Lenient, Notes, catalog, noted, poison, view};
use crate::rounds::Others;
use crate::world::{FIRST, LONG, SECOND, World};

/// The members of the line of a run that is notified of all pages.
async fn round(world: &World, projector: &Projector, views: &[Definition]) -> Value {
    let (until, time) = (world.notification(), LONG);
    let round = run_views(projector, views, until, time, &world.clock, "request-1").await;
    assert!(round.unfinished.is_empty(), "{round:?}");
    round.line.json
}

/// A process that remembers that all views move together.
async fn warm(world: &World, views: &[Definition]) -> Projector {
    let projector = world.projector();
    world.publish([noted("n1", &["a"]), noted("n1", &["b"])]).await;
    for _ in 0..2 {
        round(world, &projector, views).await;
    }
    projector
}

#[tokio::test(start_paused = true)]
async fn a_process_that_goes_on_reads_a_page_an_event_and_rows() {
    let (world, views) = (World::new(1, catalog()), [view(), Definition::of::<Others>()]);
    let projector = warm(&world, &views).await;
    let cost = async |event| {
        world.publish([event]).await;
        world.wire.forget();
        let line = round(&world, &projector, &views).await;
        let mut units = world.units();
        units.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let units = units.into_iter().map(|(operation, units)| format!("{operation} {units}"));
        (line, units.collect::<Vec<_>>().join(", "))
    };
    // A view that is touched for the first time reads its own checkpoint.
    cost(noted("n1", &["a"])).await;
    let (line, units) = cost(noted("n1", &["a"])).await;
    // The event, the row, and the page are read by replicas. The row is put, and the views move.
    assert_eq!(units, "BatchGetItem 0.5, BatchGetItem 0.5, PutItem 1, Query 0.5, UpdateItem 1");
    let figures = json!([{ "view": "notes", "rows": 1 }]);
    assert_eq!((&line["outcome"], &line["views"]), (&json!("present"), &figures));
    assert!(line.get("_aws").is_none() && line.to_string().len() < 190, "{line}");
    // The last run has read that page too.
    let again = round(&world, &projector, &views).await;
    assert_eq!((&again["events"], world.units()), (&json!(0), vec![]));
    // An alarm ends by a metric, so it comes now and then.
    tokio::time::sleep(Duration::from_secs(300)).await;
    let (line, _) = cost(noted("n1", &["a"])).await;
    assert_eq!((&line["view_lag"], &line["rows_parked"]), (&json!(0), &json!(0)));
    // Its checkpoint is read again before a row could be put too late.
    tokio::time::sleep(Duration::from_secs(3 * 3_600)).await;
    let (_, units) = cost(noted("n1", &["a"])).await;
    assert!(units.contains("GetItem 1"), "{units}");
    assert_eq!(world.counts(FIRST).await["a"], 5);
}

/// What others do before a process that was warm goes on.
#[derive(Clone, Copy, Debug)]
enum Meanwhile {
    GoesOn,
    Rebuilds,
    Parks,
    Leaves,
}

#[tokio::test(start_paused = true)]
async fn a_process_that_remembers_an_old_state_loses_and_doubles_nothing() {
    use Meanwhile::{GoesOn, Leaves, Parks, Rebuilds};
    for meanwhile in [GoesOn, Rebuilds, Parks, Leaves] {
        let world = World::new(2, catalog());
        let views = [Definition::of::<Notes>(), Definition::of::<Others>()];
        let (projector, other) = (warm(&world, &views).await, world.projector());
        world.publish([noted("n1", &["a"])]).await;
        let mut live = FIRST;
        match meanwhile {
            GoesOn => drop(round(&world, &other, &views).await),
            Rebuilds => live = other.rebuild(&views[0], &|_| {}).await.unwrap(),
            Parks => {
                world.publish([poison("n1")]).await;
                round(&world, &other, &views).await;
            }
            // As a build does that lacks the view.
            Leaves => drop(round(&world, &other, &views[1..]).await),
        }
        for n in 0..2 {
            world.publish([noted("n1", &["a", "c"])]).await;
            let line = round(&world, &projector, &views).await;
            let parked = u64::from(matches!(meanwhile, Parks));
            assert!(n == 0 || line["rows_parked"].as_u64().unwrap_or_default() == parked, "{line}");
        }
        assert_eq!(live == SECOND, matches!(meanwhile, Rebuilds));
        let counts = world.counts(live).await;
        let counts: Vec<_> = ["a", "b", "c"].map(|row| counts[row]).into();
        assert_eq!(counts, [4, 1, 2], "{meanwhile:?}");
        projector.retry(&Definition::of::<Lenient>(), &|_| {}).await.unwrap();
        world.publish([noted("n1", &["b"])]).await;
        round(&world, &projector, &[Definition::of::<Lenient>(), views[1]]).await;
        let together = world.checkpoints().together().await.unwrap();
        assert_eq!(together.readers.len(), 2, "{meanwhile:?}: they have met again");
    }
}

/// Others remove a row and its tombstone goes, while a process stands still.
#[tokio::test(start_paused = true)]
async fn a_process_that_has_stood_still_for_a_day_reads_again() {
    let (world, views) = (World::new(3, catalog()), [Definition::of::<Toggled>()]);
    let projector = warm(&world, &views).await;
    // It knows the own checkpoint.
    world.publish([noted("n1", &["d"])]).await;
    round(&world, &projector, &views).await;
    world.publish([noted("n1", &["a"])]).await;
    round(&world, &world.projector(), &views).await;
    tokio::time::sleep(Duration::from_secs(27 * 3_600)).await;
    assert_eq!(world.sweep().await, 1);
    world.publish([noted("n1", &["c"])]).await;
    let line = round(&world, &projector, &views).await;
    assert!(line.get("left").is_none(), "{line}");
    let rows: Vec<_> = world.counts(FIRST).await.into_keys().collect();
    assert_eq!(rows, ["b", "c", "d"]);
}

/// Replicas show the rows as they were at an earlier read.
#[derive(Default)]
struct Replicas(Mutex<Option<Value>>);

impl Director for Replicas {
    fn faults(&self, operation: &str, request: &Value) -> Vec<Fault> {
        let rows = request["RequestItems"].get("views").filter(|_| operation == "BatchGetItem");
        let is_by_replica = rows.is_some_and(|rows| rows["ConsistentRead"] != true);
        let old = self.0.lock().unwrap().clone().filter(|_| is_by_replica);
        old.map(|answer| Fault::Answer(200, answer)).into_iter().collect()
    }

    fn carried_out(&self, _operation: &str, _request: &Value, _status: u16) {}
}

#[tokio::test(start_paused = true)]
async fn an_old_row_of_a_replica_is_neither_written_nor_removed() {
    for back in [1, 2] {
        let (world, views) = (World::new(4, catalog()), [Definition::of::<Toggled>()]);
        let projector = warm(&world, &views).await;
        let (replicas, mut answers) = (Arc::new(Replicas::default()), Vec::new());
        world.direct(&replicas);
        // The row comes and goes.
        for n in 1..=7 {
            world.publish([noted("n1", &["c"])]).await;
            world.wire.forget();
            let line = round(&world, &projector, &views).await;
            assert!(line.get("left").is_none(), "{line}");
            let reads = world.wire.take().into_iter();
            let mut reads = reads.filter(|it| it.request["RequestItems"].get("views").is_some());
            answers.push(reads.next_back().unwrap().answer);
            assert_eq!(world.counts(FIRST).await.contains_key("c"), n % 2 == 1, "{back}: {n}");
            let old = answers.len().checked_sub(back).map(|old| answers[old].clone());
            *replicas.0.lock().unwrap() = old;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_notification_names_the_last_of_its_pages() {
    let record =
        |p: &str, i: &str| json!({ "dynamodb": { "Keys": { "p": { "S": p }, "i": { "N": i } } } });
    let of = |records: &[Value]| Until::of_records(&json!({ "Records": records }));
    let page = |epoch: &str, i| record(&format!("$AppendsEpoch-0_{epoch}"), i);
    let past = Until::Past(2_000_005.try_into().unwrap());
    assert_eq!(of(&[page("2", "5"), page("1", "17")]), past);
    // As much as is there.
    let odd = [page("2", "x"), record("$Lease-0", "0"), json!({})];
    for records in odd.map(|odd| vec![page("1", "1"), odd]).into_iter().chain([vec![]]) {
        assert_eq!(of(&records), Until::Present, "{records:?}");
    }
    assert_eq!(Until::of_records(&json!(null)), Until::Present);
}
