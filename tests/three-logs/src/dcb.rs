//! Accounts on the DCB log: each event says which account it is about.

pub mod deposit;
pub mod facts;
pub mod open;
pub mod transfer;
pub mod withdraw;

use ringfence::prelude::*;

use crate::account::{Account, AccountId};

/// An account was opened.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct Opened {
    /// The account.
    #[tag(partition)]
    pub account_id: AccountId,
}

/// Money was put in.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct Deposited {
    /// The account.
    #[tag(partition)]
    pub account_id: AccountId,
    /// In cents.
    pub amount: u32,
}

/// Money was taken out.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct Withdrawn {
    /// The account.
    #[tag(partition)]
    pub account_id: AccountId,
    /// In cents.
    pub amount: u32,
}

/// The context.
pub struct Accounts;

impl Context for Accounts {
    const NAME: &'static str = "accounts";
    type Log = Dcb;
    type Event = NewEvent;
}

impl DcbContext for Accounts {
    fn catalog() -> Result<Catalog, CatalogError> {
        let schemas = [Opened::SCHEMA, Deposited::SCHEMA, Withdrawn::SCHEMA];
        Catalog::new(Self::NAME, schemas)
    }
}

/// What slices read.
#[derive(Reads)]
pub enum AccountEvent {
    /// An account was opened.
    Opened {
        /// The account.
        account_id: AccountId,
    },
    /// Money was put in.
    Deposited {
        /// The account.
        account_id: AccountId,
        /// In cents.
        amount: u32,
    },
    /// Money was taken out.
    Withdrawn {
        /// The account.
        account_id: AccountId,
        /// In cents.
        amount: u32,
    },
}

impl State for Account {
    type Reads = AccountEvent;

    fn evolve(self, event: AccountEvent) -> Self {
        match event {
            AccountEvent::Opened { .. } => Self::OPENED,
            AccountEvent::Deposited { amount, .. } => self.plus(amount),
            AccountEvent::Withdrawn { amount, .. } => self.minus(amount),
        }
    }
}
