//! Open: opens an account.

use ringfence::prelude::*;

use super::facts::history;
use super::{AccountEvent, Accounts};
use crate::account::{Account, AccountId};

/// Opens an account, once.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct Open {
    /// The account.
    pub account_id: AccountId,
}

impl Slice for Open {
    const NAME: &'static str = "open";
    type Context = Accounts;
    type State = Account;
    type Writes = AccountEvent;
    type Rejection = Never;

    fn decide(&self, account: &Account, _: &CommandContext) -> Result<Vec<AccountEvent>, Never> {
        let is_open = account.balance.is_some();
        Ok(if is_open { vec![] } else { vec![AccountEvent::Opened] })
    }

    fn cases() -> Vec<Case<Self>> {
        let open = || Open { account_id: id("ada") };
        let opened = AccountEvent::Opened;
        vec![
            given([]).when(open()).then([opened]),
            given(history(&[])).when(open()).then_nothing(),
            given(history(&[100])).when(open()).then_nothing(),
        ]
    }
}

impl StreamSlice for Open {
    fn stream_id(&self) -> String {
        self.account_id.to_string()
    }
}
