//! The guards in the requests of an indexer, each shown by what goes wrong without it.

use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use futures::StreamExt;
use ringfence_aws::wire::{Fault, Wire};
use ringfence_aws::{Item, Retry};
use ringfence_feed::{Checkpoint, FeedError, IndexDefect, IndexError, Partition, Until};

use crate::world::{EVENTS, INDEX, World, changed, event_key, link_made, partition, record, run};

fn of(n: u64) -> Partition {
    partition(&changed(n, "x")).into()
}

async fn put(world: &World, table: &str, item: Item) {
    let put = world.client.put_item().table_name(table).set_item(Some(item));
    put.send().await.expect("someone writes an item");
}

pub(crate) async fn pages_of(world: &World) -> Vec<Item> {
    let mut pages = world.items(INDEX).await;
    pages.retain(|item| item.contains_key("e"));
    pages
}

/// Other indexers put pages while one is on its way: within the epoch, or past it.
#[test]
fn an_indexer_goes_on_after_the_pages_that_others_have_put() {
    for pages in [1, 3, 8] {
        run(2, async {
            let mut world = World::new();
            world.epoch_entries = 3;
            world.append(vec![changed(0, "x")]).await;
            world.index_all(INDEX).await;
            world.append(vec![changed(1, "x")]).await;
            let wire = Wire::default();
            wire.inject("PutItem", 0, Fault::Delay(Duration::from_secs(1)));
            let indexer = world.indexer(world.wired(&wire), INDEX);
            let late = indexer.index([of(1)], Retry::default());
            let others = async {
                tokio::time::sleep(Duration::from_millis(500)).await;
                for n in 2..2 + pages {
                    world.append(vec![changed(n, "x")]).await;
                    let indexer = world.indexer(world.client.clone(), INDEX);
                    indexer.index([of(n)], Retry::default()).await;
                }
            };
            let (outcomes, ()) = futures::join!(late, others);
            assert!(wire.is_spent());
            assert_eq!(outcomes[&of(1)].as_ref().ok(), Some(&1), "{outcomes:?}");
            assert_eq!(world.check(INDEX).await.len() as u64, 2 + pages);
        });
    }
}

/// The remembered end is old by any number of pages and epochs. The indexer finds the end in a few queries, and puts
/// nothing over a page.
#[test]
fn an_indexer_that_remembers_an_old_end_finds_the_new_one() {
    for (pages, queries) in [(0, 0), (1, 1), (2, 4), (300, 18)] {
        run(3, async {
            let mut world = World::new();
            world.epoch_entries = 3;
            world.append(vec![changed(0, "x")]).await;
            let wire = Wire::default();
            let indexer = world.indexer(world.wired(&wire), INDEX);
            indexer.index([of(0)], Retry::default()).await;
            let others = world.indexer(world.client.clone(), INDEX);
            for _ in 0..pages {
                world.append(vec![changed(1, "x")]).await;
                others.index([of(1)], Retry::default()).await;
            }
            let before = pages_of(&world).await;
            let event = world.append(vec![changed(2, "x")]).await.remove(0);
            wire.forget();
            let outcomes = indexer.index([record(&world, &event).await], Retry::default()).await;
            assert_eq!(outcomes[&of(2)].as_ref().ok(), Some(&1), "{outcomes:?}");
            let exchanges = wire.take();
            let asked = exchanges.iter().filter(|exchange| exchange.operation == "Query").count();
            assert!(asked <= queries, "{pages} pages: {asked} queries");
            let after = pages_of(&world).await;
            assert!(before.iter().all(|page| after.contains(page)), "{pages} pages");
            assert_eq!(world.check(INDEX).await.len(), 2 + pages);
        });
    }
}

#[test]
fn a_page_whose_answer_was_lost_is_not_put_twice() {
    for (lost, counted) in [(Fault::LostAfter, 0), (Fault::LostBefore, 2)] {
        run(6, async {
            let world = World::new();
            world.append(vec![changed(1, "x"), changed(1, "y")]).await;
            let wire = Wire::default();
            wire.inject("PutItem", 0, lost);
            let indexer = world.indexer(world.wired(&wire), INDEX);
            let outcomes = indexer.index([of(1)], Retry::default()).await;
            assert_eq!(outcomes[&of(1)].as_ref().ok(), Some(&counted), "{outcomes:?}");
            assert_eq!(world.check(INDEX).await.len(), 2);
        });
    }
}

#[test]
fn events_that_others_index_between_the_two_reads_change_nothing() {
    run(7, async {
        let world = World::new();
        world.append(vec![changed(1, "x")]).await;
        let wire = Wire::default();
        // The first query finds the end; the partition is read late. Meanwhile more is appended and indexed.
        wire.inject("Query", 1, Fault::Delay(Duration::from_secs(1)));
        let indexer = world.indexer(world.wired(&wire), INDEX);
        let late = indexer.index([of(1)], Retry::default());
        let others = async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            world.append(vec![changed(1, "y")]).await;
            world.index_all(INDEX).await;
        };
        let (outcomes, ()) = futures::join!(late, others);
        assert!(wire.is_spent() && outcomes[&of(1)].is_ok(), "{outcomes:?}");
        assert_eq!(world.check(INDEX).await.len(), 2);
    });
}

/// As after a restore of the table to an earlier time.
#[test]
fn an_event_in_the_slot_of_the_indexed_one_is_noticed() {
    run(8, async {
        let world = World::new();
        let first = world.append(vec![changed(1, "x")]).await.remove(0);
        let before = record(&world, &first).await;
        world.index_all(INDEX).await;
        let delete = world.client.delete_item().table_name(EVENTS);
        delete.set_key(Some(event_key(&first))).send().await.expect("someone deletes an event");
        let other = world.append(vec![changed(1, "y")]).await.remove(0);
        assert_eq!(other.slot, first.slot);
        let indexer = world.indexer(world.client.clone(), INDEX);
        let outcomes = indexer.index([before], Retry::default()).await;
        assert_eq!(outcomes[&of(1)].as_ref().ok(), Some(&0), "it is the indexed one");
        let outcomes = indexer.index([record(&world, &other).await], Retry::default()).await;
        let error = outcomes[&of(1)].as_ref().expect_err("it would never be indexed");
        assert!(matches!(error, IndexError::Replaced { slot: 1, .. }), "{error:?}");
        assert!(!error.is_transient());
        let report = indexer.verify(&|_, _| ()).await.expect("both can be read");
        assert_eq!(report.wrong, [IndexDefect::Replaced { partition: of(1), slot: 1 }]);
        assert_eq!(world.checkpoints(INDEX).await.len(), 1);
    });
}

/// The same, if the indexer knows only a later event.
#[test]
fn an_event_in_the_slot_of_an_indexed_one_before_the_last_is_noticed() {
    run(9, async {
        let world = World::new();
        let lost = world.append(vec![changed(1, "x"), changed(1, "y")]).await.remove(1);
        world.index_all(INDEX).await;
        let delete = world.client.delete_item().table_name(EVENTS);
        delete.set_key(Some(event_key(&lost))).send().await.expect("someone deletes an event");
        tokio::time::sleep(Duration::from_secs(1)).await;
        world.append(vec![changed(1, "z")]).await;
        let later = world.append(vec![changed(1, "later")]).await.remove(0);
        let indexer = world.indexer(world.client.clone(), INDEX);
        let outcomes = indexer.index([record(&world, &later).await], Retry::default()).await;
        assert_eq!(outcomes[&of(1)].as_ref().ok(), Some(&1));
        let report = indexer.verify(&|_, _| ()).await.expect("both can be read");
        let wrong: Vec<_> = report.wrong.iter().map(ToString::to_string).collect();
        let replaced = "thingId:t1: event 2 is not the one that was indexed: ";
        assert!(wrong.len() == 1 && wrong[0].starts_with(replaced), "{wrong:?}");
    });
}

/// Some partitions were read. More than are held at once were not.
#[test]
fn no_partition_counts_as_done_while_the_index_takes_nothing() {
    run(5, async {
        let world = World::new();
        let note = "x".repeat(340_000);
        for n in 1..=40 {
            world.append(vec![changed(n, &note)]).await;
        }
        world.append(vec![changed(0, "x")]).await;
        let indexer = world.indexer(world.client.clone(), INDEX);
        indexer.index([of(0)], Retry::default()).await;
        let wire = Wire::default();
        for n in 0..8 {
            wire.inject("PutItem", n, Fault::error("ThrottlingException"));
        }
        let indexer = world.indexer(world.wired(&wire), INDEX);
        let retry = Retry::default().within(Duration::from_millis(200));
        let outcomes = indexer.index((0..=40).map(of), retry).await;
        for (partition, outcome) in &outcomes {
            assert_eq!(outcome.is_ok(), *partition == of(0), "{partition}: {outcome:?}");
        }
        assert_eq!(world.feed(INDEX).await.len(), 1);
    });
}

#[test]
fn verify_names_an_entry_that_is_out_of_order() {
    run(6, async {
        let world = World::new();
        world.append(vec![changed(1, "x"), changed(1, "y")]).await;
        world.index_all(INDEX).await;
        let mut page = pages_of(&world).await.remove(0);
        let AttributeValue::L(mut entries) = page.remove("e").expect("entries") else {
            panic!("a page has a list")
        };
        entries.reverse();
        page.insert("e".to_owned(), AttributeValue::L(entries));
        put(&world, INDEX, page).await;
        let indexer = world.indexer(world.client.clone(), INDEX);
        let report = indexer.verify(&|_, _| ()).await.expect("both can be read");
        let [IndexDefect::Order { partition, checkpoint }] = &*report.wrong else {
            panic!("{:?}", report.wrong)
        };
        assert_eq!((partition, checkpoint.to_string().as_str()), (&of(1), "2"));
    });
}

#[test]
fn readers_and_verify_go_on_after_an_event_that_can_not_be_decoded() {
    run(7, async {
        let world = World::new();
        let events = world.append(vec![changed(1, "x"), changed(1, "y"), changed(1, "z")]).await;
        world.index_all(INDEX).await;
        let update = world.client.update_item().table_name(EVENTS);
        let update = update.set_key(Some(event_key(&events[1])));
        update.update_expression("REMOVE tags").send().await.expect("someone breaks an event");
        let index = world.index(world.client.clone());
        let end = index.end().await.expect("the end");
        let mut forward: Vec<_> = index.read(Checkpoint::START, Until::Present).collect().await;
        forward.reverse();
        let before = index.before(end, 9).await.expect("entries");
        for (how, found) in
            [forward, index.read_back(end).collect().await, before].into_iter().enumerate()
        {
            let [Ok(_), Err(FeedError::Undecodable { known, .. }), Ok(_)] = &found[..] else {
                panic!("{how}: {found:?}")
            };
            assert_eq!((known.event.id(), i64::from(known.checkpoint)), ("thingId:t1/2".into(), 2));
            assert_eq!(
                (&*known.event.event_type, &known.event.data),
                ("Changed", &serde_json::Value::Null)
            );
        }
        let indexer = world.indexer(world.client.clone(), INDEX);
        let report = indexer.verify(&|_, _| ()).await.expect("the rest can be read");
        assert_eq!((report.entries, report.events), (3, 3));
        let wrong: Vec<_> = report.wrong.iter().map(ToString::to_string).collect();
        assert_eq!(wrong.len(), 1, "{wrong:?}");
        assert!(wrong[0].starts_with("item thingId:t1 2 is not an event: "), "{wrong:?}");
    });
}

/// One event can't be decoded, and another has a type that is not in the catalog.
#[test]
fn an_event_that_can_not_be_decoded_stops_neither_verify_nor_repair() {
    run(8, async {
        let world = World::new();
        let mut broken = world.append(vec![changed(1, "x"), changed(1, "y")]).await;
        world.append(vec![changed(2, "x"), link_made(1)]).await;
        let broken = broken.remove(1);
        let update = world.client.update_item().table_name(EVENTS);
        let update = update.set_key(Some(event_key(&broken)));
        update.update_expression("REMOVE tags").send().await.expect("someone breaks an event");
        let foreign = [
            ("id", AttributeValue::S("thingId:t9".to_owned())),
            ("position", AttributeValue::N("1".to_owned())),
            ("event", AttributeValue::S("Forgotten".to_owned())),
        ];
        put(&world, EVENTS, foreign.map(|(name, value)| (name.to_owned(), value)).into()).await;
        let indexer = world.indexer(world.client.clone(), INDEX);
        let (report, outcomes) = indexer.repair(&|_, _| ()).await.expect("the rest is repaired");
        let wrong: Vec<_> = report.wrong.iter().map(ToString::to_string).collect();
        assert_eq!(wrong.len(), 2, "{wrong:?}");
        assert!(
            wrong.iter().any(|w| w.starts_with("item thingId:t1 2 is not an event: ")),
            "{wrong:?}"
        );
        assert!(
            wrong.iter().any(|w| w.starts_with("item thingId:t9 1 is not an event: ")),
            "{wrong:?}"
        );
        // The other events are indexed.
        let indexed = outcomes.values().filter_map(|outcome| outcome.as_ref().ok()).sum::<u64>();
        assert_eq!(indexed, 2);
        assert!(outcomes[&of(1)].is_err());
        assert_eq!(world.feed(INDEX).await.len(), 3);
    });
}

#[test]
fn an_index_of_an_older_version_is_refused_with_the_way_out() {
    run(11, async {
        let world = World::new();
        world.append(vec![changed(1, "x")]).await;
        world.index_all(INDEX).await;
        let mut page = pages_of(&world).await.remove(0);
        page.remove("s");
        put(&world, INDEX, page).await;
        let indexer = world.indexer(world.client.clone(), INDEX);
        world.append(vec![changed(1, "y")]).await;
        let outcomes = indexer.index([of(1)], Retry::default()).await;
        let error = outcomes[&of(1)].as_ref().expect_err("it can't go on").to_string();
        assert!(error.ends_with("another table for the index, and run `ringfence index repair`"));
    });
}
