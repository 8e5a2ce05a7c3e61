//! Readers of the index, from anywhere.

use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use futures::{StreamExt, TryStreamExt};
use ringfence_aws::Random;
use ringfence_aws::wire::{Fault, Wire};
use ringfence_core::{BoundaryId, Tag};
use ringfence_feed::{Checkpoint, Filter, Index, Until};
use ringfence_harness::bound;
use tokio::time::timeout;

use crate::world::{INDEX, World, any, changed, run};

/// Appends of a world whose index is read from every checkpoint.
fn appends() -> u64 {
    bound(10, 20)
}

/// A world whose index has some epochs of a few entries, in pages of one to four.
async fn indexed(seed: u64, epoch_entries: u64, appends: u64) -> World {
    let mut random = Random::new(&[seed, 4]);
    let mut world = World::new();
    world.epoch_entries = epoch_entries;
    for _ in 0..appends {
        let events = (0..=random.below(4)).map(|_| any(&mut random, 3)).collect();
        world.append(events).await;
        if random.chance(60) {
            world.index_all(INDEX).await;
        }
    }
    world.index_all(INDEX).await;
    world
}

#[test]
fn a_reader_gets_the_rest_from_every_checkpoint() {
    for epoch_entries in [1, 5, 1_000_000] {
        run(epoch_entries, async move {
            let world = indexed(epoch_entries, epoch_entries, appends()).await;
            let entries = world.check(INDEX).await;
            let index = world.index(world.client.clone());
            let starts =
                [Checkpoint::START].into_iter().chain(entries.iter().map(|e| e.checkpoint));
            for (n, from) in starts.enumerate() {
                let rest = index.read(from, Until::Present).try_collect::<Vec<_>>().await;
                assert_eq!(rest.expect("the rest"), entries[n..], "from {from}");
                let end = index.end().await.expect("the end");
                let left = index.count(from, end).await.expect("a count");
                assert_eq!(left, (entries.len() - n) as u64, "from {from}");
                assert_eq!(index.count(end, from).await.expect("a count"), 0, "to {from}");
            }
            assert_eq!(world.check(INDEX).await.len(), entries.len());
        });
    }
}

#[test]
fn the_entries_before_every_checkpoint_are_found_the_latest_first() {
    for epoch_entries in [1, 5, 1_000_000] {
        run(epoch_entries, async move {
            let world = indexed(epoch_entries, epoch_entries, appends()).await;
            let mut entries = world.check(INDEX).await;
            let index = world.index(world.client.clone());
            let end = index.end().await.expect("the end");
            while let Some(last) = entries.last() {
                for (from, most) in [(end, 1_000), (last.checkpoint, 1), (last.checkpoint, 6)] {
                    if from == end && last.checkpoint < end {
                        continue;
                    }
                    let found = index.before(from, most).await.expect("entries").into_iter();
                    let found = found.collect::<Result<Vec<_>, _>>().expect("events");
                    let expected: Vec<_> = entries.iter().rev().take(most).cloned().collect();
                    assert_eq!(found, expected, "{most} before {from}");
                }
                entries.pop();
            }
            let found = index.before(Checkpoint::START, 5).await.expect("entries");
            assert!(found.is_empty(), "nothing is before the first: {found:?}");
        });
    }
}

#[test]
fn short_answers_and_stale_replicas_change_nothing() {
    for seed in 0..bound(4, 50) {
        run(seed, async move {
            let world = indexed(seed, 9, 12).await;
            let entries = world.check(INDEX).await;
            let wire = Wire::default();
            let mut random = Random::new(&[seed, 5]);
            for pass in 0..12 {
                wire.inject("Query", pass, Fault::page(1 + random.below(2)));
                // A replica's answer; if it lacks something, a strong read follows.
                wire.inject("Query", pass, Fault::error("ThrottlingException"));
            }
            let index = Index::new(world.wired(&wire), INDEX, world.logs(&world.client).0);
            let read = index.read(Checkpoint::START, Until::Present).try_collect::<Vec<_>>().await;
            assert_eq!(read.expect("the feed"), entries, "seed {seed}");
            // Backwards the same, in answers that lack pages.
            let (wire, end) = (Wire::default(), index.end().await.expect("the end"));
            for pass in 0..12 {
                let (short, stale) = (1 + random.below(2), random.below(1_000));
                let fault = if pass % 2 == 0 { Fault::stale(stale) } else { Fault::page(short) };
                wire.inject("Query", pass, fault);
            }
            let index = Index::new(world.wired(&wire), INDEX, world.logs(&world.client).0);
            let mut read = index.read_back(end).try_collect::<Vec<_>>().await.expect("the feed");
            read.reverse();
            assert_eq!(read, entries, "seed {seed}");
        });
    }
}

#[test]
fn a_replica_that_lacks_a_page_is_not_the_end() {
    run(6, async {
        let world = indexed(6, 9, 12).await;
        let entries = world.check(INDEX).await;
        for seed in 0..30 {
            let wire = Wire::default();
            wire.inject("Query", 0, Fault::stale(seed));
            let index = world.index(world.wired(&wire));
            let read = index.read(Checkpoint::START, Until::Present).try_collect::<Vec<_>>().await;
            assert_eq!(read.expect("the feed"), entries, "seed {seed}");
        }
    });
}

/// A reader that took it for the end would stop there for ever and report that it has everything.
#[test]
fn a_page_that_is_gone_is_an_error_and_not_the_end() {
    run(10, async {
        let world = World::new();
        for n in 0..3 {
            world.append(vec![changed(n, "x")]).await;
            world.index_all(INDEX).await;
        }
        let delete = world.client.delete_item().table_name(INDEX);
        let delete = delete.key("p", AttributeValue::S("$AppendsEpoch-0_0".to_owned()));
        let delete = delete.key("i", AttributeValue::N("1".to_owned()));
        delete.send().await.expect("someone deletes a page");
        for until in [Until::Present, Until::Forever] {
            let index = world.index(world.client.clone());
            let mut feed = index.read(Checkpoint::START, until);
            assert!(feed.next().await.is_some_and(|entry| entry.is_ok()), "{until:?}");
            let error = feed.next().await.expect("not the end").expect_err("a hole");
            assert!(error.to_string().contains("$AppendsEpoch-0_0 1"), "{error}");
            assert!(feed.next().await.is_none(), "{until:?}");
        }
    });
}

#[test]
fn a_reader_without_end_gets_new_events() {
    run(7, async {
        let world = indexed(7, 5, 3).await;
        let before = world.check(INDEX).await.len();
        let index = world.index(world.client.clone());
        let mut feed = index.read(Checkpoint::START, Until::Forever);
        let read = feed.by_ref().take(before).try_collect::<Vec<_>>().await;
        assert_eq!(read.expect("what is there").len(), before);
        assert!(timeout(Duration::from_secs(60), feed.next()).await.is_err(), "there is no more");
        for n in 0..12 {
            let event = world.append(vec![changed(n, "x")]).await.remove(0);
            world.index_all(INDEX).await;
            let entry = feed.next().await.expect("it never ends").expect("an entry");
            assert_eq!(entry.event, event);
            let indexed = index.indexed(&event.partition, event.slot).await;
            assert_eq!(indexed.expect("a progress"), Some(entry.checkpoint));
            assert_eq!(
                index.end().await.expect("the end").max(entry.checkpoint),
                index.end().await.expect("the end")
            );
        }
    });
}

#[test]
fn who_watches_learns_of_an_event_within_a_quarter_of_a_second() {
    run(11, async {
        let world = indexed(11, 5, 3).await;
        let index = world.index(world.client.clone());
        let mut feed = index.read(index.end().await.expect("the end"), Until::Watched);
        assert!(timeout(Duration::from_secs(60), feed.next()).await.is_err(), "there is no more");
        let event = world.append(vec![changed(1, "x")]).await.remove(0);
        world.index_all(INDEX).await;
        let entry = timeout(Duration::from_millis(250), feed.next()).await.expect("it is there");
        assert_eq!(entry.expect("it never ends").expect("an entry").event, event);
    });
}

#[test]
fn an_event_that_is_not_indexed_yet_has_no_checkpoint() {
    run(8, async {
        let world = World::new();
        let index = world.index(world.client.clone());
        assert_eq!(index.end().await.expect("the end"), Checkpoint::START);
        let first = world.append(vec![changed(1, "x")]).await.remove(0);
        assert_eq!(index.indexed(&first.partition, first.slot).await.expect("none"), None);
        world.index_all(INDEX).await;
        let second = world.append(vec![changed(1, "x")]).await.remove(0);
        let of = async |event: &ringfence_core::SequencedEvent| {
            index.indexed(&event.partition, event.slot).await.expect("a progress")
        };
        assert_eq!(of(&first).await, Some(index.end().await.expect("the end")));
        assert_eq!(of(&second).await, None);
    });
}

#[test]
fn a_filter_wants_one_of_the_types_and_all_of_the_tags() {
    run(9, async {
        let world = indexed(9, 50, 20).await;
        let entries = world.check(INDEX).await;
        let filter = Filter {
            types: ["Changed".to_owned(), "Linked".to_owned()].into(),
            tags: vec![Tag::new("thingId", "t1")],
        };
        let found = entries.iter().filter(|entry| filter.matches(&entry.event)).count();
        let events = world.events().await;
        assert_eq!(found, events[&BoundaryId::tag("thingId", "t1").into()].len());
        assert!(entries.iter().all(|entry| Filter::default().matches(&entry.event)));
    });
}
