//! Points that go to and fro among customers while answers are lost: points neither appear nor vanish.

use std::collections::BTreeMap;

use futures::future::join_all;
use ringfence::{CommandRecord, Slice};
use ringfence_aggregate_log::{
    AggregateContext, AggregateError, CommandError, Range, StoredEvent, Table, handle,
};
use ringfence_dynamo::wire::Fault;
use ringfence_dynamo::{Random, Retry};

use crate::customers::{Customers, Transfer, customer, envelope, points, registered};
use crate::stack::{Stack, events};

const CUSTOMERS: [&str; 4] = ["ada", "bob", "eve", "ida"];
/// Transfers, each of which two clients ask for under one key.
const TRANSFERS: i64 = 40;
/// Under way at once.
const AT_ONCE: usize = 3;
/// Points that each customer begins with.
const POINTS: i64 = 100;

async fn filled(stack: &Stack) -> Table {
    let log = stack.table();
    for customer in CUSTOMERS {
        let begin = |_: &_| Ok::<_, ()>(vec![registered(customer), points(POINTS)]);
        assert!(Customers::decide(&log, customer, begin).await.is_ok());
    }
    log
}

/// Every event of every customer.
async fn history(log: &Table) -> Vec<StoredEvent> {
    let mut all = Vec::new();
    for id in CUSTOMERS {
        all.extend(events(log, &customer(id), Range::default()).await);
    }
    all
}

/// Asks until there is an answer: how many events there are, and whether they were there before.
async fn ask(log: &Table, command: &Transfer, key: &str, seed: u64) -> (usize, bool) {
    let retry = Retry::default().attempts_max(100);
    loop {
        let executed = handle(log, command, &envelope(Some(key)), retry).await;
        match executed.outcome {
            Ok(events) => return (events.len(), executed.repeated),
            Err(CommandError::Rejected(_)) => return (0, false),
            Err(CommandError::Log(AggregateError::Store(_))) => {}
            Err(error) => panic!("seed {seed}: {error:?}"),
        }
    }
}

#[tokio::test]
async fn transfers_of_many_writers_take_effect_once_and_keep_the_sum_of_points() {
    const SEED: u64 = 7;
    let stack = Stack::start().await;
    let log = filled(&stack).await;
    let mut random = Random::new(&[SEED]);
    for pass in 0..20 {
        let fault = if random.chance(50) { Fault::LostAfter } else { Fault::LostBefore };
        stack.wire.inject("TransactWriteItems", pass * 3, fault);
    }
    let mut pick = || {
        let one = usize::try_from(random.below(4)).expect("below 4");
        CUSTOMERS[one].to_owned()
    };
    let commands: Vec<_> =
        (0..TRANSFERS).map(|points| Transfer { from: pick(), to: pick(), points }).collect();
    // Without another send, a lost answer leaves the outcome unknown, and the client asks again.
    let hasty = log.clone().retrying(Retry::default().attempts_max(1));
    let numbered: Vec<_> = commands.iter().enumerate().collect();
    for round in numbered.chunks(AT_ONCE) {
        let asked = round.iter().flat_map(|(n, command)| {
            [&log, &hasty].map(|log| {
                let key = n.to_string();
                async move { ask(log, command, &key, SEED).await }
            })
        });
        join_all(asked).await;
    }

    let history = history(&log).await;
    let mut effects: BTreeMap<usize, usize> = BTreeMap::new();
    for event in &history {
        let Some(metadata) = &event.metadata else { continue };
        let wrote = |(n, command): &(usize, &Transfer)| {
            let record = CommandRecord::new(Transfer::NAME, &n.to_string(), command);
            record.wrote(|mark| metadata.get(mark)?.as_str()).unwrap_or(false).then_some(*n)
        };
        let number = numbered.iter().find_map(wrote).expect("a command wrote it");
        *effects.entry(number).or_default() += 1;
    }
    assert!(effects.len() > 10, "seed {SEED}: {effects:?}");
    assert!(effects.values().all(|events| *events == 2), "seed {SEED}: {effects:?}");
    let mut sum = 0;
    for customer in CUSTOMERS {
        let customer = Customers::get_existing_aggregate(&log, customer, None).await;
        sum += customer.expect("registered").state.map_or(0, |customer| customer.points);
    }
    assert_eq!(sum, POINTS * CUSTOMERS.len() as i64, "seed {SEED}");
    assert!(log.verify(&|_| {}).await.expect("a report").wrong.is_empty());
}
