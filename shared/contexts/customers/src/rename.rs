//! Rename: a customer is called something else.

use ringfence::Context;
use ringfence_aggregate_log::kit::{Case, fact, given};
use ringfence_aggregate_log::{AggregateLog, Command, CommandError, EventStore, Version};
use serde::Deserialize;

use crate::{Customer, CustomerEvent, CustomerId, Customers, Rejection, WELCOME_POINTS, active};

/// Gives a customer another name.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rename {
    /// The customer.
    pub customer_id: CustomerId,
    /// What it is called from now on.
    pub name: String,
}

impl Rename {
    fn decide(&self, customer: Option<&Customer>) -> Result<Vec<CustomerEvent>, Rejection> {
        let customer = active(&self.customer_id, customer)?;
        if customer.name == self.name {
            return Ok(vec![]);
        }
        Ok(vec![CustomerEvent::CustomerRenamed { name: self.name.clone() }])
    }
}

impl Command for Rename {
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
pub fn cases() -> Vec<Case<Rename>> {
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
    let inactive = || Rejection::CustomerInactive { customer_id: id("ada") };
    let command = |name: &str| Rename { customer_id: id("ada"), name: name.to_owned() };
    let renamed = |name: &str| ada(CustomerEvent::CustomerRenamed { name: name.to_owned() });
    vec![
        given([]).when(command("Eve")).then_rejected(missing()),
        given([registered()]).when(command("Eve")).then([renamed("Eve")]),
        given([registered()]).when(command("Ada")).then_nothing(),
        given([registered(), renamed("Eve")]).when(command("Ada")).then([renamed("Ada")]),
        given([registered(), deactivated()]).when(command("Eve")).then_rejected(inactive()),
    ]
}

#[test]
fn rules_hold() {
    cases().iter().for_each(Case::check_in_memory);
}
