//! RegisterCustomer: a customer is welcomed with points.
//!
//! The boundary is the customer: an id is registered once.

use ringfence::Context;
use ringfence_aggregate_log::Decide;
use ringfence_aggregate_log::kit::{Case, given};
use ringfence_customers::{
    Customer, CustomerEvent, CustomerId, CustomerName, Customers, Email, WELCOME_POINTS,
};
use serde::{Deserialize, Serialize};

/// Registers a customer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RegisterCustomer {
    /// The new customer.
    pub customer_id: CustomerId,
    /// What it is called.
    pub name: CustomerName,
    /// Where it is reached.
    pub email: Email,
}

/// Why a customer is not registered.
#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code", rename_all_fields = "camelCase")]
pub enum Rejection {
    /// The customer exists, and is another.
    #[error("customer {customer_id} is registered already")]
    CustomerExists {
        /// The customer.
        customer_id: CustomerId,
    },
}

impl Decide for RegisterCustomer {
    const NAME: &'static str = "register-customer";
    type Store = Customers;
    type Rejection = Rejection;

    fn aggregate_id(&self) -> String {
        self.customer_id.to_string()
    }

    fn decide(
        &self,
        customer: Option<&Customer>,
        _: &Context,
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
}

/// The rules, as cases.
pub fn cases() -> Vec<Case<RegisterCustomer>> {
    use ringfence::kit::id;
    use ringfence_customers::facts::{deactivated, registered};

    let command = |name: &str| RegisterCustomer {
        customer_id: id("ada"),
        name: id(name),
        email: id("ada@example.com"),
    };
    let exists = || Rejection::CustomerExists { customer_id: id("ada") };
    let ada = || registered("ada");
    vec![
        given([]).when(command("Ada")).then([ada()]),
        given([registered("bob")]).when(command("Ada")).then([ada()]),
        given([ada()]).when(command("Ada")).then_nothing(),
        given([ada()]).when(command("Eve")).then_rejected(exists()),
        given([ada(), deactivated("ada")]).when(command("Ada")).then_rejected(exists()),
    ]
}

#[test]
fn rules_hold() {
    cases().iter().for_each(Case::check_in_memory);
}
