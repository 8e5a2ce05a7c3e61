//! Accounts on the document log: each account is a document, its newest events beside its balance.

#[path = "dcb/deposit.rs"]
pub mod deposit;
#[path = "dcb/facts.rs"]
pub mod facts;
#[path = "dcb/open.rs"]
pub mod open;
#[path = "dcb/withdraw.rs"]
pub mod withdraw;

use ringfence::prelude::*;
use ringfence_document_log::{Access, Declares, Document, Documents, Snapshot};

use crate::account::Account;
pub use crate::dcb::{Deposited, Opened, Withdrawn};

/// The context.
pub struct Accounts;

impl Context for Accounts {
    const NAME: &'static str = "accounts";
    type Log = Documents<Account>;
    type Event = NewEvent;
}

impl Declares for Accounts {
    fn catalog() -> Result<Catalog, CatalogError> {
        let schemas = [Opened::SCHEMA, Deposited::SCHEMA, Withdrawn::SCHEMA];
        Catalog::new(Self::NAME, schemas)
    }
}

impl Document for Account {
    /// Each append stores the account beside the events, and a decision reads the newest one.
    const ACCESS: Access<Self> = Access::Snapshot(Snapshot::named("Snapshot"));
}
