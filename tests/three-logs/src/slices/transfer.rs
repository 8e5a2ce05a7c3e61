//! Transfer: moves money from one account to another.

use std::collections::BTreeMap;

use ringfence_core::prelude::*;

use super::Accounts;
use super::facts::{history, history_of};
use crate::account::{Account, AccountEvent, AccountId, Deposited, Rejection, Withdrawn};

/// Moves money from one account to another.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct Transfer {
    /// The account that pays.
    #[tag(key = "accountId", partition)]
    pub from: AccountId,
    /// The account that gets the money.
    #[tag(key = "accountId", partition)]
    pub to: AccountId,
    /// In cents; 0 changes nothing.
    pub amount: u32,
}

/// Its events.
#[derive(Clone, Debug, PartialEq, Writes)]
pub enum Written {
    /// The payer's event.
    Withdrawn(Withdrawn),
    /// The payee's event.
    Deposited(Deposited),
}

/// The accounts that it reads.
#[derive(Default)]
pub struct Both(BTreeMap<AccountId, Account>);

impl State for Both {
    type Reads = AccountEvent;

    fn evolve(mut self, event: AccountEvent) -> Self {
        let (AccountEvent::Opened { account_id }
        | AccountEvent::Deposited { account_id, .. }
        | AccountEvent::Withdrawn { account_id, .. }) = &event;
        let account = self.0.entry(account_id.clone()).or_default();
        *account = account.evolve(event);
        self
    }
}

impl Slice for Transfer {
    const NAME: &'static str = "transfer";
    type Context = Accounts;
    type State = Both;
    type Writes = Written;
    type Rejection = Rejection;

    fn decide(&self, Both(accounts): &Both, _: &CommandContext) -> Result<Vec<Written>, Rejection> {
        let Self { from, to, amount } = self.clone();
        if from == to {
            return Err(Rejection::SameAccount);
        }
        let account = |id| accounts.get(id).copied().unwrap_or_default();
        account(&from).check_covers(amount)?;
        account(&to).balance()?;
        if amount == 0 {
            return Ok(vec![]);
        }
        let withdrawn = Withdrawn { account_id: from, amount };
        let deposited = Deposited { account_id: to, amount };
        Ok(vec![Written::Withdrawn(withdrawn), Written::Deposited(deposited)])
    }

    fn cases() -> Vec<Case<Self>> {
        let transfer = |from, to, amount| Transfer { from: id(from), to: id(to), amount };
        let both = || given(history(&[100])).and(history_of("bob", &[]));
        let withdrawn = Withdrawn { account_id: id("ada"), amount: 70 };
        let deposited = Deposited { account_id: id("bob"), amount: 70 };
        let moved = [Written::Withdrawn(withdrawn), Written::Deposited(deposited)];
        let too_little = |balance| Rejection::TooLittle { balance };
        vec![
            both().when(transfer("ada", "bob", 70)).then(moved),
            both().when(transfer("ada", "bob", 101)).then_rejected(too_little(100)),
            both().when(transfer("eve", "bob", 1)).then_rejected(Rejection::NoAccount),
            both().when(transfer("ada", "eve", 1)).then_rejected(Rejection::NoAccount),
            both().when(transfer("ada", "ada", 1)).then_rejected(Rejection::SameAccount),
            both().when(transfer("ada", "bob", 0)).then_nothing(),
        ]
    }
}
