//! What each kind of command costs: exact requests and units. The items of these customers have at most
//! 512 bytes.

use ringfence_aggregate_log::{AggregateSlice, Table, handle};
use ringfence_dynamo::{Retry, item_bytes};

use crate::customers::{AddPoints, Register, Transfer, envelope};
use crate::stack::{Stack, TABLE};

/// Requests, and units of table and index.
type Cost = (Vec<String>, f64, f64);

fn cost(requests: &[&str], read: f64, write: f64) -> Cost {
    (requests.iter().map(|&request| request.to_owned()).collect(), read, write)
}

/// Runs the command without a key, or under one, and says what it cost.
async fn run<S: AggregateSlice>(
    stack: &Stack,
    log: &Table,
    command: &S,
    key: Option<&str>,
) -> Cost {
    stack.operations();
    let before = log.meter().snapshot();
    let executed = handle(log, command, &envelope(key), Retry::default()).await;
    executed.outcome.unwrap_or_else(|error| panic!("{}: {error:?}", S::NAME));
    let units = log.meter().snapshot().since(&before).total();
    (stack.operations(), units.read, units.write)
}

fn register(customer: &str) -> Register {
    Register { customer_id: customer.to_owned(), name: customer.to_owned() }
}

fn adding(customer: &str) -> AddPoints {
    AddPoints { customer_id: customer.to_owned(), points: 5 }
}

#[tokio::test]
async fn a_command_costs_a_strong_read_of_its_aggregate_and_a_put() {
    for key in [None, Some("k")] {
        let stack = Stack::start().await;
        let log = stack.table();
        // The first event is in the index as well.
        let first = cost(&["Query", "PutItem"], 1.0, 2.0);
        assert_eq!(run(&stack, &log, &register("ada"), key).await, first);
        let later = cost(&["Query", "PutItem"], 1.0, 1.0);
        assert_eq!(run(&stack, &log, &adding("ada"), key).await, later);
        // A repeat, and a command that has nothing to change, cost the read.
        let read = cost(&["Query"], 1.0, 0.0);
        assert_eq!(run(&stack, &log, &register("ada"), key).await, read);
        if key.is_some() {
            assert_eq!(run(&stack, &log, &adding("ada"), key).await, read);
        }
        for item in stack.items(TABLE).await {
            assert!(item_bytes(&item) <= 512, "{} bytes", item_bytes(&item));
        }
    }
}

#[tokio::test]
async fn a_command_on_two_aggregates_costs_two_reads_and_a_transaction_of_two() {
    for key in [None, Some("k")] {
        let stack = Stack::start().await;
        let log = stack.table();
        for customer in ["ada", "bob"] {
            run(&stack, &log, &register(customer), None).await;
        }
        run(&stack, &log, &adding("ada"), None).await;
        let transfer = Transfer { from: "ada".to_owned(), to: "bob".to_owned(), points: 5 };
        let expected = cost(&["Query", "Query", "TransactWriteItems"], 2.0, 4.0);
        assert_eq!(run(&stack, &log, &transfer, key).await, expected);
        if key.is_some() {
            let repeat = cost(&["Query", "Query"], 2.0, 0.0);
            assert_eq!(run(&stack, &log, &transfer, key).await, repeat);
        }
    }
}
