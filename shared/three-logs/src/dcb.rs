//! On the DCB log: events with tags, a slice for each command.

use std::collections::BTreeMap;

use ringfence::prelude::*;

use crate::account::{Account, AccountEvent, AccountId, Act, Fact, Refusal, Transfer};

/// An account is opened.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct AccountOpened {
    /// The account.
    #[tag(partition)]
    pub account_id: AccountId,
}

/// Money comes.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct MoneyDeposited {
    /// The account.
    #[tag(partition)]
    pub account_id: AccountId,
    /// In cents.
    pub amount: u32,
}

/// Money goes.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct MoneyWithdrawn {
    /// The account.
    #[tag(partition)]
    pub account_id: AccountId,
    /// In cents.
    pub amount: u32,
}

/// What both decisions read.
#[derive(Reads)]
pub enum Consumed {
    /// An account is opened.
    AccountOpened {
        /// The account.
        account_id: AccountId,
    },
    /// Money comes.
    MoneyDeposited {
        /// The account.
        account_id: AccountId,
        /// In cents.
        amount: u32,
    },
    /// Money goes.
    MoneyWithdrawn {
        /// The account.
        account_id: AccountId,
        /// In cents.
        amount: u32,
    },
}

/// What both decisions write.
#[derive(Writes)]
pub enum Written {
    /// An account is opened.
    Opened(AccountOpened),
    /// Money comes.
    Deposited(MoneyDeposited),
    /// Money goes.
    Withdrawn(MoneyWithdrawn),
}

/// The accounts that were read.
type Accounts = BTreeMap<AccountId, Account>;

fn evolve(mut accounts: Accounts, event: Consumed) -> Accounts {
    let (id, event) = match event {
        Consumed::AccountOpened { account_id } => (account_id, AccountEvent::AccountOpened),
        Consumed::MoneyDeposited { account_id, amount } => {
            (account_id, AccountEvent::MoneyDeposited { amount })
        }
        Consumed::MoneyWithdrawn { account_id, amount } => {
            (account_id, AccountEvent::MoneyWithdrawn { amount })
        }
    };
    let account = accounts.entry(id).or_default();
    *account = account.evolve(&event);
    accounts
}

fn account(accounts: &Accounts, id: &AccountId) -> Account {
    accounts.get(id).copied().unwrap_or_default()
}

impl From<Fact> for Written {
    fn from(Fact { account: account_id, event }: Fact) -> Self {
        match event {
            AccountEvent::AccountOpened => Self::Opened(AccountOpened { account_id }),
            AccountEvent::MoneyDeposited { amount } => {
                Self::Deposited(MoneyDeposited { account_id, amount })
            }
            AccountEvent::MoneyWithdrawn { amount } => {
                Self::Withdrawn(MoneyWithdrawn { account_id, amount })
            }
        }
    }
}

/// Every event of the domain.
///
/// # Errors
/// None; the schemas don't contradict each other.
pub fn catalog() -> Result<Catalog, CatalogError> {
    let schemas = [AccountOpened::SCHEMA, MoneyDeposited::SCHEMA, MoneyWithdrawn::SCHEMA];
    Catalog::new("accounts", schemas)
}

impl Slice for Act {
    const NAME: &'static str = "act";
    const CONTEXT: &'static str = "accounts";
    type Reads = Consumed;
    type State = Accounts;
    type Writes = Written;
    type Rejection = Refusal;

    fn catalog() -> Result<Catalog, CatalogError> {
        catalog()
    }

    fn evolve(accounts: Accounts, event: Consumed) -> Accounts {
        evolve(accounts, event)
    }

    fn decide(accounts: &Accounts, command: &Self, _: &Context) -> Result<Vec<Written>, Refusal> {
        let events = command.action.decide(&account(accounts, &command.account_id))?;
        let of = |event| Fact { account: command.account_id.clone(), event }.into();
        Ok(events.into_iter().map(of).collect())
    }
}

impl Slice for Transfer {
    const NAME: &'static str = "transfer";
    const CONTEXT: &'static str = "accounts";
    type Reads = Consumed;
    type State = Accounts;
    type Writes = Written;
    type Rejection = Refusal;

    fn catalog() -> Result<Catalog, CatalogError> {
        catalog()
    }

    fn evolve(accounts: Accounts, event: Consumed) -> Accounts {
        evolve(accounts, event)
    }

    fn decide(accounts: &Accounts, command: &Self, _: &Context) -> Result<Vec<Written>, Refusal> {
        let (from, to) = (account(accounts, &command.from), account(accounts, &command.to));
        Ok(command.decide(&from, &to)?.into_iter().map(Written::from).collect())
    }
}
