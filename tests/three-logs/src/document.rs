//! Accounts on the document log: each account is a document, with its newest events beside its balance.

#[path = "slices/deposit.rs"]
pub mod deposit;
#[path = "slices/facts.rs"]
pub mod facts;
#[path = "slices/open.rs"]
pub mod open;
#[path = "slices/withdraw.rs"]
pub mod withdraw;

use ringfence_core::prelude::*;
use ringfence_document_log::{AccessStrategy, Document, Documents, Snapshot};

use crate::account::{Account, Deposited, Opened, Withdrawn};

/// The context.
pub struct Accounts;

impl Context for Accounts {
    const NAME: &'static str = "accounts";
    type Log = Documents<Account>;

    fn catalog() -> Result<Catalog, CatalogError> {
        Catalog::new(Self::NAME, [Opened::SCHEMA, Deposited::SCHEMA, Withdrawn::SCHEMA])
    }
}

impl Document for Account {
    /// Each append stores the account beside the events, and a decision reads the newest one.
    const ACCESS: AccessStrategy<Self> = AccessStrategy::Snapshot(Snapshot::named("Snapshot"));
}
