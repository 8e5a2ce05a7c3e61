//! The events and the value types.

use ringfence::Event;
use serde_json::Value;

/// An invoice is written. The next number follows from all of them, so decisions read the type
/// alone: every invoice of the stack passes one fence.
#[derive(Clone, Debug, PartialEq, Event)]
#[event(read_by_type)]
pub struct InvoiceCreated {
    /// Its number: 1, 2, 3, …
    #[tag(partition, key = "invoiceNumber")]
    pub invoice_number: u64,
    /// What it says.
    pub invoice_data: Value,
}
