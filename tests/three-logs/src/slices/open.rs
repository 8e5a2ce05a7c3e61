//! Open: opens an account.

use ringfence_core::prelude::*;

use super::Accounts;
use super::facts::history;
use crate::account::{Account, AccountId, Opened};

/// Opens an account, once.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct Open {
    /// The account.
    #[tag(partition)]
    pub account_id: AccountId,
}

impl Slice for Open {
    const NAME: &'static str = "open";
    type Context = Accounts;
    type State = Account;
    type Writes = Opened;
    type Rejection = Never;

    fn decide(&self, account: &Account, _: &CommandContext) -> Result<Vec<Opened>, Never> {
        let Self { account_id } = self.clone();
        let is_open = account.balance.is_some();
        Ok(if is_open { vec![] } else { vec![Opened { account_id }] })
    }

    fn cases() -> Vec<Case<Self>> {
        let open = || Open { account_id: id("ada") };
        let opened = Opened { account_id: id("ada") };
        vec![
            given([]).when(open()).then([opened]),
            given(history(&[])).when(open()).then_nothing(),
            given(history(&[100])).when(open()).then_nothing(),
        ]
    }
}
