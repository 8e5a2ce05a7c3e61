//! Withdraw: takes money out of an account.

use ringfence::prelude::*;

use super::facts::history;
use super::{AccountEvent, Accounts};
use crate::account::{Account, AccountId, Refusal};

/// Takes money out of an account.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct Withdraw {
    /// The account.
    pub account_id: AccountId,
    /// In cents; 0 changes nothing.
    pub amount: u32,
}

impl Slice for Withdraw {
    const NAME: &'static str = "withdraw";
    type Context = Accounts;
    type State = Account;
    type Writes = AccountEvent;
    type Rejection = Refusal;

    fn decide(&self, account: &Account, _: &CommandContext) -> Result<Vec<AccountEvent>, Refusal> {
        let amount = self.amount;
        account.check_covers(amount)?;
        Ok(if amount == 0 { vec![] } else { vec![AccountEvent::Withdrawn { amount }] })
    }

    fn cases() -> Vec<Case<Self>> {
        let withdraw = |amount| Withdraw { account_id: id("ada"), amount };
        let withdrawn = |amount| AccountEvent::Withdrawn { amount };
        let too_little = |balance| Refusal::TooLittle { balance };
        vec![
            given([]).when(withdraw(1)).then_rejected(Refusal::NoAccount),
            given(history(&[100])).when(withdraw(100)).then([withdrawn(100)]),
            given(history(&[100])).when(withdraw(101)).then_rejected(too_little(100)),
            given(history(&[100, -60])).when(withdraw(40)).then([withdrawn(40)]),
            given(history(&[100, -60])).when(withdraw(41)).then_rejected(too_little(40)),
            given(history(&[100])).when(withdraw(0)).then_nothing(),
        ]
    }
}

impl StreamSlice for Withdraw {
    fn stream_id(&self) -> String {
        self.account_id.to_string()
    }
}
