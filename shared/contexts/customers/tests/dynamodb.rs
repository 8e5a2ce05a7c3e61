//! The cases of every command, which their own tests run in memory, on DynamoDB; and what they
//! become together.
#![allow(missing_docs, reason = "tests")]

use ringfence::Context;
use ringfence::kit::id;
use ringfence_aggregate_log::kit::Case;
use ringfence_aggregate_log::{Command, EventStore, Table, execute};
use ringfence_customers::{CustomerId, Customers, Register, TransferPoints, WELCOME_POINTS, cases};
use ringfence_dynamo::wire::{Fault, Wire};
use ringfence_dynamo::{Clock, Random, Retry};
use ringfence_local::embedded::Embedded;
use serde_json::json;

/// Rounds of transfers among the customers.
const TRANSFERS: u64 = 60;
const CUSTOMERS: [&str; 4] = ["ada", "bob", "eve", "ida"];

async fn table(wire: &Wire) -> (Embedded, Table) {
    let dynamo = Embedded::start().await.expect("an embedded DynamoDB");
    let key = |name: &str, kind| json!({ "AttributeName": name, "KeyType": kind });
    let attribute = |name: &str, kind| json!({ "AttributeName": name, "AttributeType": kind });
    let properties = json!({
        "KeySchema": [key("aggregateId", "HASH"), key("version", "RANGE")],
        "AttributeDefinitions": [
            attribute("aggregateId", "S"),
            attribute("version", "N"),
            attribute("eventStoreId", "S"),
            attribute("timestamp", "S"),
        ],
        "GlobalSecondaryIndexes": [{
            "IndexName": "initialEvents",
            "KeySchema": [key("eventStoreId", "HASH"), key("timestamp", "RANGE")],
            "Projection": { "ProjectionType": "KEYS_ONLY" },
        }],
    });
    dynamo.create_table(&properties, "aggregates").expect("the table");
    let client = wire.client(dynamo.endpoint());
    let table = Table::new(client, "aggregates", Clock::fixed(1_719_100_800_000));
    (dynamo, table)
}

async fn check<C: Command<Rejection: PartialEq>>(cases: Vec<Case<C>>) {
    assert!(!cases.is_empty());
    for case in cases {
        let (_dynamo, table) = table(&Wire::default()).await;
        case.check(&table).await;
        assert!(table.verify(&|_| {}).await.expect("a report").wrong.is_empty());
    }
}

#[tokio::test]
async fn rules_hold_on_dynamodb() {
    check(cases::register()).await;
    check(cases::rename()).await;
    check(cases::change_email()).await;
    check(cases::deactivate()).await;
    check(cases::transfer_points()).await;
}

#[tokio::test]
async fn transfers_of_many_writers_neither_make_nor_lose_points() {
    const SEED: u64 = 7;
    let wire = Wire::default();
    let (_dynamo, table) = table(&wire).await;
    let context = Context::default();
    let retry = Retry::default().attempts_max(100);
    for customer in CUSTOMERS {
        let name = customer.to_owned();
        let command = Register { customer_id: id(customer), name, email: id("a@b.c") };
        execute(&table, &command, &context, retry).await.expect("registered");
    }
    let mut random = Random::new(&[SEED]);
    for pass in 0..10 {
        let fault = if random.chance(50) { Fault::LostAfter } else { Fault::LostBefore };
        wire.inject("TransactWriteItems", pass * 5, fault);
    }
    let mut pick = || {
        let one = usize::try_from(random.below(4)).expect("below 4");
        id::<CustomerId>(CUSTOMERS[one])
    };
    let mut commands = Vec::new();
    for n in 0..TRANSFERS {
        commands.push(TransferPoints { from: pick(), to: pick(), points: n });
    }
    for round in commands.chunks(6) {
        let transfers = round.iter().map(|command| execute(&table, command, &context, retry));
        for transfer in futures::future::join_all(transfers).await {
            if let Err(error) = transfer {
                let rejected = matches!(error, ringfence_aggregate_log::CommandError::Rejected(_));
                assert!(rejected, "seed {SEED}: {error:?}");
            }
        }
    }
    let mut sum = 0;
    for customer in CUSTOMERS {
        let customer = Customers::get_existing_aggregate(&table, customer, None).await;
        sum += customer.expect("registered").state.map_or(0, |customer| customer.points);
    }
    assert_eq!(sum, WELCOME_POINTS * CUSTOMERS.len() as u64, "seed {SEED}");
    assert!(table.verify(&|_| {}).await.expect("a report").wrong.is_empty());
}
