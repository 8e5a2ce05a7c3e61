//! DeactivateCustomer: nothing happens to a customer any more.
//!
//! The boundary is the customer.

use ringfence::Context;
use ringfence_aggregate_log::Decide;
use ringfence_aggregate_log::kit::{Case, given};
use ringfence_customers::{Customer, CustomerEvent, CustomerId, Customers, NotActive, active};
use serde::{Deserialize, Serialize};

/// Deactivates a customer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeactivateCustomer {
    /// The customer.
    pub customer_id: CustomerId,
}

impl Decide for DeactivateCustomer {
    const NAME: &'static str = "deactivate-customer";
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
        match active(&self.customer_id, customer) {
            Ok(_) => Ok(vec![CustomerEvent::CustomerDeactivated]),
            Err(NotActive::CustomerInactive { .. }) => Ok(vec![]),
            Err(missing) => Err(missing),
        }
    }
}

/// The rules, as cases.
pub fn cases() -> Vec<Case<DeactivateCustomer>> {
    use ringfence::kit::id;
    use ringfence_customers::facts::{deactivated, missing, registered};

    let command = || DeactivateCustomer { customer_id: id("ada") };
    let ada = || registered("ada");
    vec![
        given([]).when(command()).then_rejected(missing("ada")),
        given([ada()]).when(command()).then([deactivated("ada")]),
        given([ada(), deactivated("ada")]).when(command()).then_nothing(),
    ]
}

#[test]
fn rules_hold() {
    cases().iter().for_each(Case::check_in_memory);
}
