//! Customers with points, each an aggregate of the aggregate log.

use std::collections::BTreeMap;

use ringfence_core::{Text, id_type, prelude::*};
use serde::Serialize;

id_type!(CustomerId, "names a customer");

#[derive(Clone, Debug, PartialEq, Event)]
pub(crate) struct CustomerRegistered {
    #[tag(partition)]
    customer_id: CustomerId,
    name: String,
}

#[derive(Clone, Debug, PartialEq, Event)]
pub(crate) struct CustomerRenamed {
    #[tag(partition)]
    pub(crate) customer_id: CustomerId,
    pub(crate) name: String,
}

#[derive(Clone, Debug, PartialEq, Event)]
pub(crate) struct EmailChanged {
    #[tag(partition)]
    customer_id: CustomerId,
    email: Email,
}

#[derive(Clone, Debug, PartialEq, Event)]
pub(crate) struct PointsSent {
    #[tag(partition)]
    customer_id: CustomerId,
    points: u64,
}

#[derive(Clone, Debug, PartialEq, Event)]
pub(crate) struct PointsReceived {
    #[tag(partition)]
    customer_id: CustomerId,
    points: u64,
}

/// A type that checks its text.
#[ringfence::value]
#[derive(Clone, Debug, PartialEq)]
#[serde(try_from = "String")]
pub(crate) struct Email(String);

impl TryFrom<String> for Email {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        if text.contains('@') { Ok(Self(text)) } else { Err("an email address has an @") }
    }
}

pub(crate) struct Customers;

impl Context for Customers {
    const NAME: &'static str = "customers";
    type Log = ringfence_aggregate_log::Aggregates;

    fn catalog() -> Result<Catalog, CatalogError> {
        let types = [
            CustomerRegistered::SCHEMA,
            CustomerRenamed::SCHEMA,
            EmailChanged::SCHEMA,
            PointsSent::SCHEMA,
            PointsReceived::SCHEMA,
        ];
        Catalog::of_streams(Self::NAME, types)
    }
}

#[derive(Reads)]
pub(crate) enum PointsEvent {
    CustomerRegistered { customer_id: CustomerId },
    PointsSent { customer_id: CustomerId, points: u64 },
    PointsReceived { customer_id: CustomerId, points: u64 },
}

/// The points of the registered customers that a command names.
#[derive(Default)]
pub(crate) struct Points(BTreeMap<CustomerId, u64>);

impl State for Points {
    type Reads = PointsEvent;

    fn evolve(mut self, event: PointsEvent) -> Self {
        match event {
            PointsEvent::CustomerRegistered { customer_id } => {
                self.0.insert(customer_id, 100);
            }
            PointsEvent::PointsSent { customer_id, points } => {
                self.0.entry(customer_id).and_modify(|has| *has -= points);
            }
            PointsEvent::PointsReceived { customer_id, points } => {
                self.0.entry(customer_id).and_modify(|has| *has += points);
            }
        }
        self
    }
}

impl Points {
    fn of(&self, customer_id: &CustomerId) -> Result<u64, Rejection> {
        let missing = || Rejection::CustomerNotFound { customer_id: customer_id.clone() };
        self.0.get(customer_id).copied().ok_or_else(missing)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code", rename_all_fields = "camelCase")]
pub(crate) enum Rejection {
    #[error("customer {customer_id} does not exist")]
    CustomerNotFound { customer_id: CustomerId },
    #[error("customer {customer_id} exists")]
    CustomerExists { customer_id: CustomerId },
    #[error("the customer has too few points")]
    TooFewPoints,
}

#[derive(Clone, Debug, PartialEq, Command)]
pub(crate) struct RegisterCustomer {
    #[tag(partition)]
    customer_id: CustomerId,
    name: Text<200>,
}

impl Slice for RegisterCustomer {
    const NAME: &'static str = "register-customer";
    type Context = Customers;
    type State = Points;
    type Writes = CustomerRegistered;
    type Rejection = Rejection;

    fn decide(
        &self,
        points: &Points,
        _: &CommandContext,
    ) -> Result<Vec<CustomerRegistered>, Rejection> {
        let Self { customer_id, name } = self.clone();
        match points.of(&customer_id) {
            Ok(_) => Err(Rejection::CustomerExists { customer_id }),
            Err(_) => Ok(vec![CustomerRegistered { customer_id, name: name.into() }]),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Command)]
pub(crate) struct RenameCustomer {
    #[tag(partition)]
    customer_id: CustomerId,
    name: Text<200>,
}

impl Slice for RenameCustomer {
    const NAME: &'static str = "rename-customer";
    type Context = Customers;
    type State = Points;
    type Writes = CustomerRenamed;
    type Rejection = Rejection;

    fn decide(
        &self,
        points: &Points,
        _: &CommandContext,
    ) -> Result<Vec<CustomerRenamed>, Rejection> {
        let Self { customer_id, name } = self.clone();
        points.of(&customer_id)?;
        Ok(vec![CustomerRenamed { customer_id, name: name.into() }])
    }
}

#[derive(Clone, Debug, PartialEq, Command)]
pub(crate) struct ChangeEmail {
    #[tag(partition)]
    customer_id: CustomerId,
    email: Email,
}

impl Slice for ChangeEmail {
    const NAME: &'static str = "change-email";
    type Context = Customers;
    type State = Points;
    type Writes = EmailChanged;
    type Rejection = Rejection;

    fn decide(&self, points: &Points, _: &CommandContext) -> Result<Vec<EmailChanged>, Rejection> {
        let Self { customer_id, email } = self.clone();
        points.of(&customer_id)?;
        Ok(vec![EmailChanged { customer_id, email }])
    }
}

/// Writes events of two customers in one transaction.
#[derive(Clone, Debug, PartialEq, Command)]
pub(crate) struct TransferPoints {
    #[tag(key = "customerId", partition)]
    from: CustomerId,
    #[tag(key = "customerId", partition)]
    to: CustomerId,
    points: u64,
}

#[derive(Clone, Debug, PartialEq, Writes)]
pub(crate) enum Moved {
    Sent(PointsSent),
    Received(PointsReceived),
}

impl Slice for TransferPoints {
    const NAME: &'static str = "transfer-points";
    type Context = Customers;
    type State = Points;
    type Writes = Moved;
    type Rejection = Rejection;

    fn decide(&self, has: &Points, _: &CommandContext) -> Result<Vec<Moved>, Rejection> {
        let Self { from, to, points } = self.clone();
        has.of(&to)?;
        if has.of(&from)? < points {
            return Err(Rejection::TooFewPoints);
        }
        let sent = PointsSent { customer_id: from, points };
        let received = PointsReceived { customer_id: to, points };
        Ok(vec![Moved::Sent(sent), Moved::Received(received)])
    }
}
