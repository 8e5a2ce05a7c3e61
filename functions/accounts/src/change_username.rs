//! ChangeUsername: changes an account's username.
//!
//! The event has two values of one tag key, so decisions about either username read it.

use crate::{AccountId, Accounts, Username, UsernameChanged, Usernames};
use ringfence::prelude::*;
use serde::Serialize;

/// Changes an account's username.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct ChangeUsername {
    #[tag(partition)]
    pub account_id: AccountId,
    #[tag(key = "username", cross_partition)]
    pub username: Username,
}

/// Why a username is not changed.
#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code", rename_all_fields = "camelCase")]
pub enum Rejection {
    /// There is no such account, or it is closed.
    #[error("account {account_id} does not exist")]
    AccountNotFound { account_id: AccountId },
    /// Someone has the username, or had it within the last three days.
    #[error("username {username} is claimed")]
    UsernameClaimed { username: Username },
}

impl Slice for ChangeUsername {
    const NAME: &'static str = "change-username";
    type Context = Accounts;
    type State = Usernames;
    type Writes = UsernameChanged;
    type Rejection = Rejection;

    fn decide(
        &self,
        state: &Usernames,
        context: &CommandContext,
    ) -> Result<Vec<UsernameChanged>, Rejection> {
        let Self { account_id, username } = self.clone();
        let Some(old_username) = state.username(&account_id).cloned() else {
            return Err(Rejection::AccountNotFound { account_id });
        };
        if old_username == username {
            return Ok(vec![]);
        }
        if state.is_claimed(&username, context.now_ms) {
            return Err(Rejection::UsernameClaimed { username });
        }
        Ok(vec![UsernameChanged { account_id, old_username, new_username: username }])
    }

    fn cases() -> Vec<Case<Self>> {
        use crate::{AccountClosed, AccountRegistered, RETENTION_MS};

        let registered =
            |account, name| AccountRegistered { account_id: id(account), username: id(name) };
        let closed = || AccountClosed { account_id: id("a1"), username: id("u1") };
        let changed = |old, new| UsernameChanged {
            account_id: id("a1"),
            old_username: id(old),
            new_username: id(new),
        };
        let change = |name| ChangeUsername { account_id: id("a1"), username: id(name) };
        let claimed = |name| Rejection::UsernameClaimed { username: id(name) };
        let missing = || Rejection::AccountNotFound { account_id: id("a1") };
        let u1 = || given(events![registered("a1", "u1")]);
        vec![
            given([]).when(change("u2")).then_rejected(missing()),
            u1().and(events![closed()]).when(change("u2")).then_rejected(missing()),
            u1().when(change("u2")).then([changed("u1", "u2")]),
            u1().when(change("u1")).then_nothing(),
            u1().and(events![registered("a2", "u2")])
                .when(change("u2"))
                .then_rejected(claimed("u2")),
            u1().and(events![changed("u1", "u2")]).when(change("u3")).then([changed("u2", "u3")]),
            // The account itself can't take it back earlier than others can.
            u1().and(events![changed("u1", "u2")])
                .wait(RETENTION_MS)
                .when(change("u1"))
                .then_rejected(claimed("u1")),
            u1().wait(1)
                .and(events![changed("u1", "u2")])
                .wait(RETENTION_MS + 1)
                .when(change("u1"))
                .then([changed("u2", "u1")]),
        ]
    }
}
