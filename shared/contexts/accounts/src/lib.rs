//! Accounts and their usernames: the DCB specification's unique username, with retention.

use ringfence::{Catalog, CatalogError, Event, id_type};

id_type!(AccountId, "names an account");
id_type!(Username, "names a person to others");

/// How long a username that was given up stays with whom had it, in milliseconds: three days.
pub const RETENTION_MS: u64 = 3 * 24 * 3_600 * 1_000;

/// An account is opened.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct AccountRegistered {
    /// The account.
    #[tag(partition)]
    pub account_id: AccountId,
    /// Its username.
    #[tag(key = "username", cross_partition, strong)]
    pub username: Username,
}

/// An account is closed.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct AccountClosed {
    /// The account.
    #[tag(partition)]
    pub account_id: AccountId,
    /// The username that it gives up.
    #[tag(key = "username", cross_partition, strong)]
    pub username: Username,
}

/// An account has another username. Whoever asks for either finds it.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct UsernameChanged {
    /// The account.
    #[tag(partition)]
    pub account_id: AccountId,
    /// The username that it gives up.
    #[tag(key = "username", cross_partition, strong)]
    pub old_username: Username,
    /// The one that it takes.
    #[tag(key = "username", cross_partition, strong)]
    pub new_username: Username,
}

/// What is known of a username.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// An account has it.
    Held,
    /// It was given up at this time, in milliseconds since 1970.
    GivenUp(u64),
}

impl Claim {
    /// Whether nobody else can take the username now.
    pub fn holds(self, now_ms: u64) -> bool {
        match self {
            Self::Held => true,
            Self::GivenUp(at_ms) => now_ms.saturating_sub(at_ms) <= RETENTION_MS,
        }
    }
}

/// Every event of this context.
pub fn catalog() -> Result<Catalog, CatalogError> {
    Catalog::new(
        "accounts",
        [AccountRegistered::SCHEMA, AccountClosed::SCHEMA, UsernameChanged::SCHEMA],
    )
}
