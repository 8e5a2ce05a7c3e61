//! TransferPoints: loyalty points go from one customer to another, both events or neither.

use ringfence::Context;
use ringfence_aggregate_log::kit::{Case, fact, given};
use ringfence_aggregate_log::{AggregateLog, Command, CommandError, EventStore};
use serde::Deserialize;

use crate::{Customer, CustomerEvent, CustomerId, Customers, Rejection, WELCOME_POINTS, active};

/// Sends points.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TransferPoints {
    /// Who has them.
    pub from: CustomerId,
    /// Who is to have them.
    pub to: CustomerId,
    /// How many; none is no wish.
    pub points: u64,
}

impl TransferPoints {
    /// What happens to each of the two, if anything.
    fn decide(
        &self,
        from: Option<&Customer>,
        to: Option<&Customer>,
    ) -> Result<Option<[CustomerEvent; 2]>, Rejection> {
        if self.from == self.to {
            return Err(Rejection::SameCustomer { customer_id: self.from.clone() });
        }
        let has = active(&self.from, from)?.points;
        active(&self.to, to)?;
        if has < self.points {
            let customer_id = self.from.clone();
            return Err(Rejection::TooFewPoints { customer_id, points: has });
        }
        let Self { from, to, points } = self.clone();
        let sent = CustomerEvent::PointsSent { to, points };
        let received = CustomerEvent::PointsReceived { from, points };
        Ok((points > 0).then_some([sent, received]))
    }
}

impl Command for TransferPoints {
    type Output = ();
    type Rejection = Rejection;

    async fn handle<L: AggregateLog>(
        &self,
        log: &L,
        _: &Context,
    ) -> Result<(), CommandError<Rejection>> {
        let from = Customers::get_aggregate(log, &self.from.to_string(), None).await?;
        let to = Customers::get_aggregate(log, &self.to.to_string(), None).await?;
        let decided = self.decide(from.state.as_ref(), to.state.as_ref());
        if let Some([sent, received]) = decided.map_err(CommandError::Rejected)? {
            log.push_event_group(vec![from.push([sent])?, to.push([received])?]).await?;
        }
        Ok(())
    }
}

/// The rules, as cases.
pub fn cases() -> Vec<Case<TransferPoints>> {
    use ringfence::kit::id;

    let registered = |customer: &str| {
        let email = id("someone@example.com");
        let event = CustomerEvent::CustomerRegistered {
            name: customer.to_owned(),
            email,
            points: WELCOME_POINTS,
        };
        fact::<Customers>(customer, event)
    };
    let command = |from, to, points| TransferPoints { from: id(from), to: id(to), points };
    let sent =
        |points| fact::<Customers>("ada", CustomerEvent::PointsSent { to: id("bob"), points });
    let received = |points| {
        fact::<Customers>("bob", CustomerEvent::PointsReceived { from: id("ada"), points })
    };
    let deactivated = |customer| fact::<Customers>(customer, CustomerEvent::CustomerDeactivated);
    let both = || vec![registered("ada"), registered("bob")];
    let and = |mut facts: Vec<_>, fact| {
        facts.push(fact);
        facts
    };
    let missing = |customer| Rejection::CustomerNotFound { customer_id: id(customer) };
    let inactive = |customer| Rejection::CustomerInactive { customer_id: id(customer) };
    let few = |points| Rejection::TooFewPoints { customer_id: id("ada"), points };
    let same = Rejection::SameCustomer { customer_id: id("ada") };
    vec![
        given(both()).when(command("ada", "bob", 100)).then([sent(100), received(100)]),
        given(both()).when(command("ada", "bob", 101)).then_rejected(few(100)),
        given(and(both(), sent(60))).when(command("ada", "bob", 41)).then_rejected(few(40)),
        given(and(both(), received(60))).when(command("bob", "ada", 160)).then([
            fact::<Customers>("bob", CustomerEvent::PointsSent { to: id("ada"), points: 160 }),
            fact::<Customers>(
                "ada",
                CustomerEvent::PointsReceived { from: id("bob"), points: 160 },
            ),
        ]),
        given(both()).when(command("ada", "bob", 0)).then_nothing(),
        given(both()).when(command("ada", "ada", 1)).then_rejected(same),
        given([registered("ada")]).when(command("ada", "bob", 1)).then_rejected(missing("bob")),
        given([registered("bob")]).when(command("ada", "bob", 1)).then_rejected(missing("ada")),
        given(and(both(), deactivated("ada")))
            .when(command("ada", "bob", 1))
            .then_rejected(inactive("ada")),
        given(and(both(), deactivated("bob")))
            .when(command("ada", "bob", 1))
            .then_rejected(inactive("bob")),
    ]
}

#[test]
fn rules_hold() {
    cases().iter().for_each(Case::check_in_memory);
}
