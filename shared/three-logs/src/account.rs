//! The domain: events, fold, commands, decisions, and their cases as data.

use ringfence::{Command, id_type};
use serde::{Deserialize, Serialize};

id_type!(AccountId, "names an account");

/// What happens to an account.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "payload")]
pub enum AccountEvent {
    /// It is opened.
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
}

/// An account as its events make it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Account {
    /// In cents; none before it is opened.
    pub balance: Option<u64>,
}

impl Account {
    /// The account after one more event.
    #[must_use]
    pub fn evolve(self, event: &AccountEvent) -> Self {
        let balance = self.balance.unwrap_or_default();
        let balance = match event {
            AccountEvent::AccountOpened => 0,
            AccountEvent::MoneyDeposited { amount } => balance + u64::from(*amount),
            AccountEvent::MoneyWithdrawn { amount } => balance - u64::from(*amount),
        };
        Self { balance: Some(balance) }
    }
}

/// What is asked of one account.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Action {
    /// Open it.
    Open,
    /// Put so many cents in.
    Deposit(u32),
    /// Take so many cents out.
    Withdraw(u32),
}

/// A command for one account.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct Act {
    /// The account.
    #[tag(partition)]
    pub account_id: AccountId,
    /// What is to be done.
    pub action: Action,
}

/// A command for two.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct Transfer {
    /// Who pays.
    #[tag(key = "accountId", partition)]
    pub from: AccountId,
    /// Who is paid.
    #[tag(key = "accountId", partition)]
    pub to: AccountId,
    /// In cents.
    pub amount: u32,
}

/// Why nothing happens.
#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code", rename_all_fields = "camelCase")]
pub enum Refusal {
    /// The account was never opened.
    #[error("there is no such account")]
    NoAccount,
    /// It has less than is asked for.
    #[error("the account has {balance}")]
    TooLittle {
        /// In cents.
        balance: u64,
    },
    /// From an account to itself.
    #[error("payer and payee are one account")]
    SameAccount,
}

impl Action {
    /// What happens to the account.
    ///
    /// # Errors
    /// It has no balance, or too small a one.
    pub fn decide(&self, account: &Account) -> Result<Vec<AccountEvent>, Refusal> {
        Ok(match (self, account.balance) {
            (Self::Open, Some(_)) => vec![],
            (Self::Open, None) => vec![AccountEvent::AccountOpened],
            (_, None) => return Err(Refusal::NoAccount),
            (Self::Withdraw(amount), Some(balance)) if balance < u64::from(*amount) => {
                return Err(Refusal::TooLittle { balance });
            }
            (Self::Deposit(0) | Self::Withdraw(0), _) => vec![],
            (Self::Deposit(amount), _) => vec![AccountEvent::MoneyDeposited { amount: *amount }],
            (Self::Withdraw(amount), _) => vec![AccountEvent::MoneyWithdrawn { amount: *amount }],
        })
    }
}

impl Transfer {
    /// What happens to which account.
    ///
    /// # Errors
    /// Either account refuses its part.
    pub fn decide(&self, from: &Account, to: &Account) -> Result<Vec<Fact>, Refusal> {
        if self.from == self.to {
            return Err(Refusal::SameAccount);
        }
        let sent = Action::Withdraw(self.amount).decide(from)?;
        let received = Action::Deposit(self.amount).decide(to)?;
        let of = |account: &AccountId, event| Fact { account: account.clone(), event };
        let sent = sent.into_iter().map(|event| of(&self.from, event));
        Ok(sent.chain(received.into_iter().map(|event| of(&self.to, event))).collect())
    }
}

/// An event and its account.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    /// The account.
    pub account: AccountId,
    /// What happened to it.
    pub event: AccountEvent,
}
