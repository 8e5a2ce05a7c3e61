//! The same cases on each log.

use ringfence_core::{Context, LogName, LogOf, Slice};
use ringfence_log::Log;
use ringfence_three_logs::{aggregate, dcb, document};

use crate::stack::Stack;

/// Runs each case in memory, and on a new table.
async fn check<S: Slice<Context: Context<Log: Log<S>>>>() {
    LogOf::<S>::check_in_memory();
    for case in S::cases() {
        let stack = Stack::start().await;
        let (on, _) = LogOf::<S>::open(stack.table(LogOf::<S>::KIND), 0).expect(S::NAME);
        case.check(&on, &|now_ms| stack.clock.set(now_ms)).await;
    }
}

#[tokio::test]
async fn the_cases_hold_on_the_dcb_log() {
    check::<dcb::open::Open>().await;
    check::<dcb::deposit::Deposit>().await;
    check::<dcb::withdraw::Withdraw>().await;
    check::<dcb::transfer::Transfer>().await;
}

#[tokio::test]
async fn the_cases_hold_on_the_aggregate_log() {
    check::<aggregate::open::Open>().await;
    check::<aggregate::deposit::Deposit>().await;
    check::<aggregate::withdraw::Withdraw>().await;
    check::<aggregate::transfer::Transfer>().await;
}

#[tokio::test]
async fn the_cases_of_one_account_hold_on_the_document_log() {
    check::<document::open::Open>().await;
    check::<document::deposit::Deposit>().await;
    check::<document::withdraw::Withdraw>().await;
}
