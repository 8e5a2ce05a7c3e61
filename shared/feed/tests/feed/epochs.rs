//! Epochs are sealed exactly full, and never change again.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::AttributeValue;
use ringfence_aws::wire::{Fault, Wire};
use ringfence_aws::{Item, Random, Retry};
use ringfence_feed::Partition;

use crate::streams::append;
use crate::world::{INDEX, World, changed, run};

/// The pages of the index by epoch and offset.
async fn pages(world: &World) -> BTreeMap<(String, u64), Item> {
    let pages = world.items(INDEX).await.into_iter().filter(|item| item.contains_key("e"));
    let number = |item: &Item, name: &str| item[name].as_n().expect("a number").parse::<u64>();
    pages
        .map(|page| {
            let p = page["p"].as_s().expect("a text").clone();
            ((p, number(&page, "i").expect("an offset")), page)
        })
        .collect()
}

fn sealed(page: &Item) -> bool {
    page.get("sealed") == Some(&AttributeValue::Bool(true))
}

#[test]
fn an_epoch_is_sealed_exactly_full_and_never_changes() {
    run(1, async {
        let mut world = World::new();
        world.epoch_entries = 7;
        let mut before = BTreeMap::new();
        for n in 0..30 {
            world.append((0..=n % 5).map(|thing| changed(thing, "x")).collect()).await;
            world.index_all(INDEX).await;
            let now = pages(&world).await;
            for (key, page) in &before {
                assert_eq!(now.get(key), Some(page));
            }
            before = now;
        }
        let entries = world.check(INDEX).await;
        assert_eq!(entries.len(), 90);
        let epochs = entries.len() / 7;
        assert_eq!(before.values().filter(|page| sealed(page)).count(), epochs);
        for epoch in 0..epochs {
            let mut of_epoch =
                before.iter().filter(|((p, _), _)| *p == format!("$AppendsEpoch-0_{epoch}"));
            let last = of_epoch.next_back().expect("a page").1;
            assert_eq!((last["n"].as_n().map(String::as_str), sealed(last)), (Ok("7"), true));
        }
    });
}

/// The answer to a page that seals an epoch is lost, and the next attempt finds the next epoch.
#[test]
fn a_retry_across_the_end_of_an_epoch_repeats_nothing() {
    for lost in [Fault::LostAfter, Fault::LostBefore] {
        run(2, async {
            let mut world = World::new();
            world.epoch_entries = 3;
            let partition = world.append(vec![changed(1, "x"); 5]).await.remove(0).partition;
            let wire = Wire::default();
            wire.inject("PutItem", 0, lost.clone());
            let indexer = world.indexer(world.wired(&wire), INDEX);
            let outcome = indexer.index([partition], Retry::default()).await;
            assert!(outcome.values().all(Result::is_ok), "{outcome:?}");
            assert!(wire.is_spent());
            assert_eq!(world.check(INDEX).await.len(), 5);
        });
    }
}

#[test]
fn a_page_holds_many_partitions_and_ends_where_it_is_full() {
    run(3, async {
        let world = World::new();
        for n in 0..150 {
            world.append(vec![changed(n, "x")]).await;
        }
        // The index has the bodies of a document's events.
        let mut random = Random::new(&[3]);
        let note: String = (0..50_000).map(|_| format!("{:04x}", random.below(0x1_0000))).collect();
        for _ in 0..8 {
            append(&world.documents, 0, 1, &note).await;
        }
        let partitions: Vec<Partition> = world.events().await.into_keys().collect();
        let wire = Wire::default();
        let indexer = world.indexer(world.wired(&wire), INDEX);
        let outcomes = indexer.index(partitions, Retry::default()).await;
        assert_eq!(outcomes.values().flatten().sum::<u64>(), 158);
        let exchanges = wire.take();
        let pages = exchanges.iter().filter(|exchange| exchange.operation == "PutItem");
        let entries = pages.map(|page| page.request["Item"]["e"]["L"].as_array().map(Vec::len));
        // Up to four events of some 90 KB fit a page; the last one comes with 150 partitions.
        assert_eq!(entries.collect::<Vec<_>>(), [Some(4), Some(3), Some(151)]);
        // The first page is settled while the others are put, and these together.
        let moves = exchanges.iter().filter(|exchange| exchange.operation == "UpdateItem");
        assert_eq!(moves.count(), 1 + 151);
        world.check(INDEX).await;
    });
}
