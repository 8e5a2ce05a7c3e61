//! ChangeCustomerEmail: a customer is reached somewhere else.
//!
//! The boundary is the customer.

use ringfence::Context;
use ringfence_aggregate_log::Decide;
use ringfence_aggregate_log::kit::{Case, given};
use ringfence_customers::{
    Customer, CustomerEvent, CustomerId, Customers, Email, NotActive, active,
};
use serde::{Deserialize, Serialize};

/// Gives a customer another address.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChangeCustomerEmail {
    /// The customer.
    pub customer_id: CustomerId,
    /// Where it is reached from now on.
    pub email: Email,
}

impl Decide for ChangeCustomerEmail {
    const NAME: &'static str = "change-customer-email";
    type Store = Customers;
    type Rejection = NotActive;

    fn aggregate_id(&self) -> String {
        self.customer_id.to_string()
    }

    fn decide(
        &self,
        customer: Option<&Customer>,
        _: &Context,
    ) -> Result<Vec<CustomerEvent>, NotActive> {
        if active(&self.customer_id, customer)?.email.as_ref() == Some(&self.email) {
            return Ok(vec![]);
        }
        Ok(vec![CustomerEvent::EmailChanged { email: self.email.clone() }])
    }
}

/// The rules, as cases.
pub fn cases() -> Vec<Case<ChangeCustomerEmail>> {
    use ringfence::kit::id;
    use ringfence_customers::facts::{deactivated, happened, inactive, missing, registered};

    let command = |email| ChangeCustomerEmail { customer_id: id("ada"), email: id(email) };
    let changed = |email| happened("ada", CustomerEvent::EmailChanged { email: id(email) });
    let ada = || registered("ada");
    vec![
        given([]).when(command("a@b.c")).then_rejected(missing("ada")),
        given([ada()]).when(command("a@b.c")).then([changed("a@b.c")]),
        given([ada()]).when(command("ada@example.com")).then_nothing(),
        given([ada(), changed("a@b.c")]).when(command("a@b.c")).then_nothing(),
        given([ada(), deactivated("ada")]).when(command("a@b.c")).then_rejected(inactive("ada")),
    ]
}

#[test]
fn rules_hold() {
    cases().iter().for_each(Case::check_in_memory);
}
