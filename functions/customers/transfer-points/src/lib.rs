//! TransferPoints: loyalty points go from one customer to another, both events or neither.
//!
//! The boundary is both customers: their events are one group.

use ringfence::Context;
use ringfence_aggregate_log::kit::{Case, given};
use ringfence_aggregate_log::{Aggregate, Command, CommandError, Decision, EventStore, GetEvents};
use ringfence_customers::{Customer, CustomerEvent, CustomerId, Customers, NotActive, active};
use serde::{Deserialize, Serialize};

/// Sends points.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TransferPoints {
    /// Who has them.
    pub from: CustomerId,
    /// Who is to have them.
    pub to: CustomerId,
    /// How many; none is no wish.
    pub points: u64,
}

/// Why points are not transferred.
#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code", rename_all_fields = "camelCase")]
pub enum Rejection {
    /// The customer does not have so many.
    #[error("customer {customer_id} has {points} points")]
    TooFewPoints {
        /// The customer.
        customer_id: CustomerId,
        /// What it has.
        points: u64,
    },
    /// Points go from one customer to another.
    #[error("customer {customer_id} can't send points to itself")]
    SameCustomer {
        /// The customer.
        customer_id: CustomerId,
    },
    /// One of the two can't take part.
    #[error(transparent)]
    #[serde(untagged)]
    NotActive(#[from] NotActive),
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
    const NAME: &'static str = "transfer-points";
    type Store = Customers;
    type Rejection = Rejection;

    fn aggregate_id(&self) -> String {
        self.from.to_string()
    }

    async fn handle<L: GetEvents>(
        &self,
        from: Aggregate<Customers>,
        log: &L,
        _: &Context,
    ) -> Result<Decision<CustomerEvent>, CommandError<Rejection>> {
        let to = Customers::get_aggregate(log, &self.to.to_string(), None).await?;
        let decided = self.decide(from.state.as_ref(), to.state.as_ref());
        Ok(match decided.map_err(CommandError::Rejected)? {
            None => Decision::default(),
            Some([sent, received]) => Decision::of([sent]).and(to.push([received])?),
        })
    }
}

/// The rules, as cases.
pub fn cases() -> Vec<Case<TransferPoints>> {
    use ringfence::kit::id;
    use ringfence_customers::facts::{deactivated, happened, inactive, missing, registered};

    let command = |from, to, points| TransferPoints { from: id(from), to: id(to), points };
    let sent = |from, to, points| happened(from, CustomerEvent::PointsSent { to: id(to), points });
    let received =
        |to, from, points| happened(to, CustomerEvent::PointsReceived { from: id(from), points });
    let both = || [registered("ada"), registered("bob")];
    let both_and = |fact| both().into_iter().chain([fact]);
    let few = |points| Rejection::TooFewPoints { customer_id: id("ada"), points };
    let same = Rejection::SameCustomer { customer_id: id("ada") };
    vec![
        given(both())
            .when(command("ada", "bob", 100))
            .then([sent("ada", "bob", 100), received("bob", "ada", 100)]),
        given(both()).when(command("ada", "bob", 101)).then_rejected(few(100)),
        given(both_and(sent("ada", "bob", 60)))
            .when(command("ada", "bob", 41))
            .then_rejected(few(40)),
        given(both_and(received("bob", "ada", 60)))
            .when(command("bob", "ada", 160))
            .then([sent("bob", "ada", 160), received("ada", "bob", 160)]),
        given(both()).when(command("ada", "bob", 0)).then_nothing(),
        given(both()).when(command("ada", "ada", 1)).then_rejected(same),
        given([registered("ada")])
            .when(command("ada", "bob", 1))
            .then_rejected(missing("bob").into()),
        given([registered("bob")])
            .when(command("ada", "bob", 1))
            .then_rejected(missing("ada").into()),
        given(both_and(deactivated("ada")))
            .when(command("ada", "bob", 1))
            .then_rejected(inactive("ada").into()),
        given(both_and(deactivated("bob")))
            .when(command("ada", "bob", 1))
            .then_rejected(inactive("bob").into()),
    ]
}

#[test]
fn rules_hold() {
    cases().iter().for_each(Case::check_in_memory);
}
