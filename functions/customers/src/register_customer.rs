//! RegisterCustomer: registers a customer, who gets welcome points.
//!
//! The boundary is the customer: an id is registered once.

use crate::{Customer, CustomerEvent, CustomerId, CustomerName, Customers, Email, WELCOME_POINTS};
use ringfence::prelude::*;
use serde::Serialize;

/// Registers a customer.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct RegisterCustomer {
    pub customer_id: CustomerId,
    pub name: CustomerName,
    pub email: Email,
}

/// Why a customer is not registered.
#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code", rename_all_fields = "camelCase")]
pub enum Rejection {
    /// A customer with this id exists, with another name or address, or is deactivated.
    #[error("customer {customer_id} is registered already")]
    CustomerExists { customer_id: CustomerId },
}

impl Slice for RegisterCustomer {
    const NAME: &'static str = "register-customer";
    type Context = Customers;
    type State = Option<Customer>;
    type Writes = CustomerEvent;
    type Rejection = Rejection;

    fn decide(
        &self,
        customer: &Option<Customer>,
        _: &CommandContext,
    ) -> Result<Vec<CustomerEvent>, Rejection> {
        let Self { customer_id, name, email } = self.clone();
        let name = name.into();
        match customer {
            None => {
                let points = WELCOME_POINTS;
                Ok(vec![CustomerEvent::CustomerRegistered { name, email, points }])
            }
            Some(customer)
                if customer.active && customer.name == name && customer.email == Some(email) =>
            {
                Ok(vec![])
            }
            Some(_) => Err(Rejection::CustomerExists { customer_id }),
        }
    }

    fn cases() -> Vec<Case<Self>> {
        use crate::facts::registered;

        let command = |name: &str| RegisterCustomer {
            customer_id: id("ada"),
            name: id(name),
            email: id("ada@example.com"),
        };
        let exists = || Rejection::CustomerExists { customer_id: id("ada") };
        vec![
            given([]).when(command("Ada")).then([registered()]),
            given([]).and_of("bob", [registered()]).when(command("Ada")).then([registered()]),
            given([registered()]).when(command("Ada")).then_nothing(),
            given([registered()]).when(command("Eve")).then_rejected(exists()),
            given([registered(), CustomerEvent::CustomerDeactivated])
                .when(command("Ada"))
                .then_rejected(exists()),
        ]
    }
}

impl StreamSlice for RegisterCustomer {
    fn stream_id(&self) -> String {
        self.customer_id.to_string()
    }
}
