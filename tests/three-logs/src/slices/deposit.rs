//! Deposit: puts money into an account.

use ringfence_core::prelude::*;

use super::Accounts;
use super::facts::history;
use crate::account::{Account, AccountId, Deposited, Rejection};

/// Puts money into an account.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct Deposit {
    /// The account.
    #[tag(partition)]
    pub account_id: AccountId,
    /// In cents; 0 changes nothing.
    pub amount: u32,
}

impl Slice for Deposit {
    const NAME: &'static str = "deposit";
    type Context = Accounts;
    type State = Account;
    type Writes = Deposited;
    type Rejection = Rejection;

    fn decide(&self, account: &Account, _: &CommandContext) -> Result<Vec<Deposited>, Rejection> {
        let Self { account_id, amount } = self.clone();
        account.balance()?;
        Ok(if amount == 0 { vec![] } else { vec![Deposited { account_id, amount }] })
    }

    fn cases() -> Vec<Case<Self>> {
        let deposit = |amount| Deposit { account_id: id("ada"), amount };
        let deposited = |amount| Deposited { account_id: id("ada"), amount };
        vec![
            given([]).when(deposit(1)).then_rejected(Rejection::NoAccount),
            given(history(&[])).when(deposit(5)).then([deposited(5)]),
            given(history(&[100])).when(deposit(5)).then([deposited(5)]),
            given(history(&[100])).when(deposit(0)).then_nothing(),
        ]
    }
}
