//! The cases of slices, in memory and on DynamoDB.

use futures::executor::block_on;
use ringfence::kit::{InMemory, check_in_memory, given};
use ringfence_aggregate_log::kit::OnAggregates;
use ringfence_aggregate_log::{AggregateSlice, Aggregates};

use crate::customers::{AddPoints, Register, Transfer, registered};
use crate::stack::Stack;

/// Runs each case on a table of its own, and checks the table afterwards.
async fn check<S: AggregateSlice>() {
    for case in S::cases() {
        let stack = Stack::start().await;
        let log = stack.table();
        case.check(&OnAggregates { log: &log, clock: stack.clock.clone() }).await;
        assert!(log.verify(&|_| {}).await.expect("a report").wrong.is_empty());
    }
}

#[test]
fn cases_hold_in_memory() {
    check_in_memory::<Register>();
    check_in_memory::<AddPoints>();
    check_in_memory::<Transfer>();
}

#[tokio::test]
async fn cases_hold_on_dynamodb() {
    check::<Register>().await;
    check::<AddPoints>().await;
    check::<Transfer>().await;
}

#[test]
#[should_panic(expected = "case at shared/aggregate-log/tests/aggregate-log/cases.rs")]
fn a_case_that_does_not_hold_names_its_place() {
    let command = AddPoints { customer_id: "ada".to_owned(), points: 1 };
    let case = given([registered("Ada")]).when(command).then_nothing();
    block_on(ringfence::check::<Aggregates>(&case));
}
