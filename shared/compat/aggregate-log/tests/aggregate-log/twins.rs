//! Two tables side by side. Faults on the way to one of them do not change its answers.

use futures::TryStreamExt;
use ringfence_aggregate_log::{
    AggregateDefect, AggregateKey, AggregateTable, ListOptions, Push, PushPlace, Range, Version,
    event_of_image,
};
use ringfence_aws::Random;
use ringfence_aws::wire::Fault;
use ringfence_harness::bound;

use crate::customers::added;
use crate::stack::{NOW_MS, Stack, TABLE, events, in_process, key};

/// Operations of one seed.
const STEPS: u64 = 60;

/// One operation for both tables.
enum Step {
    Push(Vec<Push>),
    Get(AggregateKey, Range),
    List(ListOptions),
}

fn some_key(random: &mut Random) -> AggregateKey {
    let store = if random.chance(50) { "CUSTOMERS" } else { "CARDS" };
    key(store, &random.below(3).to_string())
}

async fn step(random: &mut Random, table: &AggregateTable) -> Step {
    let below = |random: &mut Random| random.below(12);
    match random.below(10) {
        0..=6 => {
            let mut group: Vec<Push> = Vec::new();
            for n in 0..=random.below(3) {
                let key = some_key(random);
                // The version that a decision has read; sometimes it is out of date.
                let newest = events(table, &key, Range::NEWEST).await;
                let newest = newest.first().map_or(Version::NONE, |event| event.version);
                let place = match random.below(5) {
                    0 => PushPlace::End,
                    1 => PushPlace::At(random.below(8)),
                    2 => PushPlace::Forced(newest.number().max(1)),
                    3 => PushPlace::After(Version::NONE),
                    _ => PushPlace::After(newest),
                };
                let points = i64::try_from(n).expect("few");
                let count = 1 + usize::from(random.chance(30));
                group.push(Push { key, place, events: vec![added(points); count] });
            }
            Step::Push(group)
        }
        7 | 8 => {
            let min_version = random.chance(40).then(|| below(random));
            let max_version = random.chance(40).then(|| below(random));
            let limit = random.chance(40).then(|| u32::try_from(below(random)).expect("few"));
            let reverse = random.chance(50);
            Step::Get(some_key(random), Range { min_version, max_version, limit, reverse })
        }
        _ => Step::List(ListOptions { reverse: Some(random.chance(50)), ..ListOptions::default() }),
    }
}

async fn carry_out(table: &AggregateTable, step: &Step) -> String {
    match step {
        Step::Push(group) => format!("{:?}", table.push_event_group(group.clone()).await),
        Step::Get(key, range) => {
            let found: Result<Vec<_>, _> = table.get_events(key, *range).try_collect().await;
            format!("{found:?}")
        }
        Step::List(list) => format!("{:?}", table.list_aggregate_ids("CUSTOMERS", list).await),
    }
}

#[tokio::test]
async fn a_table_behind_faults_gives_the_answers_of_a_table_without() {
    for seed in 0..bound(2, 6) {
        let mut random = Random::new(&[seed]);
        let stack = Stack::start();
        let ((twin, clock), table) = (in_process(), stack.table());
        for n in 0..STEPS {
            // Every first event has another time: the order of equal times in the index is undefined.
            clock.set(NOW_MS + n);
            stack.clock.set(NOW_MS + n);
            let step = step(&mut random, &twin).await;
            if random.chance(30) {
                let fault = match random.below(3) {
                    0 => Fault::LostAfter,
                    1 => Fault::LostBefore,
                    _ => Fault::error("ThrottlingException"),
                };
                let operation = ["PutItem", "TransactWriteItems", "Query"];
                let operation = operation[usize::try_from(random.below(3)).expect("below 3")];
                stack.wire.inject(operation, 0, fault);
            }
            let (ours, twins) = (carry_out(&table, &step).await, carry_out(&twin, &step).await);
            assert_eq!(ours, twins, "seed {seed}, step {n}: table, twin");
        }
        for item in stack.items(TABLE).await {
            let event = event_of_image(item).expect("an event");
            let twins = events(&twin, &event.key, Range::default()).await;
            assert!(twins.contains(&event), "seed {seed}: {event:?}");
        }
        assert!(
            table.verify(&|_| {}).await.expect("a report").wrong.iter().all(is_of_time),
            "{seed}"
        );
    }
}

/// A forced event is newer than the events after it. Nothing else may be wrong.
fn is_of_time(wrong: &AggregateDefect) -> bool {
    matches!(wrong, AggregateDefect::Order { .. })
}
