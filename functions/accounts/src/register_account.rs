//! RegisterAccount: opens an account under a username that nobody has, perhaps with a mail address that nobody has.
//!
//! Nobody can take a username within three days after it was given up.

use crate::{AccountId, AccountRegistered, Accounts, EmailClaimed, Username, Usernames};
use ringfence::{MailAddress, Personal, prelude::*};
use serde::Serialize;

/// Opens an account.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct RegisterAccount {
    #[tag(partition)]
    #[subject]
    pub account_id: AccountId,
    #[tag(key = "username", cross_partition)]
    pub username: Username,
    #[tag(key = "email", cross_partition, blind)]
    pub email: Option<Personal<MailAddress>>,
}

/// What the decision writes.
#[derive(Clone, Debug, PartialEq, Writes)]
pub enum Written {
    Registered(AccountRegistered),
    Claimed(EmailClaimed),
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
    #[error("another account has the mail address")]
    EmailTaken,
}

impl Slice for RegisterAccount {
    const NAME: &'static str = "register-account";
    type Context = Accounts;
    type State = Usernames;
    type Writes = Written;
    type Rejection = Rejection;

    fn decide(
        &self,
        state: &Usernames,
        context: &CommandContext,
    ) -> Result<Vec<Written>, Rejection> {
        let Self { account_id, username, email } = self.clone();
        if state.was_opened(&account_id) {
            return Err(Rejection::AccountExists { account_id });
        }
        if state.is_claimed(&username, context.now_ms) {
            return Err(Rejection::UsernameClaimed { username });
        }
        if state.email_is_taken(&account_id) {
            return Err(Rejection::EmailTaken);
        }
        let claimed = email.map(|email| EmailClaimed { account_id: account_id.clone(), email });
        let registered = Written::Registered(AccountRegistered { account_id, username });
        Ok([registered].into_iter().chain(claimed.map(Written::Claimed)).collect())
    }

    /// The published cases, then the exact end of retention.
    fn cases() -> Vec<Case<Self>> {
        use crate::{AccountClosed, EmailReleased, RETENTION_MS, UsernameChanged};

        const DAY_MS: u64 = 24 * 3_600 * 1_000;
        let registered =
            |account, name| AccountRegistered { account_id: id(account), username: id(name) };
        let closed = |account, name| AccountClosed { account_id: id(account), username: id(name) };
        let changed = |account, old, new| UsernameChanged {
            account_id: id(account),
            old_username: id(old),
            new_username: id(new),
        };
        let u1 = || given(events![registered("a1", "u1")]);
        let opened = |name| Written::Registered(registered("a2", name));
        let register =
            |name| RegisterAccount { account_id: id("a2"), username: id(name), email: None };
        let address = |text| Personal::from(id::<MailAddress>(text));
        let claiming =
            |account, text| EmailClaimed { account_id: id(account), email: address(text) };
        let released = |text| EmailReleased { account_id: id("a1"), email: address(text) };
        let with = |text| RegisterAccount { email: Some(address(text)), ..register("u2") };
        let both = |text| [opened("u2"), Written::Claimed(claiming("a2", text))];
        let ada = "ada@example.com";
        let has_ada = || u1().and(events![claiming("a1", ada)]);
        let claimed = |name| Rejection::UsernameClaimed { username: id(name) };
        let changed_u1 = || events![changed("a1", "u1", "u1changed")];
        vec![
            u1().when(register("u1")).then_rejected(claimed("u1")),
            given([]).when(register("u1")).then([opened("u1")]),
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
                .then([opened("u1")]),
            u1().wait(DAY_MS)
                .and(changed_u1())
                .wait(4 * DAY_MS)
                .when(register("u1"))
                .then([opened("u1")]),
            u1().wait(DAY_MS)
                .and(changed_u1())
                .wait(RETENTION_MS + 1)
                .when(register("u1"))
                .then([opened("u1")]),
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
            given([]).when(with(ada)).then(both(ada)),
            has_ada().when(with(ada)).then_rejected(Rejection::EmailTaken),
            // In another spelling.
            has_ada().when(with("Ada@Example.com")).then_rejected(Rejection::EmailTaken),
            has_ada().when(with("eve@example.com")).then(both("eve@example.com")),
            has_ada().and(events![released(ada)]).when(with(ada)).then(both(ada)),
        ]
    }
}
