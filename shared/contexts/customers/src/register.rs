//! Register: a customer is welcomed with points.

use ringfence::Context;
use ringfence_aggregate_log::kit::{Case, fact, given};
use ringfence_aggregate_log::{AggregateLog, Command, CommandError, EventStore, Version};
use serde::Deserialize;

use crate::{Customer, CustomerEvent, CustomerId, Customers, Email, Rejection, WELCOME_POINTS};

/// Registers a customer.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Register {
    /// The new customer.
    pub customer_id: CustomerId,
    /// What it is called.
    pub name: String,
    /// Where it is reached.
    pub email: Email,
}

impl Register {
    fn decide(&self, customer: Option<&Customer>) -> Result<Vec<CustomerEvent>, Rejection> {
        let Self { customer_id, name, email } = self.clone();
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

impl Command for Register {
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
pub fn cases() -> Vec<Case<Register>> {
    use ringfence::kit::id;

    let command = |name: &str| Register {
        customer_id: id("ada"),
        name: name.to_owned(),
        email: id("ada@example.com"),
    };
    let registered = || CustomerEvent::CustomerRegistered {
        name: "Ada".to_owned(),
        email: id("ada@example.com"),
        points: WELCOME_POINTS,
    };
    let ada = || fact::<Customers>("ada", registered());
    let exists = || Rejection::CustomerExists { customer_id: id("ada") };
    let deactivated = fact::<Customers>("ada", CustomerEvent::CustomerDeactivated);
    vec![
        given([]).when(command("Ada")).then([ada()]),
        given([fact::<Customers>("bob", registered())]).when(command("Ada")).then([ada()]),
        given([ada()]).when(command("Ada")).then_nothing(),
        given([ada()]).when(command("Eve")).then_rejected(exists()),
        given([ada(), deactivated]).when(command("Ada")).then_rejected(exists()),
    ]
}

#[test]
fn rules_hold() {
    cases().iter().for_each(Case::check_in_memory);
}
