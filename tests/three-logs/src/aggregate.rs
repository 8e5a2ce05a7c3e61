//! Accounts on the aggregate log: each account is a stream.

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

use ringfence_aggregate_log::Aggregates;
use ringfence_core::prelude::*;

use crate::account::{Deposited, Opened, Withdrawn};

/// The context.
pub struct Accounts;

impl Context for Accounts {
    const NAME: &'static str = "accounts";
    type Log = Aggregates;

    fn catalog() -> Result<Catalog, CatalogError> {
        Catalog::of_streams(Self::NAME, [Opened::SCHEMA, Deposited::SCHEMA, Withdrawn::SCHEMA])
    }
}
