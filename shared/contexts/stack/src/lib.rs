//! The contexts of the stack and their catalog. A new context has its line here.

mod names;

use std::collections::BTreeSet;

use ringfence::{Catalog, CatalogError};
use ringfence_aggregate_log::EventStore;
use ringfence_carts::Cart;
use ringfence_customers::Customers;
use ringfence_document_log::Decider;

use crate::names::names;

/// The event stores of the aggregate log; each is a context of its own.
pub const EVENT_STORES: [&str; 1] = [Customers::ID];

/// The categories of the document log; each is a context of its own.
pub const CATEGORIES: [&str; 1] = [Cart::CATEGORY];

/// The name of every context, on whichever log: the sources of the EventTopic.
///
/// # Errors
/// As [`catalog`].
pub fn contexts() -> Result<BTreeSet<&'static str>, CatalogError> {
    let catalog = catalog()?;
    let declared = catalog.schemas().filter_map(|schema| catalog.context(schema.name));
    Ok(declared.chain(EVENT_STORES).chain(CATEGORIES).collect())
}

/// The name of every event type, of whichever log.
///
/// # Errors
/// As [`catalog`].
pub fn event_types() -> Result<BTreeSet<&'static str>, CatalogError> {
    let catalog = catalog()?;
    let declared = catalog.schemas().map(|schema| schema.name);
    let of_streams =
        [names::<<Customers as EventStore>::Event>(), names::<<Cart as Decider>::Event>()];
    Ok(declared.chain(of_streams.concat()).collect())
}

/// Every event type of the DCB log.
///
/// # Errors
/// Two contexts contradict each other.
pub fn catalog() -> Result<Catalog, CatalogError> {
    Catalog::compose([
        ringfence_accounts::catalog()?,
        ringfence_catalog::catalog()?,
        ringfence_courses::catalog()?,
        ringfence_invoices::catalog()?,
        ringfence_ordering::catalog()?,
        ringfence_pricing::catalog()?,
        ringfence_signups::catalog()?,
    ])
}
