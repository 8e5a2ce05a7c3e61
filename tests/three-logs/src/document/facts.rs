//! What cases begin with.

use super::AccountEvent;

/// The events of an account, with these deposits and withdrawals.
pub fn history(amounts: &[i32]) -> Vec<AccountEvent> {
    let moved = |amount: &i32| match (amount.unsigned_abs(), *amount < 0) {
        (amount, false) => AccountEvent::Deposited { amount },
        (amount, true) => AccountEvent::Withdrawn { amount },
    };
    std::iter::once(AccountEvent::Opened).chain(amounts.iter().map(moved)).collect()
}
