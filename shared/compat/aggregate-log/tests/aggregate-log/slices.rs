//! The cost of each kind of command, in exact requests and units. The items of these customers have at most 512 bytes.

use ringfence_aggregate_log::AggregateLog;
use ringfence_aws::item_bytes;
use ringfence_core::{Decisions, Slice, handle};

use crate::customers::{add, catalog, envelope, register, transfer};
use crate::stack::{Stack, TABLE};

/// Requests, and units of table and index.
type Cost = (Vec<String>, f64, f64);

fn cost(requests: &[&str], read: f64, write: f64) -> Cost {
    (requests.iter().map(|&request| request.to_owned()).collect(), read, write)
}

/// Runs the command on this handler, with or without a key, and returns the cost.
async fn run_on<S: Slice>(
    decisions: &Decisions<S>,
    stack: &Stack,
    log: &AggregateLog,
    command: &S,
    key: Option<&str>,
) -> Cost {
    stack.operations();
    let before = log.table().meter().snapshot();
    let handled = handle(log, &catalog(), decisions, command, &envelope(key)).await;
    handled.unwrap_or_else(|error| panic!("{}: {error:?}", S::NAME));
    let units = log.table().meter().snapshot().since(&before).total();
    (stack.operations(), units.read, units.write)
}

/// Runs it on a handler that is not warm.
async fn run<S: Slice>(stack: &Stack, log: &AggregateLog, command: &S, key: Option<&str>) -> Cost {
    run_on(&Decisions::new(0), stack, log, command, key).await
}

#[tokio::test]
async fn a_command_costs_a_strong_read_of_its_aggregate_and_a_put() {
    for key in [None, Some("k")] {
        let stack = Stack::start();
        let log = stack.log();
        // The first event is in the index as well.
        let first = cost(&["Query", "PutItem"], 1.0, 2.0);
        assert_eq!(run(&stack, &log, &register("ada"), key).await, first);
        let later = cost(&["Query", "PutItem"], 1.0, 1.0);
        assert_eq!(run(&stack, &log, &add("ada", &[5]), key).await, later);
        // A repeat, a rejection and a command that changes nothing cost only the read.
        let read = cost(&["Query"], 1.0, 0.0);
        assert_eq!(run(&stack, &log, &register("ada"), key).await, read);
        assert_eq!(run(&stack, &log, &add("ada", &[]), None).await, read);
        assert_eq!(run(&stack, &log, &add("eve", &[5]), key).await, read);
        if key.is_some() {
            assert_eq!(run(&stack, &log, &add("ada", &[5]), key).await, read);
        }
        // Two events of one aggregate are a transaction.
        let two = cost(&["Query", "TransactWriteItems"], 1.0, 4.0);
        assert_eq!(run(&stack, &log, &add("ada", &[6, 7]), None).await, two);
        for item in stack.items(TABLE).await {
            assert!(item_bytes(&item) <= 512, "{} bytes", item_bytes(&item));
        }
    }
}

#[tokio::test]
async fn a_command_on_two_aggregates_costs_two_reads_and_a_transaction_of_two() {
    for key in [None, Some("k")] {
        let stack = Stack::start();
        let log = stack.log();
        for customer in ["ada", "bob"] {
            run(&stack, &log, &register(customer), None).await;
        }
        run(&stack, &log, &add("ada", &[5]), None).await;
        let expected = cost(&["Query", "Query", "TransactWriteItems"], 2.0, 4.0);
        assert_eq!(run(&stack, &log, &transfer("bob", 5), key).await, expected);
        // A repeat, a rejection and a command that changes nothing look once more: the reads of several aggregates must
        // hold at one moment.
        let look = cost(&["Query", "Query", "TransactGetItems"], 6.0, 0.0);
        if key.is_some() {
            assert_eq!(run(&stack, &log, &transfer("bob", 5), key).await, look);
        }
        assert_eq!(run(&stack, &log, &transfer("bob", 1), None).await, look);
        assert_eq!(run(&stack, &log, &transfer("bob", 0), None).await, look);
    }
}

#[tokio::test]
async fn a_warm_handler_appends_without_reading() {
    let stack = Stack::start();
    let log = stack.log();
    run(&stack, &log, &register("ada"), None).await;
    run(&stack, &log, &register("bob"), None).await;
    let (adding, sending) = (Decisions::new(10), Decisions::new(10));
    run_on(&adding, &stack, &log, &add("ada", &[5]), None).await;
    for n in 0..3 {
        let key = format!("k{n}");
        let warm = run_on(&adding, &stack, &log, &add("ada", &[5]), Some(&key)).await;
        assert_eq!(warm, cost(&["PutItem"], 0.0, 1.0));
    }
    // A repeat reads, because it has to name the events of its first run.
    let repeat = run_on(&adding, &stack, &log, &add("ada", &[5]), Some("k1")).await;
    assert_eq!(repeat, cost(&["Query"], 1.0, 0.0));
    // An answer that appends nothing looks at the next version.
    let nothing = run_on(&adding, &stack, &log, &add("ada", &[]), None).await;
    assert_eq!(nothing, cost(&["GetItem"], 1.0, 0.0));
    run_on(&sending, &stack, &log, &transfer("bob", 1), None).await;
    let warm = run_on(&sending, &stack, &log, &transfer("bob", 1), None).await;
    assert_eq!(warm, cost(&["TransactWriteItems"], 0.0, 4.0));
    // After a conflict, the handler reads only the missed events.
    let late = run_on(&adding, &stack, &log, &add("ada", &[5]), None).await;
    assert_eq!(late, cost(&["PutItem", "Query", "PutItem"], 1.0, 2.0));
}
