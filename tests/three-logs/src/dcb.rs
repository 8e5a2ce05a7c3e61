//! Accounts on the DCB log.

#[path = "slices/deposit.rs"]
pub mod deposit;
#[path = "slices/facts.rs"]
pub mod facts;
#[path = "slices/open.rs"]
pub mod open;
#[path = "slices/transfer.rs"]
pub mod transfer;
#[path = "slices/withdraw.rs"]
pub mod withdraw;

use ringfence_core::prelude::*;
use ringfence_dcb_log::Dcb;

use crate::account::{Deposited, Opened, Withdrawn};

/// The context.
pub struct Accounts;

impl Context for Accounts {
    const NAME: &'static str = "accounts";
    type Log = Dcb;

    fn catalog() -> Result<Catalog, CatalogError> {
        Catalog::new(Self::NAME, [Opened::SCHEMA, Deposited::SCHEMA, Withdrawn::SCHEMA])
    }
}
