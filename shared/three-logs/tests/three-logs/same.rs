//! The same cases on each log.

use ringfence::{Slice, Writes, kit as dcb};
use ringfence_aggregate_log::{Command, kit as aggregate};
use ringfence_document_log::{Cache, kit as document};
use ringfence_three_logs::account::{Act, Refusal};
use ringfence_three_logs::aggregate as aggregates;
use ringfence_three_logs::dcb::Written;
use ringfence_three_logs::document::Stored;

use crate::cases::{Case, of_one, of_two};
use crate::stack::Stack;

fn on_dcb<S>(case: Case<S>) -> dcb::Case<S>
where
    S: Slice<Writes = Written, Rejection = Refusal>,
{
    let event = |fact| Written::from(fact).into_event().expect("it can be read back");
    let when = dcb::given(case.given.into_iter().map(event)).when(case.when);
    match case.then {
        Err(refusal) => when.then_rejected(refusal),
        Ok(facts) if facts.is_empty() => when.then_nothing(),
        Ok(facts) => when.then(facts.into_iter().map(Written::from)),
    }
}

fn on_aggregates<C: Command<Rejection = Refusal>>(case: Case<C>) -> aggregate::Case<C> {
    let facts = |facts: Vec<_>| {
        let fact = |fact: ringfence_three_logs::account::Fact| {
            aggregate::fact::<aggregates::Accounts>(&fact.account.to_string(), fact.event)
        };
        facts.into_iter().map(fact).collect::<Vec<_>>()
    };
    let when = aggregate::given(facts(case.given)).when(case.when);
    match case.then {
        Err(refusal) => when.then_rejected(refusal),
        Ok(then) if then.is_empty() => when.then_nothing(),
        Ok(then) => when.then(facts(then)),
    }
}

fn on_documents(case: Case<Act>) -> document::Case<Act> {
    let Case { given, when, then, .. } = case;
    let given = document::given(given.into_iter().map(|fact| Stored::from(fact.event)));
    let when = given.when(when);
    match then {
        Err(refusal) => when.then_rejected(refusal),
        Ok(facts) if facts.is_empty() => when.then_nothing(),
        Ok(facts) => when.then(facts.into_iter().map(|fact| Stored::from(fact.event))),
    }
}

/// Says which case runs, should it fail.
fn named<C>(case: Case<C>) -> Case<C> {
    eprintln!("case: {}", case.name);
    case
}

#[test]
fn the_cases_hold_on_the_dcb_log_in_memory() {
    dcb::check_in_memory(of_one().into_iter().map(on_dcb).collect());
    dcb::check_in_memory(of_two().into_iter().map(on_dcb).collect());
}

#[tokio::test]
async fn the_cases_hold_on_the_dcb_log() {
    for case in of_one() {
        let stack = Stack::start().await;
        on_dcb(named(case)).check(&stack.dcb(), |now_ms| stack.clock.set(now_ms)).await;
    }
    for case in of_two() {
        let stack = Stack::start().await;
        on_dcb(named(case)).check(&stack.dcb(), |now_ms| stack.clock.set(now_ms)).await;
    }
}

#[test]
fn the_cases_hold_on_the_aggregate_log_in_memory() {
    of_one().into_iter().for_each(|case| on_aggregates(named(case)).check_in_memory());
    of_two().into_iter().for_each(|case| on_aggregates(named(case)).check_in_memory());
}

#[tokio::test]
async fn the_cases_hold_on_the_aggregate_log() {
    for case in of_one() {
        on_aggregates(named(case)).check(&Stack::start().await.aggregates()).await;
    }
    for case in of_two() {
        on_aggregates(named(case)).check(&Stack::start().await.aggregates()).await;
    }
}

#[test]
fn the_cases_of_one_account_hold_on_the_document_log_in_memory() {
    let cases: Vec<_> = of_one().into_iter().map(on_documents).collect();
    document::check_in_memory(&cases);
}

#[tokio::test]
async fn the_cases_of_one_account_hold_on_the_document_log() {
    let stack = Stack::start().await;
    for (n, case) in of_one().into_iter().enumerate() {
        let accounts = stack.documents(Cache::none());
        on_documents(named(case)).check(&accounts, &format!("account-{n}")).await;
    }
}
