//! Accounts and their usernames: the DCB specification's unique username, with retention.

pub mod change_username;
pub mod close_account;
mod events;
pub mod register_account;
mod usernames;

use ringfence::prelude::*;
use ringfence_stack::{MemberList, Members, Visitor};

pub use events::*;
pub use usernames::{AccountEvent, Usernames};

pub struct Accounts;

impl Context for Accounts {
    const NAME: &'static str = "accounts";
    type Log = Dcb;

    fn catalog() -> Result<Catalog, CatalogError> {
        ringfence_stack::catalog::<Self>()
    }
}

impl Members for Accounts {
    fn list(list: &mut MemberList<impl Visitor>) {
        list.slice::<change_username::ChangeUsername>()
            .slice::<close_account::CloseAccount>()
            .slice::<register_account::RegisterAccount>();
    }
}

#[test]
fn the_cases_of_accounts_hold() {
    ringfence_stack::check_cases_in_memory::<Accounts>();
}
