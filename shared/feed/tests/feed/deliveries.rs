//! Records that arrive late, twice, shuffled, and together with any others.

use ringfence_aws::{Random, Retry};
use ringfence_feed::Partition;
use ringfence_harness::bound;

use crate::world::{INDEX, World, any, by_partition, changed, record, run};

/// Deliveries in one world.
const DELIVERIES: u64 = 1_000;
/// The index that gets every record once, in order.
const IN_ORDER: &str = "in-order";

#[test]
fn shuffled_and_repeated_deliveries_make_the_same_index_as_ordered_ones() {
    // With 100,000 deliveries in `cargo proof`.
    for seed in 0..bound(3, 100) {
        run(seed, async move {
            let mut random = Random::new(&[seed, 3]);
            let world = World::new();
            world.add_index(IN_ORDER);
            let (ordered, shuffled) = (
                world.indexer(world.client.clone(), IN_ORDER),
                world.indexer(world.client.clone(), INDEX),
            );
            let mut records = Vec::new();
            let mut delivered = 0;
            while delivered < DELIVERIES {
                let events = (0..=random.below(4)).map(|_| any(&mut random, 6)).collect();
                let mut new = Vec::new();
                for event in world.append(events).await {
                    new.push(record(&world, &event).await);
                }
                ordered.index(new.clone(), Retry::default()).await;
                records.extend(new);
                // Any records so far, any number of times, in any order.
                let length = random.below(200);
                let any_of = |n: u64| usize::try_from(n).expect("an index");
                let batch: Vec<_> = (0..length)
                    .map(|_| records[any_of(random.below(records.len() as u64))].clone())
                    .collect();
                delivered += length;
                for outcome in shuffled.index(batch, Retry::default()).await.into_values() {
                    outcome.unwrap_or_else(|error| panic!("seed {seed}: {error:?}"));
                }
            }
            // Each arrives at least once.
            shuffled.index(records, Retry::default()).await;
            let events = |entries: Vec<ringfence_feed::Entry>| {
                by_partition(entries.into_iter().map(|entry| entry.event))
            };
            let expected = events(world.check(IN_ORDER).await);
            assert_eq!(events(world.check(INDEX).await), expected, "seed {seed}");
        });
    }
}

#[test]
fn a_partition_without_events_has_nothing_to_index() {
    run(0, async {
        let world = World::new();
        let there = world.append(vec![changed(1, "x")]).await.remove(0).partition;
        let nowhere = ringfence_core::BoundaryId::tag("thingId", "nowhere");
        let indexer = world.indexer(world.client.clone(), INDEX);
        let outcomes = indexer.index([there.clone(), nowhere.clone()], Retry::default()).await;
        assert_eq!(outcomes[&Partition::from(there.clone())].as_ref().ok(), Some(&1));
        assert_eq!(outcomes[&Partition::from(nowhere)].as_ref().ok(), Some(&0));
    });
}
