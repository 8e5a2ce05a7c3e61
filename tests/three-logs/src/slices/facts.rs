//! The facts of cases.

use ringfence_core::NewEvent;
use ringfence_core::kit::id;

use crate::account::{AccountId, Deposited, Opened, Withdrawn};

/// The events of Ada's account, with these deposits and withdrawals.
pub fn history(amounts: &[i32]) -> Vec<NewEvent> {
    history_of("ada", amounts)
}

/// The events of an account, with these deposits and withdrawals.
pub fn history_of(account: &str, amounts: &[i32]) -> Vec<NewEvent> {
    let account_id: AccountId = id(account);
    let moved = |amount: &i32| match (amount.unsigned_abs(), *amount < 0) {
        (amount, false) => Deposited { account_id: account_id.clone(), amount }.into(),
        (amount, true) => Withdrawn { account_id: account_id.clone(), amount }.into(),
    };
    let opened = Opened { account_id: account_id.clone() }.into();
    std::iter::once(opened).chain(amounts.iter().map(moved)).collect()
}
