//! Customers send points to each other while answers are lost. The sum of points stays the same.

use std::collections::BTreeMap;

use futures::future::join_all;
use ringfence_aggregate_log::{AggregateEvent, AggregateLog, Range};
use ringfence_aws::Random;
use ringfence_aws::wire::Fault;
use ringfence_core::{CommandRecord, Decisions, Envelope, HandleError, LogError, Slice, handle};

use crate::customers::{Customer, Transfer, add, catalog, customer, envelope, register};
use crate::stack::{NOW_MS, Stack, events, run};

const CUSTOMERS: [&str; 4] = ["ada", "bob", "eve", "ida"];
/// Transfers. Two clients send each of them under one key.
const TRANSFERS: i64 = 40;
/// Under way at once.
const AT_ONCE: usize = 3;
/// Points that each customer begins with.
const POINTS: i64 = 100;

async fn filled(stack: &Stack) -> AggregateLog {
    let log = stack.log();
    for customer in CUSTOMERS {
        run(&log, &register(customer), None).await;
        run(&log, &add(customer, &[POINTS]), None).await;
    }
    log
}

/// Every event of every customer.
async fn history(log: &AggregateLog) -> Vec<AggregateEvent> {
    let mut all = Vec::new();
    for id in CUSTOMERS {
        all.extend(events(log.table(), &customer(id), Range::default()).await);
    }
    all
}

/// Asks until there is an answer, and allows more time each time.
async fn ask(
    log: &AggregateLog,
    decisions: &Decisions<Transfer>,
    (command, key): (&Transfer, &str),
    mut within_ms: u64,
) {
    loop {
        let deadline_ms = Some(NOW_MS + within_ms);
        let envelope = Envelope { deadline_ms, ..envelope(Some(key)) };
        match handle(log, &catalog(), decisions, command, &envelope).await {
            Ok(_) => return,
            Err(HandleError::Log(LogError::Store(_))) => within_ms *= 2,
            Err(error) => panic!("{key}: {error:?}"),
        }
    }
}

#[tokio::test]
async fn transfers_of_many_writers_take_effect_once_and_keep_the_sum_of_points() {
    const SEED: u64 = 7;
    let stack = Stack::serve().await;
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
    // With little time for another send, a lost answer leaves the outcome unknown, and the client asks again. Both
    // handlers are warm.
    let clients = [10_000, 20].map(|within_ms| (Decisions::new(100), within_ms));
    let numbered: Vec<_> = commands.iter().enumerate().collect();
    for round in numbered.chunks(AT_ONCE) {
        let asked = round.iter().flat_map(|(n, command)| {
            let log = &log;
            clients.iter().map(move |(decisions, within_ms)| async move {
                ask(log, decisions, (command, &n.to_string()), *within_ms).await;
            })
        });
        join_all(asked).await;
    }

    let mut effects: BTreeMap<usize, usize> = BTreeMap::new();
    for event in &history(&log).await {
        let Some(metadata) = &event.metadata else { continue };
        let wrote = |(n, command): &(usize, &Transfer)| {
            let record = CommandRecord::new(Transfer::NAME, &n.to_string(), command);
            record.wrote(|mark| metadata.get(mark)?.as_str()).unwrap_or(false).then_some(*n)
        };
        if let Some(number) = numbered.iter().find_map(wrote) {
            *effects.entry(number).or_default() += 1;
        }
    }
    assert!(effects.len() > 10, "seed {SEED}: {effects:?}");
    assert!(effects.values().all(|events| *events == 2), "seed {SEED}: {effects:?}");
    let mut sum = 0;
    for id in CUSTOMERS {
        let customer = log.table().get_aggregate::<Customer>(&catalog(), &customer(id), None).await;
        sum += customer.expect("registered").state.points;
    }
    assert_eq!(sum, POINTS * CUSTOMERS.len() as i64, "seed {SEED}");
    assert!(log.table().verify(&|_| {}).await.expect("a report").wrong.is_empty());
}
