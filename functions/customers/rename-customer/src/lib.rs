//! RenameCustomer: a customer is called something else.
//!
//! The boundary is the customer.

use ringfence::Context;
use ringfence_aggregate_log::Decide;
use ringfence_aggregate_log::kit::{Case, given};
use ringfence_customers::{
    Customer, CustomerEvent, CustomerId, CustomerName, Customers, NotActive, active,
};
use serde::{Deserialize, Serialize};

/// Gives a customer another name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RenameCustomer {
    /// The customer.
    pub customer_id: CustomerId,
    /// What it is called from now on.
    pub name: CustomerName,
}

impl Decide for RenameCustomer {
    const NAME: &'static str = "rename-customer";
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
        let name = String::from(self.name.clone());
        if active(&self.customer_id, customer)?.name == name {
            return Ok(vec![]);
        }
        Ok(vec![CustomerEvent::CustomerRenamed { name }])
    }
}

/// The rules, as cases.
pub fn cases() -> Vec<Case<RenameCustomer>> {
    use ringfence::kit::id;
    use ringfence_customers::facts::{deactivated, happened, inactive, missing, registered};

    let command = |name: &str| RenameCustomer { customer_id: id("ada"), name: id(name) };
    let renamed =
        |name: &str| happened("ada", CustomerEvent::CustomerRenamed { name: name.to_owned() });
    let ada = || registered("ada");
    vec![
        given([]).when(command("Eve")).then_rejected(missing("ada")),
        given([ada()]).when(command("Eve")).then([renamed("Eve")]),
        given([ada()]).when(command("Ada")).then_nothing(),
        given([ada(), renamed("Eve")]).when(command("Ada")).then([renamed("Ada")]),
        given([ada(), deactivated("ada")]).when(command("Eve")).then_rejected(inactive("ada")),
    ]
}

#[test]
fn rules_hold() {
    cases().iter().for_each(Case::check_in_memory);
}
