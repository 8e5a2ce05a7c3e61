//! Readers of rows.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::join;
use ringfence_aws::wire::{Edit, Fault};
use ringfence_core::{BoundaryId, Catalogs};
use ringfence_views::{
    Definition, Generation, LOOKS_MAX, ListPage, Listed, Order, Ran, ViewRead, WAIT_SLOTS_MAX,
    Wait, fold, query_views,
};
use tokio::time::Instant;

use crate::notes::{Notes, catalog, noted, poison, spread, view, wiped};
use crate::world::{FIRST, World, count, wait};

#[track_caller]
fn found<T: std::fmt::Debug>(read: ViewRead<T>) -> T {
    match read {
        ViewRead::Found(found) => found,
        other => panic!("not found: {other:?}"),
    }
}

fn page(limit: u16, prefix: &str, after: Option<String>) -> ListPage {
    ListPage { prefix: prefix.to_owned(), after, limit, ..ListPage::default() }
}

#[tokio::test(start_paused = true)]
async fn a_view_that_is_not_in_the_code_is_unknown() {
    let world = World::new(1, catalog());
    let event = &world.publish([noted("n1", &["a"])]).await[0];
    for wait in [None, Some(wait(event, 5))] {
        let row = world.reader().row("others", "a", wait.as_ref()).await.unwrap();
        assert_eq!(row, ViewRead::UnknownView);
        let listed = world.reader().list("others", &page(1, "", None), wait.as_ref()).await;
        assert_eq!(listed.unwrap(), ViewRead::UnknownView);
    }
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
            // The time of a replica's rows is not known.
            assert_eq!(as_of, None);
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
async fn a_list_can_begin_and_end_within_its_prefix_in_both_orders() {
    for shards in [1, 3] {
        list_within_prefixes(&spread(shards)).await;
    }
}

async fn list_within_prefixes(view: &Definition) {
    let world = World::new(10, catalog());
    // The greatest ids there can be: nothing that begins with the prefix is left out.
    let last = format!("b{}\u{FFFF}", "\u{10FFFF}".repeat(255));
    let ids = ["a/1", "a/2", "b", "b/1", "b/10", "b/2", "b/2/x", "b/3", "bé", &last, "c"];
    let gone = ["a/0", "a/10", "b/1/x", "b/11", "b/12", "b/20", "b/30", "b/9", "d"];
    let all = ids.iter().chain(&gone).copied().collect::<Vec<_>>();
    world.publish([noted("n1", &all), wiped("n1", &gone)]).await;
    world.run(view, Generation::first(view)).await.unwrap();
    let reader = world.reader();
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    for (prefix, from, to) in [
        ("", "", ""),
        ("", "b", ""),
        ("", "", "b/2"),
        ("", "a/2", "b/1"),
        ("b", "", ""),
        ("b", "/2", ""),
        ("b/", "10", "2"),
        ("b/", "", "2"),
        ("b/", "2", "2"),
        ("b/", "4", ""),
    ] {
        let least = format!("{prefix}{from}");
        let greatest = |id: &str| to.is_empty() || *id <= *format!("{prefix}{to}");
        let mut expected: Vec<_> = ids.iter().map(|id| (*id).to_owned()).collect();
        expected.retain(|id| id.starts_with(prefix) && *id >= least && greatest(id));
        expected.sort();
        for order in [Order::Ascending, Order::Descending] {
            for limit in [1, 3, 100] {
                let (mut seen, mut after) = (Vec::new(), None);
                loop {
                    let (from, to) = (text(from), text(to));
                    let page = ListPage { from, to, order, ..page(limit, prefix, after) };
                    let Listed { rows, next, .. } =
                        found(reader.list("notes", &page, None).await.unwrap());
                    seen.extend(rows.into_iter().map(|row| row.id));
                    after = next;
                    if after.is_none() {
                        break;
                    }
                }
                assert_eq!(seen, expected, "{prefix:?} {from:?} {to:?} {order:?}");
            }
            expected.reverse();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn rows_in_memory_are_those_that_are_stored() {
    let world = World::new(11, catalog());
    let events = [noted("n1", &["a", "b", "a"]), noted("n2", &["b"]), wiped("n1", &["a"])];
    world.publish(events).await;
    world.run(&view(), FIRST).await.unwrap();
    let (mut rows, catalogs) = (BTreeMap::new(), Catalogs::default());
    for event in world.events().await {
        fold::<Notes>(&mut rows, &catalogs.current(event).unwrap()).unwrap();
    }
    let rows: BTreeMap<_, _> =
        rows.into_iter().map(|(id, row)| (id, serde_json::to_value(row).unwrap())).collect();
    assert_eq!(rows, world.rows("notes", FIRST).await);
    assert_eq!(rows.into_keys().collect::<Vec<_>>(), ["b"]);
    let event = world.append(vec![poison("n1")]).await.remove(0);
    let current = catalogs.current(&event).unwrap();
    let error = fold::<Notes>(&mut BTreeMap::new(), &current).unwrap_err().to_string();
    let id = event.id();
    assert_eq!(
        error,
        format!("view notes: event {id} can't be decoded; deploy a view that reads it")
    );
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
        let retry = ringfence_aws::Retry::default();
        world.indexer.index([event.partition.clone()], retry).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        world.run(&view(), FIRST).await.unwrap();
    };
    let ask = wait(&event, 5_000);
    let (row, ()) = join(reader.row("notes", "a", Some(&ask)), later).await;
    let row = found(row.unwrap());
    assert_eq!(row.as_ref().unwrap().as_of.to_string(), "2");
    assert_eq!(count(row), 2);
    // An event that is shown already needs no wait.
    let none = Wait { most: Duration::ZERO, ..ask };
    let list = found(reader.list("notes", &page(1, "", None), Some(&none)).await.unwrap());
    assert_eq!(list.as_of, Some(2.try_into().unwrap()));
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
    assert_eq!(row, ViewRead::Behind { until: at("2"), at: at("1") });
    assert_eq!(world.clock.now_ms() - before, 700, "it says how long it has waited");
    let nowhere = Wait {
        partition: BoundaryId::tag("noteId", "n9"),
        slot: 1,
        most: Duration::from_millis(50),
    };
    let row = reader.row("notes", "a", Some(&nowhere)).await.unwrap();
    assert_eq!(row, ViewRead::Behind { until: None, at: None });
}

#[tokio::test(start_paused = true)]
async fn a_wait_makes_few_reads_and_names_no_event_far_ahead() {
    let world = World::new(4, catalog());
    let event = world.publish([noted("n1", &["a"])]).await.remove(0);
    world.run(&view(), FIRST).await.unwrap();
    let reader = world.reader();
    let ahead = |slots| Wait { slot: event.slot + slots, ..wait(&event, 10_000) };
    let asked = async |wait: Wait| {
        world.wire.forget();
        let (begin, row) = (Instant::now(), reader.row("notes", "a", Some(&wait)).await.unwrap());
        (row, begin.elapsed().as_millis(), world.wire.take().len())
    };
    let (row, ms, reads) = asked(ahead(WAIT_SLOTS_MAX)).await;
    assert_eq!((row, ms), (ViewRead::Behind { until: None, at: None }, 10_000));
    assert!(reads <= 2 * LOOKS_MAX as usize, "{reads} reads");
    let (row, ms, reads) = asked(ahead(WAIT_SLOTS_MAX + 1)).await;
    assert_eq!((&row, ms, reads), (&ViewRead::Ahead { last: Some(1) }, 0, 2));
    let problem = query_views::found("notes", None, row).expect_err("no wait").document();
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.starts_with("slot: lies more than 1000 events after event 1,"), "{detail}");
    assert_eq!(problem["status"], 503);
    let nowhere = Wait { partition: BoundaryId::tag("noteId", "n9"), ..ahead(u64::MAX - 1) };
    assert_eq!(asked(nowhere).await, (ViewRead::Ahead { last: None }, 0, 2));
    // An event comes within a second, mostly. Then the answer is hardly later than it.
    let next = async {
        tokio::time::sleep(Duration::from_millis(600)).await;
        world.publish([noted("n1", &["a"])]).await;
        world.run(&view(), FIRST).await.unwrap();
    };
    let ((row, ms, _), ()) = join(asked(ahead(1)), next).await;
    assert_eq!(count(found(row)), 2);
    assert!((600..=801).contains(&ms), "{ms} ms");
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
        assert_eq!(count(row), 1, "list: {list}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_row_costs_half_a_unit_and_half_a_unit_to_find_it() {
    let world = World::new(6, catalog());
    let event = &world.publish([noted("n1", &["a"])]).await[0];
    world.run(&view(), FIRST).await.unwrap();
    let reader = world.reader();
    world.wire.forget();
    let get = |units: &[f64]| units.iter().map(|u| ("GetItem".to_owned(), *u)).collect::<Vec<_>>();
    found(reader.row("notes", "a", None).await.unwrap());
    assert_eq!(world.units(), get(&[0.5, 0.5]));
    // Generation, where the event is, checkpoint, row: strong.
    found(reader.row("notes", "a", Some(&wait(event, 0))).await.unwrap());
    assert_eq!(world.units(), get(&[1.0, 1.0, 1.0, 1.0]));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_waited_shows_the_event_even_if_its_row_becomes_visible_late() {
    for hidden in [false, true] {
        let (world, view) = (World::new(7, catalog()), spread(1 + u32::from(hidden)));
        world.publish([noted("n1", &["a", "b"])]).await;
        world.run(&view, Generation::first(&view)).await.unwrap();
        let event = &world.publish([noted("n1", &["a"])]).await[0];
        world.run(&view, Generation::first(&view)).await.unwrap();
        let torn = Edit::new(move |answer| match hidden {
            true => drop(answer.as_object_mut().unwrap().remove("Item")),
            false => {
                answer["Item"]["as_of"]["N"] = "1".into();
                answer["Item"]["row"]["M"]["count"]["N"] = "1".into();
            }
        });
        // The row is read after generation, index and checkpoint.
        world.wire.inject("GetItem", 3, Fault::Reply(torn));
        let row = world.reader().row("notes", "a", Some(&wait(event, 0))).await.unwrap();
        assert!(world.wire.is_spent());
        assert_eq!(count(found(row)), 2, "hidden: {hidden}");
        // A row that the event does not touch is as before.
        let row = world.reader().row("notes", "b", Some(&wait(event, 0))).await.unwrap();
        assert_eq!(count(found(row)), 1);
        let row = world.reader().row("notes", "c", Some(&wait(event, 0))).await.unwrap();
        assert_eq!(found(row), None);
    }
}

#[tokio::test(start_paused = true)]
async fn the_checkpoint_of_a_generation_that_is_no_longer_served_is_not_waited_for() {
    let world = World::new(8, catalog());
    let event = world.publish([noted("n1", &["a"])]).await.remove(0);
    world.run(&view(), FIRST).await.unwrap();
    world.projector().rebuild(&view(), &|_| {}).await.unwrap();
    // The registry's item from before the change.
    let before = Edit::new(|answer| answer["Item"]["live"]["N"] = "1".into());
    world.wire.inject("GetItem", 0, Fault::Reply(before));
    let ask = wait(&event, 300);
    let list = world.reader().list("notes", &page(1, "", None), Some(&ask)).await.unwrap();
    let Listed { rows, as_of, .. } = found(list);
    assert_eq!((rows.len(), as_of), (1, Some(1.try_into().unwrap())));
}

#[tokio::test(start_paused = true)]
async fn a_new_view_is_served_once_it_shows_the_events_that_were_there_at_the_deploy() {
    let world = World::new(9, catalog());
    let reader = world.reader();
    // Without events it shows everything.
    assert_eq!(found(reader.row("notes", "a", None).await.unwrap()), None);
    let at = |number: i64| number.try_into().unwrap();
    let event = world.publish((0..3).map(|_| noted("n1", &["a"]))).await.remove(0);
    let building = |place| ViewRead::Building { until: at(3), at: at(place) };
    for wait in [None, Some(wait(&event, 100))] {
        assert_eq!(reader.row("notes", "a", wait.as_ref()).await.unwrap(), building(0));
        let listed = reader.list("notes", &page(1, "", None), wait.as_ref()).await.unwrap();
        assert_eq!(listed, ViewRead::Building { until: at(3), at: at(0) });
        world.projector().register(&view()).await.unwrap();
    }
    // Half way its rows are old.
    let registered = world.projector().register(&view()).await.unwrap();
    assert_eq!(registered.until, Some(at(3)));
    world.checkpoints().advance("notes#1", None, at(1)).await.unwrap();
    let ran = Ran { checkpoint: Some(at(1)), ..Ran::default() };
    world.projector().serve(&view(), &registered, &ran).await.unwrap();
    assert_eq!(reader.row("notes", "a", Some(&wait(&event, 0))).await.unwrap(), building(1));
    // Later events are not a reason to wait.
    world.run(&view(), FIRST).await.unwrap();
    world.publish([noted("n1", &["a"])]).await;
    assert_eq!(count(found(reader.row("notes", "a", None).await.unwrap())), 2);
    assert_eq!(world.projector().register(&view()).await.unwrap().until, None);
}
