//! TransferPoints: sends loyalty points from one customer to another.
//!
//! The boundary is both customers: their events are one group, so both are written or neither.

use ringfence::prelude::*;
use ringfence_aggregate_log::{AggregateError, AggregateSlice, GetEvents, Others, To};
use serde::Serialize;

use crate::{Customer, CustomerEvent, CustomerId, Customers, NotActive, active};

/// Sends points.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct TransferPoints {
    pub from: CustomerId,
    pub to: CustomerId,
    /// 0 changes nothing.
    pub points: u64,
}

/// Both customers.
pub struct State {
    from: Option<Customer>,
    to: Option<Customer>,
}

/// Why points are not transferred.
#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code", rename_all_fields = "camelCase")]
pub enum Rejection {
    #[error("customer {customer_id} has {points} points")]
    TooFewPoints { customer_id: CustomerId, points: u64 },
    #[error("customer {customer_id} can't send points to itself")]
    SameCustomer { customer_id: CustomerId },
    #[error(transparent)]
    #[serde(untagged)]
    NotActive(#[from] NotActive),
}

impl Slice for TransferPoints {
    const NAME: &'static str = "transfer-points";
    type Context = Customers;
    type State = State;
    type Writes = To<CustomerEvent>;
    type Rejection = Rejection;

    fn decide(
        &self,
        state: &State,
        _: &CommandContext,
    ) -> Result<Vec<To<CustomerEvent>>, Rejection> {
        let Self { from, to, points } = self.clone();
        if from == to {
            return Err(Rejection::SameCustomer { customer_id: from });
        }
        let has = active(&from, &state.from)?.points;
        active(&to, &state.to)?;
        if has < points {
            return Err(Rejection::TooFewPoints { customer_id: from, points: has });
        }
        if points == 0 {
            return Ok(vec![]);
        }
        let received = To::other(&to, CustomerEvent::PointsReceived { from, points });
        Ok(vec![CustomerEvent::PointsSent { to, points }.into(), received])
    }

    fn cases() -> Vec<Case<Self>> {
        use crate::facts::{inactive, missing, registered};

        let command = |from, to, points| TransferPoints { from: id(from), to: id(to), points };
        let sent = |to, points| CustomerEvent::PointsSent { to: id(to), points };
        let received = |from, points| CustomerEvent::PointsReceived { from: id(from), points };
        let both = || given([]).and_of("ada", [registered()]).and_of("bob", [registered()]);
        let few = |points| Rejection::TooFewPoints { customer_id: id("ada"), points };
        let same = Rejection::SameCustomer { customer_id: id("ada") };
        let deactivated = || [CustomerEvent::CustomerDeactivated];
        vec![
            both()
                .when(command("ada", "bob", 100))
                .then([sent("bob", 100).into(), To::other("bob", received("ada", 100))]),
            both().when(command("ada", "bob", 101)).then_rejected(few(100)),
            both()
                .and_of("ada", [sent("bob", 60)])
                .when(command("ada", "bob", 41))
                .then_rejected(few(40)),
            both()
                .and_of("bob", [received("ada", 60)])
                .when(command("bob", "ada", 160))
                .then([sent("ada", 160).into(), To::other("ada", received("bob", 160))]),
            both().when(command("ada", "bob", 0)).then_nothing(),
            both().when(command("ada", "ada", 1)).then_rejected(same),
            given([registered()])
                .when(command("ada", "bob", 1))
                .then_rejected(missing("bob").into()),
            given([])
                .and_of("bob", [registered()])
                .when(command("ada", "bob", 1))
                .then_rejected(missing("ada").into()),
            both()
                .and_of("ada", deactivated())
                .when(command("ada", "bob", 1))
                .then_rejected(inactive("ada").into()),
            both()
                .and_of("bob", deactivated())
                .when(command("ada", "bob", 1))
                .then_rejected(inactive("bob").into()),
        ]
    }
}

impl AggregateSlice for TransferPoints {
    fn aggregate_id(&self) -> String {
        self.from.to_string()
    }

    async fn load<L: GetEvents>(
        &self,
        from: Option<Customer>,
        others: &Others<'_, L, Customers>,
    ) -> Result<State, AggregateError> {
        Ok(State { from, to: others.get(&self.to.to_string()).await? })
    }
}
