//! The events and the value types.

use ringfence::{Event, MailAddress, Personal, id_type};

id_type!(AccountId, "names an account");
id_type!(Username, "names a person to others");

/// How long nobody can take a username that was given up, in milliseconds: three days.
pub const RETENTION_MS: u64 = 3 * 24 * 3_600 * 1_000;

/// An account is opened.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct AccountRegistered {
    #[tag(partition)]
    pub account_id: AccountId,
    #[tag(key = "username", cross_partition, strong)]
    pub username: Username,
}

/// An account is closed.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct AccountClosed {
    #[tag(partition)]
    pub account_id: AccountId,
    #[tag(key = "username", cross_partition, strong)]
    pub username: Username,
}

/// An account has another username. Decisions about either username read this event.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct UsernameChanged {
    #[tag(partition)]
    pub account_id: AccountId,
    #[tag(key = "username", cross_partition, strong)]
    pub old_username: Username,
    #[tag(key = "username", cross_partition, strong)]
    pub new_username: Username,
}

/// An account has a mail address, which no other open account has. Decisions find it by a tag that hides it.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct EmailClaimed {
    #[tag(partition)]
    #[subject]
    pub account_id: AccountId,
    #[tag(key = "email", cross_partition, strong, blind)]
    pub email: Personal<MailAddress>,
}

/// Another account may take the address.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct EmailReleased {
    #[tag(partition)]
    #[subject]
    pub account_id: AccountId,
    #[tag(key = "email", cross_partition, strong, blind)]
    pub email: Personal<MailAddress>,
}
