//! Invoices, numbered without gaps: the DCB specification's invoice number.

pub mod create_invoice;
mod events;

use ringfence::prelude::*;
use ringfence_stack::{MemberList, Members, Visitor};

pub use events::*;

pub struct Invoices;

impl Context for Invoices {
    const NAME: &'static str = "invoices";
    type Log = Dcb;

    fn catalog() -> Result<Catalog, CatalogError> {
        ringfence_stack::catalog::<Self>()
    }
}

impl Members for Invoices {
    fn list(list: &mut MemberList<impl Visitor>) {
        list.slice::<create_invoice::CreateInvoice>();
    }
}

#[test]
fn the_cases_of_invoices_hold() {
    ringfence_stack::check_cases_in_memory::<Invoices>();
}
