//! DeactivateCustomer: deactivates a customer for good.
//!
//! The boundary is the customer.

use crate::{Customer, CustomerEvent, CustomerId, Customers, NotActive, active};
use ringfence::prelude::*;

/// Deactivates a customer.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct DeactivateCustomer {
    pub customer_id: CustomerId,
}

impl Slice for DeactivateCustomer {
    const NAME: &'static str = "deactivate-customer";
    type Context = Customers;
    type State = Option<Customer>;
    type Writes = CustomerEvent;
    type Rejection = NotActive;

    fn decide(
        &self,
        customer: &Option<Customer>,
        _: &CommandContext,
    ) -> Result<Vec<CustomerEvent>, NotActive> {
        match active(&self.customer_id, customer) {
            Ok(_) => Ok(vec![CustomerEvent::CustomerDeactivated]),
            Err(NotActive::CustomerInactive { .. }) => Ok(vec![]),
            Err(missing) => Err(missing),
        }
    }

    fn cases() -> Vec<Case<Self>> {
        use crate::facts::{missing, registered};

        let command = || DeactivateCustomer { customer_id: id("ada") };
        vec![
            given([]).when(command()).then_rejected(missing("ada")),
            given([registered()]).when(command()).then([CustomerEvent::CustomerDeactivated]),
            given([registered(), CustomerEvent::CustomerDeactivated])
                .when(command())
                .then_nothing(),
        ]
    }
}

impl StreamSlice for DeactivateCustomer {
    fn stream_id(&self) -> String {
        self.customer_id.to_string()
    }
}
