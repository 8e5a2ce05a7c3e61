//! Rows do not depend on the order of events of different partitions.

use std::collections::BTreeMap;

use projects::facts::multi;
use projects::views::project_claims::ProjectClaims;
use projects::views::project_events::ProjectEvents;
use projects::views::project_features::ProjectFeatures;
use projects::views::project_status::ProjectStatus;
use projects::views::project_trace::ProjectTrace;
use proptest::prelude::*;
use ringfence_core::SequencedEvent;
use ringfence_harness::bound;
use ringfence_views::{View, fold};
use serde_json::Value;

use crate::world::{Step, World, current};

fn rows<V: View>(events: &[SequencedEvent]) -> Value {
    let mut rows = BTreeMap::new();
    events.iter().for_each(|event| fold::<V>(&mut rows, &current(event)).unwrap());
    serde_json::to_value(rows).unwrap()
}

fn all(events: &[SequencedEvent]) -> [Value; 5] {
    [
        rows::<ProjectClaims>(events),
        rows::<ProjectEvents>(events),
        rows::<ProjectFeatures>(events),
        rows::<ProjectStatus>(events),
        rows::<ProjectTrace>(events),
    ]
}

/// The events in another order, which keeps the order within each partition. `picks` chooses the partition of each next
/// event.
fn shuffled(events: &[SequencedEvent], picks: &[usize]) -> Vec<SequencedEvent> {
    let mut partitions: Vec<Vec<SequencedEvent>> = Vec::new();
    for event in events.iter().rev() {
        match partitions.iter_mut().find(|it| it[0].partition == event.partition) {
            Some(partition) => partition.push(event.clone()),
            None => partitions.push(vec![event.clone()]),
        }
    }
    let mut picks = picks.iter().cycle();
    let mut order = Vec::new();
    while !partitions.is_empty() {
        let n = picks.next().unwrap() % partitions.len();
        order.extend(partitions[n].pop());
        partitions.retain(|partition| !partition.is_empty());
    }
    order
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(bound(60, 200)))]

    #[test]
    fn rows_are_the_same_in_every_order_that_keeps_partitions(
        steps in proptest::collection::vec(any::<usize>(), 1..40),
        picks in proptest::collection::vec(any::<usize>(), 1..40),
    ) {
        let mut world = World::new(multi().rules());
        for pick in steps {
            // The next step from there on that changes something.
            let steps = Step::all();
            let mut from = steps.iter().cycle().skip(pick % steps.len());
            from.find(|step| world.take(**step));
        }
        let (mut at_ms, mut events) = (world.events[0].at, world.events);
        // The writers' clocks tell all events apart.
        for event in &mut events {
            at_ms = event.at.max(at_ms + 1);
            event.at = at_ms;
        }
        prop_assert_eq!(all(&events), all(&shuffled(&events, &picks)));
    }
}
