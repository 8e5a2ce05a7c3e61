//! RegisterAccount: opens an account under a username that nobody has.
//!
//! Nobody can take a username within three days after it was given up.

use crate::{AccountId, AccountRegistered, Accounts, Username, Usernames};
use ringfence::prelude::*;
use serde::Serialize;

/// Opens an account.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct RegisterAccount {
    #[tag(partition)]
    pub account_id: AccountId,
    #[tag(key = "username", cross_partition)]
    pub username: Username,
}

/// Why no account is opened.
#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code", rename_all_fields = "camelCase")]
pub enum Rejection {
    #[error("account {account_id} already exists")]
    AccountExists { account_id: AccountId },
    /// Someone has the username, or had it within the last three days.
    #[error("username {username} is claimed")]
    UsernameClaimed { username: Username },
}

impl Slice for RegisterAccount {
    const NAME: &'static str = "register-account";
    type Context = Accounts;
    type State = Usernames;
    type Writes = AccountRegistered;
    type Rejection = Rejection;

    fn decide(
        &self,
        state: &Usernames,
        context: &CommandContext,
    ) -> Result<Vec<AccountRegistered>, Rejection> {
        let Self { account_id, username } = self.clone();
        if state.was_opened(&account_id) {
            return Err(Rejection::AccountExists { account_id });
        }
        if state.is_claimed(&username, context.now_ms) {
            return Err(Rejection::UsernameClaimed { username });
        }
        Ok(vec![AccountRegistered { account_id, username }])
    }

    /// The published cases, then the exact end of retention.
    fn cases() -> Vec<Case<Self>> {
        use crate::{AccountClosed, RETENTION_MS, UsernameChanged};

        const DAY_MS: u64 = 24 * 3_600 * 1_000;
        let registered =
            |account, name| AccountRegistered { account_id: id(account), username: id(name) };
        let closed = |account, name| AccountClosed { account_id: id(account), username: id(name) };
        let changed = |account, old, new| UsernameChanged {
            account_id: id(account),
            old_username: id(old),
            new_username: id(new),
        };
        let register = |name| RegisterAccount { account_id: id("a2"), username: id(name) };
        let claimed = |name| Rejection::UsernameClaimed { username: id(name) };
        let u1 = || given(events![registered("a1", "u1")]);
        let changed_u1 = || events![changed("a1", "u1", "u1changed")];
        vec![
            u1().when(register("u1")).then_rejected(claimed("u1")),
            given([]).when(register("u1")).then([registered("a2", "u1")]),
            u1().and(changed_u1()).when(register("u1changed")).then_rejected(claimed("u1changed")),
            u1().wait(DAY_MS)
                .and(events![closed("a1", "u1")])
                .wait(3 * DAY_MS)
                .when(register("u1"))
                .then_rejected(claimed("u1")),
            u1().wait(DAY_MS)
                .and(changed_u1())
                .wait(3 * DAY_MS)
                .when(register("u1"))
                .then_rejected(claimed("u1")),
            u1().wait(DAY_MS)
                .and(events![closed("a1", "u1")])
                .wait(4 * DAY_MS)
                .when(register("u1"))
                .then([registered("a2", "u1")]),
            u1().wait(DAY_MS)
                .and(changed_u1())
                .wait(4 * DAY_MS)
                .when(register("u1"))
                .then([registered("a2", "u1")]),
            u1().wait(DAY_MS)
                .and(changed_u1())
                .wait(RETENTION_MS + 1)
                .when(register("u1"))
                .then([registered("a2", "u1")]),
            // A username that an account has does not become free with time.
            u1().wait(400 * DAY_MS).when(register("u1")).then_rejected(claimed("u1")),
            u1().and(changed_u1())
                .wait(400 * DAY_MS)
                .when(register("u1changed"))
                .then_rejected(claimed("u1changed")),
            // A username that was given up and taken again is claimed again.
            u1().and(events![closed("a1", "u1")])
                .wait(4 * DAY_MS)
                .and(events![registered("a3", "u1")])
                .wait(4 * DAY_MS)
                .when(register("u1"))
                .then_rejected(claimed("u1")),
            given(events![registered("a2", "u9")])
                .when(register("u1"))
                .then_rejected(Rejection::AccountExists { account_id: id("a2") }),
        ]
    }
}
