//! On the document log: a decider, and how its state is stored. It has no transfer: a decision
//! concerns one stream.

use ringfence::Context;
use ringfence_document_log::{Access, Command, Decider};
use serde::{Deserialize, Serialize};

use crate::account::{Account, AccountEvent, Act, Refusal};

/// The accounts.
pub struct Accounts;

/// What is in a stream: events, and the unfold beside them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Stored {
    /// The account is opened.
    AccountOpened,
    /// Money comes.
    MoneyDeposited {
        /// In cents.
        amount: u32,
    },
    /// Money goes.
    MoneyWithdrawn {
        /// In cents.
        amount: u32,
    },
    /// The account, in place of the events before it.
    Snapshot(Account),
}

impl From<AccountEvent> for Stored {
    fn from(event: AccountEvent) -> Self {
        match event {
            AccountEvent::AccountOpened => Self::AccountOpened,
            AccountEvent::MoneyDeposited { amount } => Self::MoneyDeposited { amount },
            AccountEvent::MoneyWithdrawn { amount } => Self::MoneyWithdrawn { amount },
        }
    }
}

impl Decider for Accounts {
    const CATEGORY: &'static str = "Account";
    type Event = Stored;
    type State = Account;

    fn evolve(account: Account, event: Stored) -> Account {
        account.evolve(&match event {
            Stored::Snapshot(account) => return account,
            Stored::AccountOpened => AccountEvent::AccountOpened,
            Stored::MoneyDeposited { amount } => AccountEvent::MoneyDeposited { amount },
            Stored::MoneyWithdrawn { amount } => AccountEvent::MoneyWithdrawn { amount },
        })
    }

    /// Each append writes the account too, so that a decision reads one item.
    fn access() -> Access<Self> {
        Access::Snapshot {
            is_origin: |event| matches!(event, Stored::Snapshot(_)),
            to_snapshot: |account| Stored::Snapshot(*account),
        }
    }
}

impl Command for Act {
    const NAME: &'static str = "act";
    type Decider = Accounts;
    type Rejection = Refusal;

    fn stream_id(&self) -> String {
        self.account_id.to_string()
    }

    fn decide(&self, account: &Account, _: &Context) -> Result<Vec<Stored>, Refusal> {
        Ok(self.action.decide(account)?.into_iter().map(Stored::from).collect())
    }
}
