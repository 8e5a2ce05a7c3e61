//! CloseAccount: closes an account, which gives up its username and its mail address.

use crate::{AccountClosed, AccountId, Accounts, EmailReleased, Usernames};
use ringfence::prelude::*;
use serde::Serialize;

/// Closes an account.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct CloseAccount {
    #[tag(partition)]
    pub account_id: AccountId,
}

/// What the decision writes.
#[derive(Clone, Debug, PartialEq, Writes)]
pub enum Written {
    Closed(AccountClosed),
    Released(EmailReleased),
}

/// Why an account is not closed.
#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code", rename_all_fields = "camelCase")]
pub enum Rejection {
    /// The account was never opened.
    #[error("account {account_id} does not exist")]
    AccountNotFound { account_id: AccountId },
}

impl Slice for CloseAccount {
    const NAME: &'static str = "close-account";
    type Context = Accounts;
    type State = Usernames;
    type Writes = Written;
    type Rejection = Rejection;

    fn decide(&self, state: &Usernames, _: &CommandContext) -> Result<Vec<Written>, Rejection> {
        let Self { account_id } = self.clone();
        match state.username(&account_id).cloned() {
            Some(username) => {
                // A tag can't be made of a forgotten address.
                let email = state.email(&account_id).cloned();
                let id = account_id.clone();
                let released = email.map(|email| EmailReleased { account_id: id, email });
                let closed = Written::Closed(AccountClosed { account_id, username });
                Ok([closed].into_iter().chain(released.map(Written::Released)).collect())
            }
            None if state.was_opened(&account_id) => Ok(vec![]),
            None => Err(Rejection::AccountNotFound { account_id }),
        }
    }

    fn cases() -> Vec<Case<Self>> {
        use crate::{AccountRegistered, EmailClaimed, UsernameChanged};
        use ringfence::MailAddress;

        let registered =
            |account, name| AccountRegistered { account_id: id(account), username: id(name) };
        let closing = |name| AccountClosed { account_id: id("a1"), username: id(name) };
        let closed = |name| Written::Closed(closing(name));
        let email = || id::<MailAddress>("ada@example.com").into();
        let claimed = EmailClaimed { account_id: id("a1"), email: email() };
        let released = Written::Released(EmailReleased { account_id: id("a1"), email: email() });
        let changed = || UsernameChanged {
            account_id: id("a1"),
            old_username: id("u1"),
            new_username: id("u2"),
        };
        let close = || CloseAccount { account_id: id("a1") };
        let missing = || Rejection::AccountNotFound { account_id: id("a1") };
        let u1 = || given(events![registered("a1", "u1")]);
        vec![
            given([]).when(close()).then_rejected(missing()),
            given(events![registered("a2", "u1")]).when(close()).then_rejected(missing()),
            u1().when(close()).then([closed("u1")]),
            // It gives up the username that it has by then.
            u1().and(events![changed()]).when(close()).then([closed("u2")]),
            u1().and(events![claimed]).when(close()).then([closed("u1"), released]),
            u1().and(events![closing("u1")]).when(close()).then_nothing(),
            // Also when someone else has the username by then.
            u1().and(events![closing("u1"), registered("a2", "u1")]).when(close()).then_nothing(),
        ]
    }
}
