//! Accounts on the aggregate log: each account is a stream of its own.

pub mod deposit;
pub mod facts;
pub mod open;
pub mod transfer;
pub mod withdraw;

use ringfence::prelude::*;
use ringfence_aggregate_log::{AggregateContext, Aggregates};
use serde::{Deserialize, Serialize};

use crate::account::Account;

/// What happens to an account.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "payload")]
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
}

/// The context.
pub struct Accounts;

impl Context for Accounts {
    const NAME: &'static str = "accounts";
    type Log = Aggregates;
    type Event = AccountEvent;
}

impl StreamContext for Accounts {
    type State = Account;

    fn evolve(account: Account, event: AccountEvent) -> Account {
        match event {
            AccountEvent::Opened => Account::OPENED,
            AccountEvent::Deposited { amount } => account.plus(amount),
            AccountEvent::Withdrawn { amount } => account.minus(amount),
        }
    }
}

impl AggregateContext for Accounts {}
