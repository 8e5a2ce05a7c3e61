//! ChangeCustomerEmail: changes a customer's email address.
//!
//! The boundary is the customer.

use crate::{Customer, CustomerEvent, CustomerId, Customers, Email, NotActive, active};
use ringfence::prelude::*;

/// Changes a customer's email address.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct ChangeCustomerEmail {
    pub customer_id: CustomerId,
    pub email: Email,
}

impl Slice for ChangeCustomerEmail {
    const NAME: &'static str = "change-customer-email";
    type Context = Customers;
    type State = Option<Customer>;
    type Writes = CustomerEvent;
    type Rejection = NotActive;

    fn decide(
        &self,
        customer: &Option<Customer>,
        _: &CommandContext,
    ) -> Result<Vec<CustomerEvent>, NotActive> {
        if active(&self.customer_id, customer)?.email.as_ref() == Some(&self.email) {
            return Ok(vec![]);
        }
        Ok(vec![CustomerEvent::EmailChanged { email: self.email.clone() }])
    }

    fn cases() -> Vec<Case<Self>> {
        use crate::facts::{inactive, missing, registered};

        let command = |email| ChangeCustomerEmail { customer_id: id("ada"), email: id(email) };
        let changed = |email| CustomerEvent::EmailChanged { email: id(email) };
        vec![
            given([]).when(command("a@b.c")).then_rejected(missing("ada")),
            given([registered()]).when(command("a@b.c")).then([changed("a@b.c")]),
            given([registered()]).when(command("ada@example.com")).then_nothing(),
            given([registered(), changed("a@b.c")]).when(command("a@b.c")).then_nothing(),
            given([registered(), CustomerEvent::CustomerDeactivated])
                .when(command("a@b.c"))
                .then_rejected(inactive("ada")),
        ]
    }
}

impl StreamSlice for ChangeCustomerEmail {
    fn stream_id(&self) -> String {
        self.customer_id.to_string()
    }
}
