//! The stack's catalog: those of all contexts together. A new context has its line here.

use ringfence::{Catalog, CatalogError};

/// Every event type of the stack.
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
