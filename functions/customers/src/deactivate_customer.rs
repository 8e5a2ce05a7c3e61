//! DeactivateCustomer: deactivates a customer for good.
//!
//! The boundary is the customer.

use crate::{CustomerDeactivated, CustomerId, Customers, Named, NotActive};
use ringfence::prelude::*;

/// Deactivates a customer.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct DeactivateCustomer {
    #[tag(partition)]
    pub customer_id: CustomerId,
}

impl Slice for DeactivateCustomer {
    const NAME: &'static str = "deactivate-customer";
    type Context = Customers;
    type State = Named;
    type Writes = CustomerDeactivated;
    type Rejection = NotActive;

    fn decide(
        &self,
        customers: &Named,
        context: &CommandContext,
    ) -> Result<Vec<CustomerDeactivated>, NotActive> {
        let customer_id = self.customer_id.clone();
        match customers.own(&customer_id, context) {
            Ok(_) => Ok(vec![CustomerDeactivated { customer_id }]),
            Err(NotActive::CustomerInactive { .. }) => Ok(vec![]),
            Err(missing) => Err(missing),
        }
    }

    fn cases() -> Vec<Case<Self>> {
        use crate::facts::{deactivated, missing, registered};

        let command = || DeactivateCustomer { customer_id: id("ada") };
        vec![
            given(events![registered("ada")])
                .when(command())
                .by("jwt:main:ada")
                .then([deactivated("ada")]),
            given(events![registered("ada")])
                .when(command())
                .by("jwt:main:eve")
                .then_rejected(missing("ada")),
            given([]).when(command()).then_rejected(missing("ada")),
            given(events![registered("ada")]).when(command()).then([deactivated("ada")]),
            given(events![registered("ada"), deactivated("ada")]).when(command()).then_nothing(),
        ]
    }
}
