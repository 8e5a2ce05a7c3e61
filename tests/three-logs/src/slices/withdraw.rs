//! Withdraw: takes money out of an account.

use ringfence_core::prelude::*;

use super::Accounts;
use super::facts::history;
use crate::account::{Account, AccountId, Rejection, Withdrawn};

/// Takes money out of an account.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct Withdraw {
    /// The account.
    #[tag(partition)]
    pub account_id: AccountId,
    /// In cents; 0 changes nothing.
    pub amount: u32,
}

impl Slice for Withdraw {
    const NAME: &'static str = "withdraw";
    type Context = Accounts;
    type State = Account;
    type Writes = Withdrawn;
    type Rejection = Rejection;

    fn decide(&self, account: &Account, _: &CommandContext) -> Result<Vec<Withdrawn>, Rejection> {
        let Self { account_id, amount } = self.clone();
        account.check_covers(amount)?;
        Ok(if amount == 0 { vec![] } else { vec![Withdrawn { account_id, amount }] })
    }

    fn cases() -> Vec<Case<Self>> {
        let withdraw = |amount| Withdraw { account_id: id("ada"), amount };
        let withdrawn = |amount| Withdrawn { account_id: id("ada"), amount };
        let too_little = |balance| Rejection::TooLittle { balance };
        vec![
            given([]).when(withdraw(1)).then_rejected(Rejection::NoAccount),
            given(history(&[100])).when(withdraw(100)).then([withdrawn(100)]),
            given(history(&[100])).when(withdraw(101)).then_rejected(too_little(100)),
            given(history(&[100, -60])).when(withdraw(40)).then([withdrawn(40)]),
            given(history(&[100, -60])).when(withdraw(41)).then_rejected(too_little(40)),
            given(history(&[100])).when(withdraw(0)).then_nothing(),
        ]
    }
}
