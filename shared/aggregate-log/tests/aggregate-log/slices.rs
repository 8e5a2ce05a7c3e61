//! What each slice of the context customers costs: exact requests and units. The items of these
//! customers have at most 512 bytes.

use change_customer_email::ChangeCustomerEmail;
use deactivate_customer::DeactivateCustomer;
use register_customer::RegisterCustomer;
use rename_customer::RenameCustomer;
use ringfence::kit::id;
use ringfence::{Envelope, Metadata};
use ringfence_aggregate_log::{Command, Table, execute};
use ringfence_dynamo::{Retry, item_bytes};
use transfer_points::TransferPoints;

use crate::stack::{Stack, TABLE};

/// Requests, and units of table and index.
type Cost = (Vec<String>, f64, f64);

fn cost(requests: &[&str], read: f64, write: f64) -> Cost {
    (requests.iter().map(|&request| request.to_owned()).collect(), read, write)
}

/// An envelope as a function makes it.
fn envelope(idempotency_key: Option<&str>) -> Envelope {
    let mut metadata = Metadata::default();
    for key in ["commandId", "correlationId", "causationId"] {
        metadata.insert(key, "0b1f0a53-6f0c-4f4b-8d6a-5a7f0c1d2e3f").expect("no key of the log");
    }
    let idempotency_key = idempotency_key.map(str::to_owned);
    Envelope { metadata, idempotency_key, ..Envelope::default() }
}

/// Runs the command without a key, or under one, and says what it cost.
async fn run<C: Command>(stack: &Stack, log: &Table, command: &C, key: Option<&str>) -> Cost {
    stack.operations();
    let before = log.meter().snapshot();
    let executed = execute(log, command, &envelope(key), Retry::default()).await;
    executed.outcome.unwrap_or_else(|error| panic!("{}: {error:?}", C::NAME));
    let units = log.meter().snapshot().since(&before).total();
    (stack.operations(), units.read, units.write)
}

#[tokio::test]
async fn a_command_costs_a_strong_read_of_its_customer_and_a_put() {
    for key in [None, Some("k")] {
        let stack = Stack::start().await;
        let log = stack.table();
        let name = id("Ada");
        let email = id("ada@example.com");
        let register = RegisterCustomer { customer_id: id("ada"), name, email };
        let rename = RenameCustomer { customer_id: id("ada"), name: id("Eve") };
        let change = ChangeCustomerEmail { customer_id: id("ada"), email: id("eve@example.com") };
        let deactivate = DeactivateCustomer { customer_id: id("ada") };
        let put = |read| cost(&["Query", "PutItem"], read, 1.0);
        // The first event is in the index as well.
        let first = cost(&["Query", "PutItem"], 1.0, 2.0);
        assert_eq!(run(&stack, &log, &register, key).await, first);
        assert_eq!(run(&stack, &log, &rename, key).await, put(1.0));
        assert_eq!(run(&stack, &log, &change, key).await, put(1.0));
        assert_eq!(run(&stack, &log, &deactivate, key).await, put(1.0));
        // A repeat, or what is already so, costs the read.
        assert_eq!(run(&stack, &log, &deactivate, key).await, cost(&["Query"], 1.0, 0.0));
        for item in stack.items(TABLE).await {
            assert!(item_bytes(&item) <= 512, "{} bytes", item_bytes(&item));
        }
    }
}

#[tokio::test]
async fn a_transfer_costs_two_reads_and_a_transaction_of_two() {
    for key in [None, Some("k")] {
        let stack = Stack::start().await;
        let log = stack.table();
        for customer in ["ada", "bob"] {
            let email = id("ada@example.com");
            let name = id(customer);
            let register = RegisterCustomer { customer_id: id(customer), name, email };
            run(&stack, &log, &register, None).await;
        }
        let transfer = TransferPoints { from: id("ada"), to: id("bob"), points: 5 };
        let expected = cost(&["Query", "Query", "TransactWriteItems"], 2.0, 4.0);
        assert_eq!(run(&stack, &log, &transfer, key).await, expected);
        if key.is_some() {
            let repeat = cost(&["Query", "Query"], 2.0, 0.0);
            assert_eq!(run(&stack, &log, &transfer, key).await, repeat);
        }
    }
}
