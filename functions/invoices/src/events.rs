//! The events and the value types.

use ringfence::Event;
use serde_json::Value;

/// An invoice is created. The next number follows from all invoices, so decisions read the whole
/// type, and all invoices share one fence.
#[derive(Clone, Debug, PartialEq, Event)]
#[event(read_by_type)]
pub struct InvoiceCreated {
    /// Its number: 1, 2, 3, …
    #[tag(partition, key = "invoiceNumber")]
    pub invoice_number: u64,
    pub invoice_data: Value,
}
