//! An account and its rules, which are the same on every log.

use ringfence_core::{id_type, prelude::*};
use serde::Serialize;

id_type!(AccountId, "names an account");

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

/// The state of an account.
#[ringfence::value]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Account {
    /// In cents; `None` before the account is opened.
    pub balance: Option<u64>,
}

/// The reason that a command is rejected.
#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code", rename_all_fields = "camelCase")]
pub enum Rejection {
    /// The account was never opened.
    #[error("there is no such account")]
    NoAccount,
    /// The account has less than the command takes out.
    #[error("the account has {balance}")]
    TooLittle {
        /// In cents.
        balance: u64,
    },
    /// The command moves money from an account to itself.
    #[error("payer and payee are one account")]
    SameAccount,
}

impl Account {
    /// A new account.
    pub const OPENED: Self = Self { balance: Some(0) };

    /// The account with this amount more in it.
    #[must_use]
    pub fn plus(self, amount: u32) -> Self {
        Self { balance: self.balance.map(|balance| balance + u64::from(amount)) }
    }

    /// The account with this amount less in it.
    #[must_use]
    pub fn minus(self, amount: u32) -> Self {
        Self { balance: self.balance.map(|balance| balance - u64::from(amount)) }
    }

    /// The balance.
    ///
    /// # Errors
    /// The account was never opened.
    pub fn balance(&self) -> Result<u64, Rejection> {
        self.balance.ok_or(Rejection::NoAccount)
    }

    /// Rejects an amount that the account does not have.
    ///
    /// # Errors
    /// The account has less, or was never opened.
    pub fn check_covers(&self, amount: u32) -> Result<(), Rejection> {
        let balance = self.balance()?;
        if balance < amount.into() { Err(Rejection::TooLittle { balance }) } else { Ok(()) }
    }
}

/// The events that slices read.
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
