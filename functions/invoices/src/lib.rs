//! Invoices, numbered without gaps: the DCB specification's invoice number.

pub mod create_invoice;
mod events;

use ringfence::prelude::*;

pub use events::*;

ringfence::context! {
    pub Invoices, "invoices" on Dcb;
    slice create_invoice::CreateInvoice;
}
