//! The state of all decisions about accounts: who has, or had, a username or a mail address.

use std::collections::BTreeMap;

use ringfence::{MailAddress, Personal, Reads, State};

use crate::{AccountId, RETENTION_MS, Username};

/// The events that the decisions read.
#[derive(Reads)]
pub enum AccountEvent {
    AccountRegistered {
        account_id: AccountId,
        username: Username,
    },
    AccountClosed {
        account_id: AccountId,
        username: Username,
        /// When, in milliseconds since 1970.
        #[time]
        at_ms: u64,
    },
    UsernameChanged {
        account_id: AccountId,
        old_username: Username,
        new_username: Username,
        /// When, in milliseconds since 1970.
        #[time]
        at_ms: u64,
    },
    EmailClaimed {
        account_id: AccountId,
        email: Personal<MailAddress>,
    },
    EmailReleased {
        account_id: AccountId,
    },
}

/// The accounts and usernames that were read.
#[derive(Default)]
pub struct Usernames {
    /// The username of each account, `None` once the account is closed.
    usernames: BTreeMap<AccountId, Option<Username>>,
    claims: BTreeMap<Username, Claim>,
    /// The addresses that accounts have.
    emails: BTreeMap<AccountId, Personal<MailAddress>>,
}

/// Why nobody else can take a username.
enum Claim {
    Held,
    /// Time in milliseconds since 1970.
    GivenUp(u64),
}

impl State for Usernames {
    type Reads = AccountEvent;

    fn evolve(mut self, event: AccountEvent) -> Self {
        match event {
            AccountEvent::AccountRegistered { account_id, username } => {
                self.claims.insert(username.clone(), Claim::Held);
                self.usernames.insert(account_id, Some(username));
            }
            AccountEvent::AccountClosed { account_id, username, at_ms } => {
                self.claims.insert(username, Claim::GivenUp(at_ms));
                self.usernames.insert(account_id, None);
            }
            AccountEvent::UsernameChanged { account_id, old_username, new_username, at_ms } => {
                self.claims.insert(old_username, Claim::GivenUp(at_ms));
                self.claims.insert(new_username.clone(), Claim::Held);
                self.usernames.insert(account_id, Some(new_username));
            }
            AccountEvent::EmailClaimed { account_id, email } => {
                self.emails.insert(account_id, email);
            }
            AccountEvent::EmailReleased { account_id } => {
                self.emails.remove(&account_id);
            }
        }
        self
    }
}

impl Usernames {
    /// Whether there ever was such an account.
    pub fn was_opened(&self, account: &AccountId) -> bool {
        self.usernames.contains_key(account)
    }

    /// The username of an account that is open.
    pub fn username(&self, account: &AccountId) -> Option<&Username> {
        self.usernames.get(account)?.as_ref()
    }

    /// The mail address of an account; `None` also if its person is forgotten.
    pub fn email(&self, account: &AccountId) -> Option<&Personal<MailAddress>> {
        self.emails.get(account).filter(|email| !email.is_forgotten())
    }

    /// Whether another account has the mail address of the command. The tag of the address found it, so nobody compares
    /// addresses. Forgetting is no conflict, but it can only make an address free.
    pub fn email_is_taken(&self, account: &AccountId) -> bool {
        self.emails.keys().any(|holder| holder != account && self.email(holder).is_some())
    }

    /// Whether an account has the username, or gave it up within the time of retention.
    pub fn is_claimed(&self, username: &Username, now_ms: u64) -> bool {
        self.claims.get(username).is_some_and(|claim| match claim {
            Claim::Held => true,
            Claim::GivenUp(at_ms) => now_ms.saturating_sub(*at_ms) <= RETENTION_MS,
        })
    }
}
