//! Deposit: puts money into an account.

use ringfence::prelude::*;

use super::facts::history;
use super::{AccountEvent, Accounts};
use crate::account::{Account, AccountId, Refusal};

/// Puts money into an account.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct Deposit {
    /// The account.
    pub account_id: AccountId,
    /// In cents; 0 changes nothing.
    pub amount: u32,
}

impl Slice for Deposit {
    const NAME: &'static str = "deposit";
    type Context = Accounts;
    type State = Account;
    type Writes = AccountEvent;
    type Rejection = Refusal;

    fn decide(&self, account: &Account, _: &CommandContext) -> Result<Vec<AccountEvent>, Refusal> {
        let amount = self.amount;
        account.balance()?;
        Ok(if amount == 0 { vec![] } else { vec![AccountEvent::Deposited { amount }] })
    }

    fn cases() -> Vec<Case<Self>> {
        let deposit = |amount| Deposit { account_id: id("ada"), amount };
        let deposited = |amount| AccountEvent::Deposited { amount };
        vec![
            given([]).when(deposit(1)).then_rejected(Refusal::NoAccount),
            given(history(&[])).when(deposit(5)).then([deposited(5)]),
            given(history(&[100])).when(deposit(5)).then([deposited(5)]),
            given(history(&[100])).when(deposit(0)).then_nothing(),
        ]
    }
}

impl StreamSlice for Deposit {
    fn stream_id(&self) -> String {
        self.account_id.to_string()
    }
}
