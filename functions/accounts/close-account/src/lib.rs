//! CloseAccount: an account gives its username up for good.

use ringfence::prelude::*;
use ringfence_accounts::{AccountClosed, AccountEvent, AccountId, Accounts};
use serde::Serialize;

/// Closes an account.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct CloseAccount {
    /// The account.
    #[tag(partition)]
    pub account_id: AccountId,
}

/// Why nothing is closed.
#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code", rename_all_fields = "camelCase")]
pub enum Rejection {
    /// There never was such an account.
    #[error("account {account_id} does not exist")]
    AccountNotFound {
        /// The account.
        account_id: AccountId,
    },
}

impl Slice for CloseAccount {
    const NAME: &'static str = "close-account";
    const CONTEXT: &'static str = "accounts";
    type Reads = AccountEvent;
    type State = Accounts;
    type Writes = AccountClosed;
    type Rejection = Rejection;

    fn catalog() -> Result<Catalog, CatalogError> {
        ringfence_accounts::catalog()
    }

    fn evolve(state: Accounts, event: AccountEvent) -> Accounts {
        state.evolve(event)
    }

    fn decide(
        state: &Accounts,
        command: &Self,
        _: &Context,
    ) -> Result<Vec<AccountClosed>, Rejection> {
        let Self { account_id } = command.clone();
        match state.username(&account_id).cloned() {
            Some(username) => Ok(vec![AccountClosed { account_id, username }]),
            None if state.was_opened(&account_id) => Ok(vec![]),
            None => Err(Rejection::AccountNotFound { account_id }),
        }
    }
}

/// The rules, as cases.
pub fn cases() -> Vec<Case<CloseAccount>> {
    use ringfence_accounts::{AccountRegistered, UsernameChanged};

    let registered =
        |account, name| AccountRegistered { account_id: id(account), username: id(name) };
    let closed = |name| AccountClosed { account_id: id("a1"), username: id(name) };
    let changed =
        || UsernameChanged { account_id: id("a1"), old_username: id("u1"), new_username: id("u2") };
    let close = || CloseAccount { account_id: id("a1") };
    let missing = || Rejection::AccountNotFound { account_id: id("a1") };
    let u1 = || given(events![registered("a1", "u1")]);
    vec![
        given([]).when(close()).then_rejected(missing()),
        given(events![registered("a2", "u1")]).when(close()).then_rejected(missing()),
        u1().when(close()).then([closed("u1")]),
        // It gives up the username that it has by then.
        u1().and(events![changed()]).when(close()).then([closed("u2")]),
        u1().and(events![closed("u1")]).when(close()).then_nothing(),
        // Also when someone else has the username by then.
        u1().and(events![closed("u1"), registered("a2", "u1")]).when(close()).then_nothing(),
    ]
}

#[test]
fn rules_hold() {
    ringfence::kit::check_in_memory(cases());
}
