//! The domain of the tests: customers and their points.

use std::collections::BTreeMap;

use ringfence_aggregate_log::AggregateKey;
use ringfence_core::prelude::*;
use ringfence_core::{Envelope, Metadata};
use serde::Serialize;
use serde_json::json;

use crate::stack::{NOW_MS, event, key};

#[derive(Clone, Debug, PartialEq, Event)]
pub(crate) struct CustomerRegistered {
    #[tag(partition)]
    pub(crate) customer_id: String,
    pub(crate) name: String,
}

#[derive(Clone, Debug, PartialEq, Event)]
pub(crate) struct PointsAdded {
    #[tag(partition)]
    pub(crate) customer_id: String,
    pub(crate) points: i64,
}

#[derive(Clone, Debug, PartialEq, Event)]
pub(crate) struct CustomerDeactivated {
    #[tag(partition)]
    pub(crate) customer_id: String,
}

/// A customer wanted to spend more points than it has.
#[derive(Clone, Debug, PartialEq, Event)]
pub(crate) struct PointsMissed {
    #[tag(partition)]
    pub(crate) customer_id: String,
    pub(crate) points: i64,
}

pub(crate) struct Customers;

impl Context for Customers {
    const NAME: &'static str = "CUSTOMERS";
    type Log = ringfence_aggregate_log::Aggregates;

    fn catalog() -> Result<Catalog, CatalogError> {
        let types = [
            CustomerRegistered::SCHEMA,
            PointsAdded::SCHEMA,
            CustomerDeactivated::SCHEMA,
            PointsMissed::SCHEMA,
        ];
        Catalog::of_streams(Self::NAME, types)
    }
}

pub(crate) fn catalog() -> Catalog {
    Customers::catalog().expect("the catalog is free of contradictions")
}

#[derive(Debug, PartialEq, Reads)]
pub(crate) enum CustomerEvent {
    CustomerRegistered { name: String },
    PointsAdded { points: i64 },
    CustomerDeactivated,
    PointsMissed { points: i64 },
}

/// One customer.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Customer {
    /// `None` before it is registered.
    pub(crate) name: Option<String>,
    pub(crate) points: i64,
    pub(crate) active: bool,
    /// The points that it wanted to spend and did not have.
    pub(crate) missed: Vec<i64>,
}

impl State for Customer {
    type Reads = CustomerEvent;

    fn evolve(mut self, event: CustomerEvent) -> Self {
        match event {
            CustomerEvent::CustomerRegistered { name } => {
                Self { name: Some(name), active: true, ..self }
            }
            CustomerEvent::PointsAdded { points } => Self { points: self.points + points, ..self },
            CustomerEvent::CustomerDeactivated => Self { active: false, ..self },
            CustomerEvent::PointsMissed { points } => {
                self.missed.push(points);
                self
            }
        }
    }
}

/// The payload in the table has no id of the customer; its key does.
#[derive(Reads)]
pub(crate) enum PointsEvent {
    CustomerRegistered { customer_id: String },
    PointsAdded { customer_id: String, points: i64 },
}

/// The points of the registered customers that a command names.
#[derive(Default)]
pub(crate) struct Points(BTreeMap<String, i64>);

impl State for Points {
    type Reads = PointsEvent;

    fn evolve(mut self, event: PointsEvent) -> Self {
        let (customer_id, points) = match event {
            PointsEvent::CustomerRegistered { customer_id } => (customer_id, 0),
            PointsEvent::PointsAdded { customer_id, points } => (customer_id, points),
        };
        *self.0.entry(customer_id).or_default() += points;
        self
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code")]
pub(crate) enum Rejection {
    #[error("the customer does not exist")]
    Unknown,
    #[error("the customer has only {has} points")]
    TooFew { has: i64 },
    #[error("a customer can't send points to itself")]
    Same,
}

/// Registers a customer; once.
#[derive(Clone, Debug, PartialEq, Command)]
pub(crate) struct Register {
    #[tag(partition)]
    pub(crate) customer_id: String,
    pub(crate) name: String,
}

impl Slice for Register {
    const NAME: &'static str = "register";
    type Context = Customers;
    type State = Customer;
    type Writes = CustomerRegistered;
    type Rejection = Never;

    fn decide(
        &self,
        customer: &Customer,
        _: &CommandContext,
    ) -> Result<Vec<CustomerRegistered>, Never> {
        let Self { customer_id, name } = self.clone();
        Ok(match customer.name {
            Some(_) => vec![],
            None => vec![CustomerRegistered { customer_id, name }],
        })
    }

    fn cases() -> Vec<Case<Self>> {
        vec![
            given([]).when(register("ada")).then([registered("ada")]),
            given(events![registered("bob")]).when(register("ada")).then([registered("ada")]),
            given(events![registered("ada")]).when(register("ada")).then_nothing(),
        ]
    }
}

/// Adds points to a customer, one event for each number.
#[derive(Clone, Debug, PartialEq, Command)]
pub(crate) struct AddPoints {
    #[tag(partition)]
    pub(crate) customer_id: String,
    pub(crate) points: Vec<i64>,
}

impl Slice for AddPoints {
    const NAME: &'static str = "add-points";
    type Context = Customers;
    type State = Customer;
    type Writes = PointsAdded;
    type Rejection = Rejection;

    fn decide(
        &self,
        customer: &Customer,
        _: &CommandContext,
    ) -> Result<Vec<PointsAdded>, Rejection> {
        customer.name.as_ref().ok_or(Rejection::Unknown)?;
        Ok(self.points.iter().map(|added| points(&self.customer_id, *added)).collect())
    }

    fn cases() -> Vec<Case<Self>> {
        let ada = || given(events![registered("ada")]);
        vec![
            ada().when(add("ada", &[1])).then([points("ada", 1)]),
            ada().when(add("ada", &[1, 2])).then([points("ada", 1), points("ada", 2)]),
            ada().when(add("ada", &[])).then_nothing(),
            given([]).when(add("ada", &[1])).then_rejected(Rejection::Unknown),
        ]
    }
}

/// Deactivates a customer. Its event has no payload in the table.
#[derive(Clone, Debug, PartialEq, Command)]
pub(crate) struct Deactivate {
    #[tag(partition)]
    pub(crate) customer_id: String,
}

impl Slice for Deactivate {
    const NAME: &'static str = "deactivate";
    type Context = Customers;
    type State = Customer;
    type Writes = CustomerDeactivated;
    type Rejection = Never;

    fn decide(
        &self,
        customer: &Customer,
        _: &CommandContext,
    ) -> Result<Vec<CustomerDeactivated>, Never> {
        let Self { customer_id } = self.clone();
        Ok(if customer.active { vec![CustomerDeactivated { customer_id }] } else { vec![] })
    }

    fn cases() -> Vec<Case<Self>> {
        let ada = || "ada".to_owned();
        let command = || Deactivate { customer_id: ada() };
        let deactivated = || CustomerDeactivated { customer_id: ada() };
        vec![
            given(events![registered("ada")]).when(command()).then([deactivated()]),
            given(events![registered("ada"), deactivated()]).when(command()).then_nothing(),
        ]
    }
}

/// Spends points of a customer. A rejection leaves an event, once for each number of points.
#[derive(Clone, Debug, PartialEq, Command)]
pub(crate) struct Spend {
    #[tag(partition)]
    pub(crate) customer_id: String,
    pub(crate) points: i64,
}

#[derive(Clone, Debug, PartialEq, Writes)]
pub(crate) enum Spent {
    Added(PointsAdded),
    Missed(PointsMissed),
}

impl Slice for Spend {
    const NAME: &'static str = "spend";
    type Context = Customers;
    type State = Customer;
    type Writes = Spent;
    type Rejection = Rejection;

    fn decide(&self, customer: &Customer, _: &CommandContext) -> Result<Vec<Spent>, Rejection> {
        if customer.points < self.points {
            return Err(Rejection::TooFew { has: customer.points });
        }
        Ok(vec![Spent::Added(points(&self.customer_id, -self.points))])
    }

    fn leaves(&self, _: &Rejection, customer: &Customer, _: &CommandContext) -> Vec<Spent> {
        let Self { customer_id, points } = self.clone();
        match customer.missed.contains(&points) {
            true => vec![],
            false => vec![Spent::Missed(PointsMissed { customer_id, points })],
        }
    }

    fn cases() -> Vec<Case<Self>> {
        let spend = |points| Spend { customer_id: "ada".to_owned(), points };
        let missed = || PointsMissed { customer_id: "ada".to_owned(), points: 6 };
        let few = || Rejection::TooFew { has: 5 };
        vec![
            given(events![points("ada", 5)]).when(spend(5)).then([Spent::Added(points("ada", -5))]),
            given(events![points("ada", 5)])
                .when(spend(6))
                .then_rejected_leaving(few(), [Spent::Missed(missed())]),
            given(events![points("ada", 5), missed()]).when(spend(6)).then_rejected(few()),
        ]
    }
}

/// Sends points of one customer to another.
#[derive(Clone, Debug, PartialEq, Command)]
pub(crate) struct Transfer {
    #[tag(key = "customerId", partition)]
    pub(crate) from: String,
    #[tag(key = "customerId", partition)]
    pub(crate) to: String,
    pub(crate) points: i64,
}

impl Slice for Transfer {
    const NAME: &'static str = "transfer";
    type Context = Customers;
    type State = Points;
    type Writes = PointsAdded;
    type Rejection = Rejection;

    fn decide(
        &self,
        Points(has): &Points,
        _: &CommandContext,
    ) -> Result<Vec<PointsAdded>, Rejection> {
        let Self { from, to, points: sent } = self;
        if from == to {
            return Err(Rejection::Same);
        }
        let [has, _] =
            [has.get(from).ok_or(Rejection::Unknown)?, has.get(to).ok_or(Rejection::Unknown)?];
        if has < sent {
            return Err(Rejection::TooFew { has: *has });
        }
        if *sent == 0 {
            return Ok(vec![]);
        }
        Ok(vec![points(from, -sent), points(to, *sent)])
    }

    fn cases() -> Vec<Case<Self>> {
        let two = || given(events![registered("ada"), points("ada", 10), registered("bob")]);
        let few = |has| Rejection::TooFew { has };
        vec![
            two().when(transfer("bob", 10)).then([points("ada", -10), points("bob", 10)]),
            two().when(transfer("bob", 11)).then_rejected(few(10)),
            two().and(events![points("ada", -6)]).when(transfer("bob", 5)).then_rejected(few(4)),
            two().when(transfer("bob", 0)).then_nothing(),
            two().when(transfer("eve", 1)).then_rejected(Rejection::Unknown),
            two().when(transfer("ada", 1)).then_rejected(Rejection::Same),
            given(events![registered("bob")])
                .when(transfer("bob", 1))
                .then_rejected(Rejection::Unknown),
        ]
    }
}

pub(crate) fn registered(customer: &str) -> CustomerRegistered {
    CustomerRegistered { customer_id: customer.to_owned(), name: customer.to_owned() }
}

pub(crate) fn points(customer: &str, points: i64) -> PointsAdded {
    PointsAdded { customer_id: customer.to_owned(), points }
}

pub(crate) fn register(customer: &str) -> Register {
    Register { customer_id: customer.to_owned(), name: customer.to_owned() }
}

pub(crate) fn add(customer: &str, points: &[i64]) -> AddPoints {
    AddPoints { customer_id: customer.to_owned(), points: points.to_vec() }
}

/// Ada sends points.
pub(crate) fn transfer(to: &str, points: i64) -> Transfer {
    Transfer { from: "ada".to_owned(), to: to.to_owned(), points }
}

/// The event of added points, for a push to the table.
pub(crate) fn added(points: i64) -> ringfence_aggregate_log::NewAggregateEvent {
    event("PointsAdded", json!({ "points": points }))
}

pub(crate) fn customer(id: &str) -> AggregateKey {
    key(Customers::NAME, id)
}

/// An envelope with this idempotency key, if any, and with the metadata and the time that functions give.
pub(crate) fn envelope(idempotency_key: Option<&str>) -> Envelope {
    let mut metadata = Metadata::default();
    for key in ["commandId", "correlationId", "causationId"] {
        metadata.insert(key, "0b1f0a53-6f0c-4f4b-8d6a-5a7f0c1d2e3f").expect("no key of the log");
    }
    let idempotency_key = idempotency_key.map(str::to_owned);
    let context = CommandContext { now_ms: NOW_MS, ..CommandContext::default() };
    Envelope { context, metadata, idempotency_key, ..Envelope::default() }
}
