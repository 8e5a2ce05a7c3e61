//! RegisterCustomer: registers a customer, who gets welcome points.
//!
//! The boundary is the customer: an id is registered once.

use crate::{
    CustomerId, CustomerName, CustomerRegistered, Customers, Email, Named, WELCOME_POINTS,
};
use ringfence::{MailAddress, Personal, prelude::*};
use serde::Serialize;

/// Registers a customer.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct RegisterCustomer {
    #[tag(partition)]
    #[subject]
    pub customer_id: CustomerId,
    pub name: Personal<CustomerName>,
    pub email: Personal<MailAddress>,
}

/// Why a customer is not registered.
#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code", rename_all_fields = "camelCase")]
pub enum Rejection {
    /// A customer with this id exists, or is deactivated.
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
        if customers.get(&customer_id).is_some() {
            return Err(Rejection::CustomerExists { customer_id });
        }
        let (name, email) = (name.map(String::from), email.map(Email::from));
        Ok(vec![CustomerRegistered { customer_id, name, email, points: WELCOME_POINTS }])
    }

    fn cases() -> Vec<Case<Self>> {
        use crate::facts::{deactivated, registered};

        let command = || RegisterCustomer {
            customer_id: id("ada"),
            name: id::<CustomerName>("Ada").into(),
            email: id::<MailAddress>("ada@example.com").into(),
        };
        let exists = || Rejection::CustomerExists { customer_id: id("ada") };
        vec![
            given([]).when(command()).then([registered("ada")]),
            given([]).when(command()).by("jwt:main:ada").then([registered("ada")]),
            given([])
                .when(command())
                .by("jwt:main:eve")
                .then_rejected(Rejection::NotTheCustomer { customer_id: id("ada") }),
            given(events![registered("bob")]).when(command()).then([registered("ada")]),
            given(events![registered("ada")]).when(command()).then_rejected(exists()),
            given(events![registered("ada"), deactivated("ada")])
                .when(command())
                .then_rejected(exists()),
        ]
    }
}
