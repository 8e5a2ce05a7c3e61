//! CreateInvoice: creates an invoice under the next number, without gaps.
//!
//! The number depends on all events of the type, so the decision reads the type and not a tag.

use crate::{InvoiceCreated, Invoices};
use ringfence::prelude::*;
use serde_json::Value;

/// Creates an invoice.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct CreateInvoice {
    pub invoice_data: Value,
}

/// What the decision reads.
#[derive(Reads)]
pub enum Consumed {
    InvoiceCreated { invoice_number: u64 },
}

/// The highest number so far.
#[derive(Default)]
pub struct LastNumber {
    last: u64,
}

impl State for LastNumber {
    type Reads = Consumed;

    fn evolve(self, event: Consumed) -> Self {
        let Consumed::InvoiceCreated { invoice_number } = event;
        LastNumber { last: self.last.max(invoice_number) }
    }
}

impl Slice for CreateInvoice {
    const NAME: &'static str = "create-invoice";
    const SCOPES: &'static [&'static str] = &["invoices/write"];
    type Context = Invoices;
    type State = LastNumber;
    type Writes = InvoiceCreated;
    type Rejection = Never;

    fn decide(&self, state: &LastNumber, _: &CommandContext) -> Result<Vec<InvoiceCreated>, Never> {
        let invoice_data = self.invoice_data.clone();
        Ok(vec![InvoiceCreated { invoice_number: state.last + 1, invoice_data }])
    }

    /// The published cases, then a number above 9.
    fn cases() -> Vec<Case<Self>> {
        use ringfence::NewEvent;

        let created = |invoice_number, text: &str| InvoiceCreated {
            invoice_number,
            invoice_data: [("text", text)].into_iter().collect(),
        };
        let create =
            |text: &str| CreateInvoice { invoice_data: [("text", text)].into_iter().collect() };
        let twelve = (1..=12).map(|number| NewEvent::from(created(number, "bar")));
        vec![
            given([]).when(create("bar")).then([created(1, "bar")]),
            given(events![created(1, "bar")]).when(create("baz")).then([created(2, "baz")]),
            // Numbers, not strings: 10 comes after 9.
            given(twelve).when(create("bar")).then([created(13, "bar")]),
        ]
    }
}
