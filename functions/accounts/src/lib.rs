//! Accounts and their usernames: the DCB specification's unique username, with retention.

pub mod change_username;
pub mod close_account;
mod events;
pub mod register_account;
mod usernames;

use ringfence::prelude::*;

pub use events::*;
pub use usernames::{AccountEvent, Usernames};

ringfence::context! {
    pub Accounts, "accounts" on Dcb;
    slice change_username::ChangeUsername;
    slice close_account::CloseAccount;
    slice register_account::RegisterAccount;
}
