//! Accounts on the document log: each account is a document, its newest events beside its balance.

pub mod deposit;
pub mod facts;
pub mod open;
pub mod withdraw;

use ringfence::prelude::*;
use ringfence_document_log::{Access, DocumentContext, Documents};
use serde::{Deserialize, Serialize};

use crate::account::Account;

/// What happens to an account.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum AccountEvent {
    /// It was opened.
    Opened,
    /// Money was put in.
    Deposited {
        /// In cents.
        amount: u32,
    },
    /// Money was taken out.
    Withdrawn {
        /// In cents.
        amount: u32,
    },
    /// The account itself, which each append stores beside the events; it is an unfold, not an event.
    Snapshot(Account),
}

/// The context.
pub struct Accounts;

impl Context for Accounts {
    const NAME: &'static str = "accounts";
    type Log = Documents;
    type Event = AccountEvent;
}

impl StreamContext for Accounts {
    type State = Account;

    fn evolve(account: Account, event: AccountEvent) -> Account {
        match event {
            AccountEvent::Opened => Account::OPENED,
            AccountEvent::Deposited { amount } => account.plus(amount),
            AccountEvent::Withdrawn { amount } => account.minus(amount),
            AccountEvent::Snapshot(account) => account,
        }
    }
}

impl DocumentContext for Accounts {
    /// A decision reads the newest snapshot.
    fn access() -> Access<Self> {
        Access::Snapshot {
            is_origin: |event| matches!(event, AccountEvent::Snapshot(_)),
            to_snapshot: |account| AccountEvent::Snapshot(*account),
        }
    }
}
