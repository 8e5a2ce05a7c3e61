//! RegisterCustomer: registers a customer, who gets welcome points.
//!
//! The boundary is the customer: an id is registered once.

use crate::{
    CustomerId, CustomerName, CustomerRegistered, Customers, Email, Named, WELCOME_POINTS,
};
use ringfence::{MailAddress, prelude::*};
use serde::Serialize;

/// Registers a customer.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct RegisterCustomer {
    #[tag(partition)]
    pub customer_id: CustomerId,
    pub name: CustomerName,
    pub email: MailAddress,
}

/// Why a customer is not registered.
#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code", rename_all_fields = "camelCase")]
pub enum Rejection {
    /// A customer with this id exists, with another name or address, or is deactivated.
    #[error("customer {customer_id} is registered already")]
    CustomerExists { customer_id: CustomerId },
    #[error("the caller is not the customer {customer_id}")]
    NotTheCustomer { customer_id: CustomerId },
}

impl Slice for RegisterCustomer {
    const NAME: &'static str = "register-customer";
    type Context = Customers;
    type State = Named;
    type Writes = CustomerRegistered;
    type Rejection = Rejection;

    fn decide(
        &self,
        customers: &Named,
        context: &CommandContext,
    ) -> Result<Vec<CustomerRegistered>, Rejection> {
        let Self { customer_id, name, email } = self.clone();
        if context.is_other_person(&customer_id) {
            return Err(Rejection::NotTheCustomer { customer_id });
        }
        let (name, email) = (name.into(), Email::from(email));
        match customers.get(&customer_id) {
            None => {
                let points = WELCOME_POINTS;
                Ok(vec![CustomerRegistered { customer_id, name, email, points }])
            }
            Some(customer)
                if customer.active && customer.name == name && customer.email == email =>
            {
                Ok(vec![])
            }
            Some(_) => Err(Rejection::CustomerExists { customer_id }),
        }
    }

    fn cases() -> Vec<Case<Self>> {
        use crate::facts::{deactivated, registered};

        let command = |name: &str| RegisterCustomer {
            customer_id: id("ada"),
            name: id(name),
            email: id("ada@example.com"),
        };
        let exists = || Rejection::CustomerExists { customer_id: id("ada") };
        vec![
            given([]).when(command("Ada")).then([registered("ada")]),
            given([]).when(command("Ada")).by("jwt:main:ada").then([registered("ada")]),
            given([])
                .when(command("Ada"))
                .by("jwt:main:eve")
                .then_rejected(Rejection::NotTheCustomer { customer_id: id("ada") }),
            given(events![registered("bob")]).when(command("Ada")).then([registered("ada")]),
            given(events![registered("ada")]).when(command("Ada")).then_nothing(),
            given(events![registered("ada")]).when(command("Eve")).then_rejected(exists()),
            given(events![registered("ada"), deactivated("ada")])
                .when(command("Ada"))
                .then_rejected(exists()),
        ]
    }
}
