//! The guards in the requests of an indexer, each shown by what goes wrong without it.

use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use ringfence_dynamo::wire::{Fault, Wire};
use ringfence_dynamo::{Item, Retry};
use ringfence_feed::{FeedError, IndexError, Partition, Wrong};

use crate::world::{EVENTS, INDEX, World, changed, link_made, partition, run};

fn of(n: u64) -> Partition {
    partition(&changed(n, "x")).into()
}

async fn put(world: &World, table: &str, item: Item) {
    let put = world.client.put_item().table_name(table).set_item(Some(item));
    put.send().await.expect("someone writes an item");
}

async fn pages(world: &World) -> Vec<Item> {
    let mut pages = world.items(INDEX).await;
    pages.retain(|item| item.contains_key("e"));
    pages
}

/// A tip that was set back, as by a restore of some items, must not have pages written over.
#[test]
fn a_page_is_never_written_over() {
    run(1, async {
        let world = World::new();
        world.append(vec![changed(1, "x")]).await;
        world.index_all(INDEX).await;
        let before = pages(&world).await;
        for item in world.items(INDEX).await.into_iter().filter(|item| !item.contains_key("e")) {
            let delete = world.client.delete_item().table_name(INDEX);
            let delete = delete.key("p", item["p"].clone()).key("i", item["i"].clone());
            delete.send().await.expect("someone deletes an item");
        }
        world.append(vec![changed(2, "x")]).await;
        let indexer = world.indexer(world.client.clone(), INDEX);
        let outcomes = indexer.index([of(2)], Retry::default()).await;
        let error = outcomes[&of(2)].as_ref().expect_err("there is a page already");
        let IndexError::Feed(cause) = error else { panic!("{error:?}") };
        assert!(matches!(**cause, FeedError::Malformed { .. }), "{cause:?}");
        assert_eq!(pages(&world).await, before);
    });
}

/// Another indexer moves the tip while a page is on its way: within the epoch, or by a whole one.
#[test]
fn an_indexer_goes_on_from_wherever_another_has_moved_the_tip() {
    for moves in [1, 3] {
        run(2, async {
            let mut world = World::new();
            world.epoch_entries = 3;
            world.append(vec![changed(0, "x")]).await;
            world.index_all(INDEX).await;
            world.append(vec![changed(1, "x")]).await;
            let wire = Wire::default();
            wire.inject("TransactWriteItems", 0, Fault::Delay(Duration::from_secs(1)));
            let indexer = world.indexer(world.wired(&wire), INDEX);
            let late = indexer.index([of(1)], Retry::default());
            let others = async {
                tokio::time::sleep(Duration::from_millis(500)).await;
                for n in 2..2 + moves {
                    world.append(vec![changed(n, "x")]).await;
                    let indexer = world.indexer(world.client.clone(), INDEX);
                    indexer.index([of(n)], Retry::default()).await;
                }
            };
            let (outcomes, ()) = futures::join!(late, others);
            assert_eq!(outcomes[&of(1)].as_ref().ok(), Some(&1), "{outcomes:?}");
            assert_eq!(world.check(INDEX).await.len() as u64, 2 + moves);
        });
    }
}

#[test]
fn events_that_others_index_between_the_two_reads_change_nothing() {
    run(3, async {
        let world = World::new();
        world.append(vec![changed(1, "x")]).await;
        let wire = Wire::default();
        // The second of the reads is late; meanwhile another event is appended and indexed.
        wire.inject("BatchGetItem", 1, Fault::Delay(Duration::from_secs(1)));
        let indexer = world.indexer(world.wired(&wire), INDEX);
        let late = indexer.index([of(1)], Retry::default());
        let others = async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            world.append(vec![changed(1, "y")]).await;
            world.index_all(INDEX).await;
        };
        let (outcomes, ()) = futures::join!(late, others);
        assert!(outcomes[&of(1)].is_ok(), "{outcomes:?}");
        assert_eq!(world.check(INDEX).await.len(), 2);
    });
}

/// The second send repeats the first, so the effect of the first counts.
#[test]
fn a_page_is_sent_again_with_its_token() {
    run(4, async {
        let world = World::new();
        world.append(vec![changed(1, "x"), changed(1, "y")]).await;
        let wire = Wire::default();
        wire.inject("TransactWriteItems", 0, Fault::LostAfter);
        let indexer = world.indexer(world.wired(&wire), INDEX);
        let outcomes = indexer.index([of(1)], Retry::default()).await;
        assert_eq!(outcomes[&of(1)].as_ref().ok(), Some(&2), "{outcomes:?}");
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
            wire.inject("TransactWriteItems", n, Fault::error("ThrottlingException"));
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
        let mut page = pages(&world).await.remove(0);
        let AttributeValue::L(mut entries) = page.remove("e").expect("entries") else {
            panic!("a page has a list")
        };
        entries.reverse();
        page.insert("e".to_owned(), AttributeValue::L(entries));
        put(&world, INDEX, page).await;
        let indexer = world.indexer(world.client.clone(), INDEX);
        let report = indexer.verify(&|_, _| ()).await.expect("both can be read");
        let [Wrong::Order { partition, checkpoint }] = &*report.wrong else {
            panic!("{:?}", report.wrong)
        };
        assert_eq!((partition, checkpoint.to_string().as_str()), (&of(1), "2"));
    });
}

#[test]
fn verify_goes_on_after_an_entry_that_can_not_be_decoded() {
    run(7, async {
        let world = World::new();
        world.append(vec![changed(1, "x"), changed(1, "y"), changed(1, "z")]).await;
        world.index_all(INDEX).await;
        let mut page = pages(&world).await.remove(0);
        let Some(AttributeValue::L(entries)) = page.get_mut("e") else { panic!("no list") };
        let AttributeValue::M(entry) = &mut entries[1] else { panic!("no map") };
        entry.remove("tags");
        put(&world, INDEX, page).await;
        let indexer = world.indexer(world.client.clone(), INDEX);
        let report = indexer.verify(&|_, _| ()).await.expect("the rest can be read");
        assert_eq!((report.entries, report.events), (3, 3));
        let wrong: Vec<_> = report.wrong.iter().map(ToString::to_string).collect();
        assert_eq!(wrong.len(), 2, "{wrong:?}");
        assert!(
            wrong[0].starts_with("the entry after checkpoint 1 can't be decoded: "),
            "{wrong:?}"
        );
        let differs = "thingId:t1: the index has 2 events, the table 3 up to the same event";
        assert_eq!(wrong[1], differs);
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
        let key = [("id", broken.partition.to_string()), ("position", broken.position.to_string())];
        let key: Item = key.map(|(n, v)| (n.to_owned(), AttributeValue::S(v))).into();
        let update = world.client.update_item().table_name(EVENTS).set_key(Some(key));
        update.update_expression("REMOVE tags").send().await.expect("someone breaks an event");
        let foreign = [("id", "thingId:t9"), ("position", "1"), ("event", "Forgotten")];
        let foreign = foreign.map(|(n, v)| (n.to_owned(), AttributeValue::S(v.to_owned())));
        put(&world, EVENTS, foreign.into()).await;
        let indexer = world.indexer(world.client.clone(), INDEX);
        let (report, outcomes) = indexer.repair(&|_, _| ()).await.expect("the rest is repaired");
        let wrong: Vec<_> = report.wrong.iter().map(ToString::to_string).collect();
        assert_eq!(wrong.len(), 2, "{wrong:?}");
        let named = format!("item thingId:t1 {} is not an event: ", broken.position);
        assert!(wrong.iter().any(|wrong| wrong.starts_with(&named)), "{wrong:?}");
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
fn an_entry_is_stored_without_the_attributes_of_secondary_indexes() {
    run(9, async {
        let world = World::new();
        let event = world.append(vec![changed(1, "x")]).await.remove(0);
        let key = [("id", event.partition.to_string()), ("position", event.position.to_string())];
        let key: Item = key.map(|(n, v)| (n.to_owned(), AttributeValue::S(v))).into();
        let update = world.client.update_item().table_name(EVENTS).set_key(Some(key));
        let update = update.update_expression("SET tag_linkId = :l, tag_composite = :l");
        let update = update.expression_attribute_values(":l", AttributeValue::S("l1".to_owned()));
        update.send().await.expect("the attributes of two indexes");
        world.index_all(INDEX).await;
        let page = pages(&world).await.remove(0);
        let entry = page["e"].as_l().expect("a list")[0].as_m().expect("a map");
        let kept: Vec<_> = entry.keys().filter(|name| name.starts_with("tag_")).collect();
        assert!(kept.is_empty() && entry.contains_key("tags"), "{kept:?}");
    });
}
