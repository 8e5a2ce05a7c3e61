//! ChangeEmail: a customer is reached somewhere else.

use ringfence::Context;
use ringfence_aggregate_log::kit::{Case, fact, given};
use ringfence_aggregate_log::{AggregateLog, Command, CommandError, EventStore, Version};
use serde::Deserialize;

use crate::{
    Customer, CustomerEvent, CustomerId, Customers, Email, Rejection, WELCOME_POINTS, active,
};

/// Gives a customer another address.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChangeEmail {
    /// The customer.
    pub customer_id: CustomerId,
    /// Where it is reached from now on.
    pub email: Email,
}

impl ChangeEmail {
    fn decide(&self, customer: Option<&Customer>) -> Result<Vec<CustomerEvent>, Rejection> {
        let customer = active(&self.customer_id, customer)?;
        if customer.email.as_ref() == Some(&self.email) {
            return Ok(vec![]);
        }
        Ok(vec![CustomerEvent::EmailChanged { email: self.email.clone() }])
    }
}

impl Command for ChangeEmail {
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
pub fn cases() -> Vec<Case<ChangeEmail>> {
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
    let command = |email| ChangeEmail { customer_id: id("ada"), email: id(email) };
    let changed = |email| ada(CustomerEvent::EmailChanged { email: id(email) });
    vec![
        given([]).when(command("a@b.c")).then_rejected(missing()),
        given([registered()]).when(command("a@b.c")).then([changed("a@b.c")]),
        given([registered()]).when(command("ada@example.com")).then_nothing(),
        given([registered(), changed("a@b.c")]).when(command("a@b.c")).then_nothing(),
        given([registered(), deactivated()]).when(command("a@b.c")).then_rejected(inactive()),
    ]
}

#[test]
fn rules_hold() {
    cases().iter().for_each(Case::check_in_memory);
}
