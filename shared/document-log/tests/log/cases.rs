//! Given/when/then, in memory and on DynamoDB, whatever the access.

use ringfence_document_log::Cache;
use ringfence_document_log::kit::{Case, check_in_memory, given};

use crate::basket::{Basket, Closed, Event, State, accesses, added, baskets};
use crate::stack::{Stack, events_max, log};

fn cases() -> Vec<Case<Basket, Closed>> {
    let add = |sku| move |state: &State| state.add(sku, 1);
    vec![
        given([]).when(add(1)).then([added(1)]),
        given([added(1)]).when(|state: &State| state.ensure(1)).then_nothing(),
        given([added(1), Event::Removed { sku: 1 }])
            .when(|state: &State| state.ensure(1))
            .then([added(1)]),
        given([added(1), Event::Closed]).when(add(2)).then_rejected(Closed),
    ]
}

#[test]
fn the_cases_hold_in_memory() {
    for access in accesses() {
        check_in_memory(access, &cases());
    }
}

#[tokio::test]
async fn the_cases_hold_on_dynamodb() {
    let stack = Stack::start().await;
    for (a, access) in accesses().into_iter().enumerate() {
        let log = log(stack.store()).with_limits(events_max(1));
        let category = baskets(log, access(), Cache::none());
        for (c, case) in cases().iter().enumerate() {
            case.check(&category, &format!("{a}-{c}")).await;
        }
    }
}

#[test]
#[should_panic(expected = "case at")]
fn a_case_that_does_not_hold_says_where() {
    let case = given([Event::Closed]).when(|state: &State| state.add(1, 1)).then([added(1)]);
    check_in_memory(accesses()[0], &[case]);
}
