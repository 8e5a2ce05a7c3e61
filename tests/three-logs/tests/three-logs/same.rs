//! The same cases on each log.

use ringfence::Slice;
use ringfence::kit::{OnEvents, check_in_memory};
use ringfence_document_log::kit::OnDocuments;
use ringfence_document_log::{Cache, OfDocument};
use ringfence_three_logs::{account::Account, aggregate, dcb, document};

use crate::stack::Stack;

/// Runs each case on a table of its own.
async fn check_on_dcb<S: Slice>() {
    for case in S::cases() {
        let stack = Stack::start().await;
        let set_clock = |now_ms| stack.clock.set(now_ms);
        case.check(&OnEvents { log: &stack.dcb(), set_clock }).await;
    }
}

async fn check_on_aggregates<S: Slice>() {
    for case in S::cases() {
        let stack = Stack::start().await;
        let set_clock = |now_ms| stack.clock.set(now_ms);
        case.check(&OnEvents { log: &stack.aggregates(), set_clock }).await;
    }
}

async fn check_on_documents<S: OfDocument<Context = document::Accounts, State = Account>>() {
    for case in S::cases() {
        let stack = Stack::start().await;
        let category = stack.documents(Cache::none());
        let clock = stack.clock.clone();
        case.check(&OnDocuments { category: &category, clock }).await;
    }
}

#[test]
fn the_cases_hold_on_the_dcb_log_in_memory() {
    check_in_memory::<dcb::open::Open>();
    check_in_memory::<dcb::deposit::Deposit>();
    check_in_memory::<dcb::withdraw::Withdraw>();
    check_in_memory::<dcb::transfer::Transfer>();
}

#[tokio::test]
async fn the_cases_hold_on_the_dcb_log() {
    check_on_dcb::<dcb::open::Open>().await;
    check_on_dcb::<dcb::deposit::Deposit>().await;
    check_on_dcb::<dcb::withdraw::Withdraw>().await;
    check_on_dcb::<dcb::transfer::Transfer>().await;
}

#[test]
fn the_cases_hold_on_the_aggregate_log_in_memory() {
    check_in_memory::<aggregate::open::Open>();
    check_in_memory::<aggregate::deposit::Deposit>();
    check_in_memory::<aggregate::withdraw::Withdraw>();
    check_in_memory::<aggregate::transfer::Transfer>();
}

#[tokio::test]
async fn the_cases_hold_on_the_aggregate_log() {
    check_on_aggregates::<aggregate::open::Open>().await;
    check_on_aggregates::<aggregate::deposit::Deposit>().await;
    check_on_aggregates::<aggregate::withdraw::Withdraw>().await;
    check_on_aggregates::<aggregate::transfer::Transfer>().await;
}

#[test]
fn the_cases_of_one_account_hold_on_the_document_log_in_memory() {
    check_in_memory::<document::open::Open>();
    check_in_memory::<document::deposit::Deposit>();
    check_in_memory::<document::withdraw::Withdraw>();
}

#[tokio::test]
async fn the_cases_of_one_account_hold_on_the_document_log() {
    check_on_documents::<document::open::Open>().await;
    check_on_documents::<document::deposit::Deposit>().await;
    check_on_documents::<document::withdraw::Withdraw>().await;
}
