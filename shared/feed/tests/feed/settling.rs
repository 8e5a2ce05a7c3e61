//! Pages that are not settled: indexers that crashed, or still settle them.

use std::time::Duration;

use ringfence_aws::wire::{Fault, Wire};
use ringfence_aws::{Item, Retry};
use ringfence_core::SequencedEvent;
use ringfence_feed::Partition;

use crate::guards::pages_of;
use crate::world::{INDEX, World, changed, partition, record, run};

fn of(n: u64) -> Partition {
    partition(&changed(n, "x")).into()
}

/// The events are in the index, but the progress of their partitions does not show it.
#[test]
fn a_page_that_was_not_settled_stops_nobody_and_its_records_settle_it() {
    for lost in 0..3 {
        run(4, async {
            let world = World::new();
            let events = world.append((0..3).map(|n| changed(n, "x")).collect()).await;
            let wire = Wire::default();
            wire.inject("UpdateItem", lost, Fault::error("AccessDeniedException"));
            let indexer = world.indexer(world.wired(&wire), INDEX);
            let outcomes = indexer.index((0..3).map(of), Retry::default()).await;
            for outcome in outcomes.values() {
                let error = outcome.as_ref().expect_err("not all is settled");
                assert!(error.is_transient(), "{error:?}");
            }
            assert_eq!(world.feed(INDEX).await.len(), 3);
            let index = world.index(world.client.clone());
            let known = async |event: &SequencedEvent| {
                index.indexed(&event.partition, event.slot).await.expect("a progress")
            };
            let mut settled = 0;
            for event in &events {
                settled += u64::from(known(event).await.is_some());
            }
            assert!(settled < 3);
            let next = world.append(vec![changed(1, "y"), changed(7, "x")]).await;
            let other = world.indexer(world.client.clone(), INDEX);
            for (indexer, event) in [&indexer, &other].into_iter().zip(&next) {
                indexer.index([record(&world, event).await], Retry::default()).await;
                assert!(known(event).await.is_some(), "{}", event.id());
            }
            // The records of the page come again.
            other.index((0..3).map(of), Retry::default()).await;
            for event in &events {
                assert!(known(event).await.is_some(), "{}", event.id());
            }
            assert_eq!(world.check(INDEX).await.len(), 5);
        });
    }
}

/// Indexers put pages and crash before they settle them, and their records come no more.
#[test]
fn few_pages_are_not_settled_at_any_time() {
    run(10, async {
        let mut world = World::new();
        world.epoch_entries = 25;
        for n in 0..40 {
            let events = world.append(vec![changed(n, "x"), changed(90, "x")]).await;
            let wire = Wire::default();
            // One of two moves.
            wire.inject("UpdateItem", 1, Fault::error("AccessDeniedException"));
            let indexer = world.indexer(world.wired(&wire), INDEX);
            let records = [record(&world, &events[0]).await, record(&world, &events[1]).await];
            indexer.index(records, Retry::default()).await;
            let number = |page: &Item, name: &str| {
                page[name].as_n().expect("a number").parse::<u64>().expect("a number")
            };
            let pages = pages_of(&world).await;
            for page in &pages {
                let epoch = page["p"].as_s().expect("an epoch");
                let begin = number(page, "s") % 1_000_000;
                let between = |other: &&Item| {
                    other["p"].as_s() == Ok(epoch)
                        && (begin..number(page, "i")).contains(&number(other, "i"))
                };
                assert!(pages.iter().filter(between).count() < 8, "{page:?}");
            }
        }
        world.index_all(INDEX).await;
        assert_eq!(world.check(INDEX).await.len(), 80);
    });
}

/// A move of a progress that arrives late does not set it back.
#[test]
fn a_progress_never_goes_back() {
    run(5, async {
        let world = World::new();
        world.append(vec![changed(1, "x")]).await;
        let wire = Wire::default();
        wire.inject("UpdateItem", 0, Fault::Stray(Duration::from_secs(60)));
        let indexer = world.indexer(world.wired(&wire), INDEX);
        indexer.index([of(1)], Retry::default()).await;
        let last = world.append(vec![changed(1, "y")]).await.remove(0);
        indexer.index([of(1)], Retry::default()).await;
        tokio::time::sleep(Duration::from_secs(120)).await;
        let index = world.index(world.client.clone());
        let indexed = index.indexed(&last.partition, last.slot).await.expect("a progress");
        assert_eq!(indexed.map(|at| at.to_string()), Some("2".to_owned()));
        indexer.index([of(1)], Retry::default()).await;
        assert_eq!(world.check(INDEX).await.len(), 2);
    });
}
