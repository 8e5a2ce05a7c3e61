//! Rebuilds: a new generation beside the live one.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use futures::future::join3;
use ringfence_aws::Retry;
use ringfence_aws::wire::Fault;
use ringfence_core::BoundaryId;
use ringfence_harness::bound;
use ringfence_views::{Generation, ListPage, Listed, Ran, Registered, Step, ViewError, ViewRead};

use crate::notes::{catalog, noted, sized, spread, view};
use crate::weather::Weather;
use crate::world::{FIRST, LONG, SECOND, World, count, generation, wait};

fn only(live: Generation) -> Registered {
    let since = Default::default();
    Registered {
        live,
        building: None,
        retiring: None,
        until: None,
        since,
        parked: 0,
        parked_events: 0,
    }
}

/// The same, after a rebuild that has read the whole index.
async fn rebuilt(world: &World, live: Generation) -> Registered {
    Registered { since: world.index.end().await.unwrap(), ..only(live) }
}

#[tokio::test(start_paused = true)]
async fn a_rebuild_has_the_same_rows_and_deletes_the_old_ones() {
    let world = World::new(1, catalog());
    let ids: Vec<String> = (0..60).map(|n| format!("r{n}")).collect();
    world.publish(ids.iter().map(|id| noted("n1", &[id, "all"]))).await;
    world.run(&view(), FIRST).await.unwrap();
    let rows = world.rows("notes", FIRST).await;
    let steps = Mutex::new(Vec::new());
    let report = |step| steps.lock().unwrap().push(step);
    world.wire.forget();
    let live = world.projector().rebuild(&view(), &report).await.unwrap();
    assert_eq!(live, SECOND);
    // It reads no row, and puts each once.
    let sent: Vec<_> = world.wire.take().into_iter().map(|exchange| exchange.operation).collect();
    let of = |operation: &str| sent.iter().filter(|sent| *sent == operation).count();
    assert_eq!((of("BatchGetItem"), of("PutItem")), (0, 61));
    assert_eq!(world.rows("notes", SECOND).await, rows);
    assert!(world.rows("notes", FIRST).await.is_empty());
    let registered = world.projector().register(&view()).await.unwrap();
    assert_eq!(registered, rebuilt(&world, SECOND).await);
    let steps = steps.into_inner().unwrap();
    assert!(matches!(steps[0], Step::Built(SECOND, _)), "{steps:?}");
    assert!(steps.contains(&Step::Flipped(SECOND)), "{steps:?}");
    assert_eq!(steps.last(), Some(&Step::Deleted(FIRST, 61)));
}

#[tokio::test(start_paused = true)]
async fn no_row_is_as_of_an_earlier_checkpoint_after_a_rebuild() {
    let world = World::new(3, catalog());
    let many = |name: &str| sized("n1", (0..60).map(|n| format!("{name}{n}")).collect(), 0);
    world.publish([many("x")]).await;
    world.run(&view(), FIRST).await.unwrap();
    // These two are one batch, and the rebuild puts the first of them into a batch with the event before.
    world.publish([noted("n1", &["a"]), many("y")]).await;
    world.run(&view(), FIRST).await.unwrap();
    let rows = async || {
        let reader = world.reader();
        let list = ListPage { limit: 1, ..ListPage::default() };
        let (Ok(ViewRead::Found(Some(row))), Ok(ViewRead::Found(list))) =
            (reader.row("notes", "a", None).await, reader.list("notes", &list, None).await)
        else {
            panic!("the row is there")
        };
        [row].into_iter().chain(list.rows).map(|row| i64::from(row.as_of)).collect::<Vec<_>>()
    };
    assert_eq!(rows().await, [3, 3]);
    world.projector().rebuild(&view(), &|_| {}).await.unwrap();
    assert_eq!(rows().await, [3, 3]);
}

/// The served generation has put the rows of an event, and not yet moved its checkpoint.
#[tokio::test(start_paused = true)]
async fn a_rebuild_is_not_served_while_old_rows_show_a_later_event() {
    let world = World::new(4, catalog());
    world.publish([noted("n1", &["a"])]).await;
    world.run(&view(), FIRST).await.unwrap();
    // When the rebuild has reached the present, it looks late how far the served generation is.
    world.wire.inject("GetItem", 7, Fault::Delay(Duration::from_secs(10)));
    let steps = Mutex::new(Vec::new());
    let report = |step| steps.lock().unwrap().push(step);
    let (projector, view) = (world.projector(), view());
    let rebuild = projector.rebuild(&view, &report);
    let meanwhile = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        world.publish([noted("n1", &["b"])]).await;
        world.wire.inject("UpdateItem", 0, Fault::error("AccessDeniedException"));
        world.run(&view, FIRST).await.expect_err("the checkpoint is refused");
        assert_eq!(world.rows("notes", FIRST).await.len(), 2);
    };
    let (live, ()) = futures::join!(rebuild, meanwhile);
    assert!(world.wire.is_spent() && live.unwrap() == SECOND);
    let built = |place: i64| Step::Built(SECOND, place.try_into().unwrap());
    let steps = steps.into_inner().unwrap();
    let flipped = steps.iter().position(|step| *step == Step::Flipped(SECOND)).unwrap();
    assert_eq!((&steps[0], &steps[flipped - 1]), (&built(1), &built(2)), "{steps:?}");
}

#[tokio::test(start_paused = true)]
async fn a_view_that_never_ran_can_be_rebuilt() {
    let world = World::new(2, catalog());
    assert_eq!(world.projector().rebuild(&view(), &|_| {}).await.unwrap(), SECOND);
    world.publish([noted("n1", &["a"])]).await;
    assert_eq!(world.projector().rebuild(&view(), &|_| {}).await.unwrap(), generation(3));
    assert_eq!(world.counts(generation(3)).await["a"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_rebuild_that_broke_off_begins_again_or_goes_on() {
    for seed in 0..bound(3, 20) {
        let world = World::new(seed, catalog());
        let ids: Vec<String> = (0..30).map(|n| format!("r{n}")).collect();
        world.publish(ids.iter().map(|id| noted("n1", &[id, "all"]))).await;
        world.run(&view(), FIRST).await.unwrap();
        let rows = world.rows("notes", FIRST).await;
        let weather = Arc::new(Weather::new(seed, 10));
        world.direct(&weather);
        // It crashes after this many milliseconds, at first immediately.
        let mut crashes = 0;
        let mut ms = seed % 5;
        let live = loop {
            ms += 3;
            let (projector, view) = (world.projector(), spread(1 + (seed % 2) as u32));
            let rebuild = projector.rebuild(&view, &|_| {});
            let rebuilt = tokio::time::timeout(Duration::from_millis(ms), rebuild).await;
            let known = loop {
                if let Ok(known) = world.projector().register(&view).await {
                    break known;
                }
            };
            if known.live > FIRST && known.retiring.is_none() {
                break known.live;
            }
            crashes += u32::from(rebuilt.is_err());
        };
        assert!(crashes > 3, "seed {seed}: it was never broken off");
        weather.calm();
        assert_eq!(world.rows("notes", live).await, rows, "seed {seed}");
        assert!(world.rows("notes", FIRST).await.is_empty(), "seed {seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_view_is_served_and_written_on_while_it_is_rebuilt() {
    let (mut meanwhile, seeds) = (0, bound(1, 8));
    for seed in 0..seeds {
        let world = World::new(seed, catalog());
        let rows = |n| (0..32).map(|row| format!("{n}/{row}")).chain(["all".to_owned()]).collect();
        world.publish((0..40).map(|n| sized("n0", rows(n), 0))).await;
        world.run(&view(), FIRST).await.unwrap();
        let weather = Arc::new(Weather::new(seed, 5));
        world.direct(&weather);
        let done = AtomicBool::new(false);
        let served = Mutex::new(BTreeSet::new());
        let write = async {
            let (projector, reader) = (world.projector(), world.reader());
            let mut written = 40;
            // A few more after the flip.
            let mut left = 3;
            while left > 0 {
                left -= u32::from(done.load(Ordering::Relaxed));
                let event = world.append(vec![noted("n0", &["all"])]).await.remove(0);
                written += 1;
                let n0 = || [BoundaryId::tag("noteId", "n0")];
                let index = || world.indexer.index(n0(), Retry::default());
                while index().await.values().any(Result::is_err) {}
                if let Ok(known) = projector.register(&view()).await {
                    let _ = projector.run(&view(), known.live, LONG, &mut Ran::default()).await;
                }
                // Even across a flip, the answer shows the event that was written.
                match reader.row("notes", "all", Some(&wait(&event, 50))).await {
                    Ok(ViewRead::Found(row)) => assert_eq!(count(row), written, "seed {seed}"),
                    // After a run that failed, the view does not show the event yet.
                    Ok(ViewRead::Behind { .. }) | Err(_) => {}
                    Ok(other) => panic!("seed {seed}: {other:?}"),
                }
            }
            written
        };
        let read = async {
            let reader = world.reader();
            let mut newest = 0;
            while !done.load(Ordering::Relaxed) {
                match reader.row("notes", "all", None).await {
                    // Without staleness, an answer never goes back and is never missing.
                    Ok(ViewRead::Found(row)) => {
                        let count = count(row);
                        assert!(count >= newest, "seed {seed}: from {newest} to {count}");
                        newest = count;
                        served.lock().unwrap().insert(count);
                    }
                    Ok(other) => panic!("seed {seed}: {other:?}"),
                    Err(_) => {}
                }
                // A list has the rows of one generation.
                let page = ListPage { prefix: "7/".to_owned(), limit: 40, ..ListPage::default() };
                if let Ok(ViewRead::Found(Listed { rows, next, .. })) =
                    reader.list("notes", &page, None).await
                {
                    assert_eq!((rows.len(), next), (32, None), "seed {seed}");
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let rebuild = async {
            tokio::time::sleep(Duration::from_millis(30)).await;
            let view = spread(1 + 2 * (seed % 2) as u32);
            while world.projector().rebuild(&view, &|_| {}).await.is_err() {}
            done.store(true, Ordering::Relaxed);
        };
        let (written, (), ()) = join3(write, read, rebuild).await;
        weather.calm();
        let live = world.projector().register(&view()).await.unwrap().live;
        assert!(live >= SECOND);
        world.run(&view(), live).await.unwrap();
        assert_eq!(world.counts(live).await["all"], written, "seed {seed}");
        assert!(world.rows("notes", FIRST).await.is_empty(), "seed {seed}");
        meanwhile += served.lock().unwrap().len() as u64;
    }
    assert!(
        meanwhile > 3 * seeds,
        "only {meanwhile} answers differ: nothing was written meanwhile"
    );
}

#[tokio::test(start_paused = true)]
async fn a_view_is_still_served_after_its_rebuild_failed() {
    let world = World::new(5, catalog());
    world.publish([noted("n1", &["a"])]).await;
    world.run(&view(), FIRST).await.unwrap();
    world.wire.inject("PutItem", 0, Fault::error("AccessDeniedException"));
    let error = world.projector().rebuild(&view(), &|_| {}).await.unwrap_err();
    assert!(matches!(error, ViewError::Store { .. }), "{error}");
    let known = world.projector().register(&view()).await.unwrap();
    assert_eq!(known, Registered { building: Some(SECOND), ..only(FIRST) });
    assert_eq!(world.counts(FIRST).await["a"], 1);
}

/// After a change of the fold, no rows of the earlier fold may stay.
#[tokio::test(start_paused = true)]
async fn a_rebuild_that_begins_again_keeps_nothing_of_the_one_before() {
    for seed in 0..bound(3, 20) {
        let world = World::new(seed, catalog());
        let ids: Vec<String> = (0..30).map(|n| format!("r{n}")).collect();
        world.publish(ids.iter().map(|id| noted("n1", &[id, "all"]))).await;
        world.run(&view(), FIRST).await.unwrap();
        let rows = world.rows("notes", FIRST).await;
        let weather = Arc::new(Weather::new(seed, 10));
        world.direct(&weather);
        // Half a rebuild, then half of giving it up, at any moment.
        let (projector, notes) = (world.projector(), spread(1 + (seed % 3) as u32));
        let halved = |ms: u64| Duration::from_millis(1 + (seed * 7 + ms) % 40);
        let begun = projector.rebuild(&notes, &|_| {});
        let _ = tokio::time::timeout(halved(0), begun).await;
        let _ = tokio::time::timeout(halved(3), projector.abandon(&notes, &|_| {})).await;
        weather.calm();
        let half = world.projector().register(&view()).await.unwrap().building;
        projector.abandon(&notes, &|_| {}).await.unwrap();
        let next = world.projector().register(&view()).await.unwrap().building;
        assert!(next > half || half.is_none(), "seed {seed}: {half:?} {next:?}");
        if let Some(half) = half {
            // A projector that still builds it reads and writes nothing.
            let mut ran = Ran::default();
            projector.run(&notes, half, LONG, &mut ran).await.unwrap();
            assert_eq!(ran, Ran { present: true, ..Ran::default() }, "seed {seed}");
        }
        let mut live = projector.rebuild(&notes, &|_| {}).await.unwrap();
        if live == FIRST {
            live = projector.rebuild(&notes, &|_| {}).await.unwrap();
        }
        assert!(next.is_none_or(|next| live >= next), "seed {seed}");
        assert_eq!(world.projector().register(&view()).await.unwrap(), rebuilt(&world, live).await);
        assert_eq!(world.rows("notes", live).await, rows, "seed {seed}");
        for gone in (1..live.number).map(|number| Generation { number, ..live }) {
            assert!(world.rows("notes", gone).await.is_empty(), "seed {seed}: {gone}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_rebuild_that_another_operator_gives_up_ends_and_says_why() {
    let world = World::new(6, catalog());
    world.publish([noted("n1", &["a"])]).await;
    world.run(&view(), FIRST).await.unwrap();
    world.wire.inject("PutItem", 0, Fault::Delay(Duration::from_secs(10)));
    let (projector, notes) = (world.projector(), view());
    let rebuild = projector.rebuild(&notes, &|_| {});
    let give_up = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        world.projector().abandon(&view(), &|_| {}).await.unwrap();
    };
    let both = futures::future::join(rebuild, give_up);
    let (rebuilt, ()) = tokio::time::timeout(Duration::from_secs(60), both).await.unwrap();
    assert_eq!(
        rebuilt.unwrap_err().to_string(),
        "another operator has given up generation 2 of view notes and builds generation 3; \
         to build that one too, rebuild the view again"
    );
    assert_eq!(projector.rebuild(&notes, &|_| {}).await.unwrap(), generation(4));
    assert_eq!(world.counts(generation(4)).await["a"], 1);
}

/// The rows of a generation that was given up are deleted, and no projector writes them.
#[tokio::test(start_paused = true)]
async fn a_rebuild_begins_no_generation_that_another_operator_has_begun_and_given_up() {
    let world = World::new(8, catalog());
    world.publish([noted("n1", &["a"])]).await;
    world.run(&view(), FIRST).await.unwrap();
    let (projector, notes) = (world.projector(), view());
    projector.register(&notes).await.unwrap();
    // The beginning of this one, and the rows of the other.
    for operation in ["TransactWriteItems", "PutItem"] {
        world.wire.inject(operation, 0, Fault::Delay(Duration::from_secs(10)));
    }
    let second = Duration::from_secs(1);
    let other = async {
        tokio::time::sleep(second).await;
        let begun = tokio::time::timeout(second, projector.rebuild(&notes, &|_| {})).await;
        assert!(begun.is_err(), "{begun:?}");
        projector.abandon(&notes, &|_| {}).await.unwrap();
    };
    let both = futures::future::join(projector.rebuild(&notes, &|_| {}), other);
    let (live, ()) = tokio::time::timeout(Duration::from_secs(60), both).await.unwrap();
    assert_eq!(live.unwrap(), generation(4));
    assert_eq!(world.counts(generation(4)).await["a"], 1);
}

/// The flip would forget a generation that is noted for deletion while another one is built.
#[tokio::test(start_paused = true)]
async fn a_rebuild_deletes_the_rows_of_an_earlier_generation_before_it_changes_over() {
    let world = World::new(7, catalog());
    world.publish([noted("n1", &["a"])]).await;
    world.run(&view(), FIRST).await.unwrap();
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let row = world.client.put_item().table_name("views").item("view", text("notes#9"));
    row.item("id", text("a")).send().await.unwrap();
    world.wire.inject("PutItem", 0, Fault::Delay(Duration::from_secs(10)));
    let (projector, notes) = (world.projector(), view());
    let note = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let update = world.client.update_item().table_name("views").key("id", text("VIEW"));
        let update = update.key("view", text("$View-notes")).update_expression("SET retiring = :n");
        let nine = AttributeValue::N("9".to_owned());
        update.expression_attribute_values(":n", nine).send().await.unwrap();
    };
    let both = futures::future::join(projector.rebuild(&notes, &|_| {}), note);
    let (live, ()) = tokio::time::timeout(Duration::from_secs(60), both).await.unwrap();
    assert_eq!(live.unwrap(), SECOND);
    let key = |view: &str| [("view".to_owned(), text(view)), ("id".to_owned(), text("a"))].into();
    for gone in ["notes#9", "notes#1"] {
        let row = world.client.get_item().table_name("views").set_key(Some(key(gone)));
        assert_eq!(row.send().await.unwrap().item, None, "{gone}");
    }
    assert_eq!(projector.register(&notes).await.unwrap(), rebuilt(&world, SECOND).await);
}
