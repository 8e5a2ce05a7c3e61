//! TransferPoints: sends loyalty points from one customer to another.
//!
//! The boundary is both customers: both are written or neither.

use ringfence::prelude::*;
use serde::Serialize;

use crate::{CustomerId, Customers, Named, NotActive, PointsReceived, PointsSent};

/// Sends points.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct TransferPoints {
    #[tag(key = "customerId", partition)]
    pub from: CustomerId,
    #[tag(key = "customerId", partition)]
    pub to: CustomerId,
    /// 0 changes nothing.
    pub points: u64,
}

/// What the decision writes.
#[derive(Clone, Debug, PartialEq, Writes)]
pub enum Written {
    Sent(PointsSent),
    Received(PointsReceived),
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
    type State = Named;
    type Writes = Written;
    type Rejection = Rejection;

    fn decide(
        &self,
        customers: &Named,
        context: &CommandContext,
    ) -> Result<Vec<Written>, Rejection> {
        let Self { from, to, points } = self.clone();
        if from == to {
            return Err(Rejection::SameCustomer { customer_id: from });
        }
        let has = customers.own(&from, context)?.points;
        customers.active(&to)?;
        if has < points {
            return Err(Rejection::TooFewPoints { customer_id: from, points: has });
        }
        if points == 0 {
            return Ok(vec![]);
        }
        let sent = PointsSent { customer_id: from.clone(), to: to.clone(), points };
        let received = PointsReceived { customer_id: to, from, points };
        Ok(vec![Written::Sent(sent), Written::Received(received)])
    }

    fn cases() -> Vec<Case<Self>> {
        use crate::facts::{deactivated, inactive, missing, registered};

        let command = |from, to, points| TransferPoints { from: id(from), to: id(to), points };
        let sent = |from, to, points| PointsSent { customer_id: id(from), to: id(to), points };
        let received =
            |to, from, points| PointsReceived { customer_id: id(to), from: id(from), points };
        let moved = |from, to, points| {
            [Written::Sent(sent(from, to, points)), Written::Received(received(to, from, points))]
        };
        let both = || given(events![registered("ada"), registered("bob")]);
        let few = |points| Rejection::TooFewPoints { customer_id: id("ada"), points };
        let same = Rejection::SameCustomer { customer_id: id("ada") };
        vec![
            both().when(command("ada", "bob", 100)).then(moved("ada", "bob", 100)),
            both().when(command("ada", "bob", 1)).by("jwt:main:ada").then(moved("ada", "bob", 1)),
            both()
                .when(command("ada", "bob", 1))
                .by("jwt:main:bob")
                .then_rejected(missing("ada").into()),
            both().when(command("ada", "bob", 101)).then_rejected(few(100)),
            both()
                .and(events![sent("ada", "bob", 60)])
                .when(command("ada", "bob", 41))
                .then_rejected(few(40)),
            both()
                .and(events![received("bob", "ada", 60)])
                .when(command("bob", "ada", 160))
                .then(moved("bob", "ada", 160)),
            both().when(command("ada", "bob", 0)).then_nothing(),
            both().when(command("ada", "ada", 1)).then_rejected(same),
            given(events![registered("ada")])
                .when(command("ada", "bob", 1))
                .then_rejected(missing("bob").into()),
            given(events![registered("bob")])
                .when(command("ada", "bob", 1))
                .then_rejected(missing("ada").into()),
            both()
                .and(events![deactivated("ada")])
                .when(command("ada", "bob", 1))
                .then_rejected(inactive("ada").into()),
            both()
                .and(events![deactivated("bob")])
                .when(command("ada", "bob", 1))
                .then_rejected(inactive("bob").into()),
        ]
    }
}
