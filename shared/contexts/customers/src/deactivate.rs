//! Deactivate: nothing happens to a customer any more.

use ringfence::Context;
use ringfence_aggregate_log::kit::{Case, fact, given};
use ringfence_aggregate_log::{AggregateLog, Command, CommandError, EventStore, Version};
use serde::Deserialize;

use crate::{Customer, CustomerEvent, CustomerId, Customers, Rejection, WELCOME_POINTS, active};

/// Deactivates a customer.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Deactivate {
    /// The customer.
    pub customer_id: CustomerId,
}

impl Deactivate {
    fn decide(&self, customer: Option<&Customer>) -> Result<Vec<CustomerEvent>, Rejection> {
        match active(&self.customer_id, customer) {
            Ok(_) => Ok(vec![CustomerEvent::CustomerDeactivated]),
            Err(Rejection::CustomerInactive { .. }) => Ok(vec![]),
            Err(rejection) => Err(rejection),
        }
    }
}

impl Command for Deactivate {
    type Output = Version;
    type Rejection = Rejection;

    async fn handle<L: AggregateLog>(
        &self,
        log: &L,
        _: &Context,
    ) -> Result<Version, CommandError<Rejection>> {
        let id = self.customer_id.to_string();
        let decided = Customers::decide(log, &id, |customer| self.decide(customer)).await?;
        Ok(decided.version)
    }
}

/// The rules, as cases.
pub fn cases() -> Vec<Case<Deactivate>> {
    use ringfence::kit::id;

    let ada = |event| fact::<Customers>("ada", event);
    let registered = || {
        ada(CustomerEvent::CustomerRegistered {
            name: "Ada".to_owned(),
            email: id("ada@example.com"),
            points: WELCOME_POINTS,
        })
    };
    let deactivated = || ada(CustomerEvent::CustomerDeactivated);
    let missing = || Rejection::CustomerNotFound { customer_id: id("ada") };
    let command = || Deactivate { customer_id: id("ada") };
    vec![
        given([]).when(command()).then_rejected(missing()),
        given([registered()]).when(command()).then([deactivated()]),
        given([registered(), deactivated()]).when(command()).then_nothing(),
    ]
}

#[test]
fn rules_hold() {
    cases().iter().for_each(Case::check_in_memory);
}
