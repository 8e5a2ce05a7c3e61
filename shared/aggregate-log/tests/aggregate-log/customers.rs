//! The domain of the tests: customers and their points.

use ringfence::kit::BEGIN_MS;
use ringfence::prelude::*;
use ringfence::{Envelope, Metadata};
use ringfence_aggregate_log::{
    AggregateContext, AggregateError, AggregateKey, AggregateSlice, Aggregates, Draft, GetEvents,
    NewEvent, Others, To,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::stack::{NOW_MS, event, key};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "payload")]
pub(crate) enum CustomerEvent {
    #[serde(rename = "CUSTOMER_REGISTERED")]
    Registered { name: String },
    #[serde(rename = "POINTS_ADDED")]
    PointsAdded { points: i64 },
    #[serde(rename = "CUSTOMER_DEACTIVATED")]
    Deactivated,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Customer {
    pub(crate) name: String,
    pub(crate) points: i64,
    pub(crate) active: bool,
}

pub(crate) struct Customers;

impl Context for Customers {
    const NAME: &'static str = "CUSTOMERS";
    type Log = Aggregates;
    type Event = CustomerEvent;
}

impl StreamContext for Customers {
    type State = Option<Customer>;

    fn evolve(customer: Option<Customer>, event: CustomerEvent) -> Option<Customer> {
        let customer = customer.unwrap_or_default();
        Some(match event {
            CustomerEvent::Registered { name } => Customer { name, active: true, ..customer },
            CustomerEvent::PointsAdded { points } => {
                Customer { points: customer.points + points, ..customer }
            }
            CustomerEvent::Deactivated => Customer { active: false, ..customer },
        })
    }
}

impl AggregateContext for Customers {}

#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code")]
pub(crate) enum Refusal {
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
    pub(crate) customer_id: String,
    pub(crate) name: String,
}

impl Slice for Register {
    const NAME: &'static str = "register";
    type Context = Customers;
    type State = Option<Customer>;
    type Writes = CustomerEvent;
    type Rejection = Never;

    fn decide(
        &self,
        customer: &Option<Customer>,
        _: &CommandContext,
    ) -> Result<Vec<CustomerEvent>, Never> {
        Ok(if customer.is_some() { vec![] } else { vec![registered(&self.name)] })
    }

    fn cases() -> Vec<Case<Self>> {
        let register = || Register { customer_id: "ada".to_owned(), name: "Ada".to_owned() };
        vec![
            given([]).when(register()).then([registered("Ada")]),
            given([]).and_of("bob", [registered("Bob")]).when(register()).then([registered("Ada")]),
            given([registered("Ada")]).when(register()).then_nothing(),
        ]
    }
}

impl StreamSlice for Register {
    fn stream_id(&self) -> String {
        self.customer_id.clone()
    }
}

/// Adds points to a customer's.
#[derive(Clone, Debug, PartialEq, Command)]
pub(crate) struct AddPoints {
    pub(crate) customer_id: String,
    pub(crate) points: i64,
}

impl Slice for AddPoints {
    const NAME: &'static str = "add-points";
    type Context = Customers;
    type State = Option<Customer>;
    type Writes = CustomerEvent;
    type Rejection = Refusal;

    fn decide(
        &self,
        customer: &Option<Customer>,
        _: &CommandContext,
    ) -> Result<Vec<CustomerEvent>, Refusal> {
        customer.as_ref().ok_or(Refusal::Unknown)?;
        Ok(vec![points(self.points)])
    }

    fn cases() -> Vec<Case<Self>> {
        let add = |points| AddPoints { customer_id: "ada".to_owned(), points };
        vec![
            given([registered("Ada")]).when(add(1)).then([points(1)]),
            given([]).when(add(1)).then_rejected(Refusal::Unknown),
        ]
    }
}

impl StreamSlice for AddPoints {
    fn stream_id(&self) -> String {
        self.customer_id.clone()
    }
}

/// Sends points of one customer to another; at the time that the command's context says.
#[derive(Clone, Debug, PartialEq, Command)]
pub(crate) struct Transfer {
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) points: i64,
}

impl Slice for Transfer {
    const NAME: &'static str = "transfer";
    type Context = Customers;
    type State = [Option<Customer>; 2];
    type Writes = To<CustomerEvent>;
    type Rejection = Refusal;

    fn decide(
        &self,
        [from, to]: &[Option<Customer>; 2],
        context: &CommandContext,
    ) -> Result<Vec<To<CustomerEvent>>, Refusal> {
        if self.from == self.to {
            return Err(Refusal::Same);
        }
        let has = from.as_ref().ok_or(Refusal::Unknown)?.points;
        to.as_ref().ok_or(Refusal::Unknown)?;
        if has < self.points {
            return Err(Refusal::TooFew { has });
        }
        if self.points == 0 {
            return Ok(vec![]);
        }
        let added = |points| at(context.now_ms, points);
        Ok(vec![added(-self.points).into(), To::other(&self.to, added(self.points))])
    }

    fn cases() -> Vec<Case<Self>> {
        let transfer =
            |to: &str, points| Transfer { from: "ada".to_owned(), to: to.to_owned(), points };
        let two =
            || given([registered("Ada"), points(10)]).and_of("bob", [registered("Bob")]).wait(1);
        let now = |points| at(BEGIN_MS + 1, points);
        let both = |sent: i64| [now(-sent).into(), To::other("bob", now(sent))];
        vec![
            two().when(transfer("bob", 10)).then(both(10)),
            two().when(transfer("bob", 11)).then_rejected(Refusal::TooFew { has: 10 }),
            two()
                .and_of("ada", [points(-6)])
                .when(transfer("bob", 5))
                .then_rejected(Refusal::TooFew { has: 4 }),
            two().when(transfer("bob", 0)).then_nothing(),
            two().when(transfer("eve", 1)).then_rejected(Refusal::Unknown),
            two().when(transfer("ada", 1)).then_rejected(Refusal::Same),
            given([])
                .and_of("bob", [registered("Bob")])
                .when(transfer("bob", 1))
                .then_rejected(Refusal::Unknown),
        ]
    }
}

impl AggregateSlice for Transfer {
    fn aggregate_id(&self) -> String {
        self.from.clone()
    }

    async fn load<L: GetEvents>(
        &self,
        from: Option<Customer>,
        others: &Others<'_, L, Customers>,
    ) -> Result<[Option<Customer>; 2], AggregateError> {
        Ok([from, others.get(&self.to).await?])
    }
}

pub(crate) fn registered(name: &str) -> CustomerEvent {
    CustomerEvent::Registered { name: name.to_owned() }
}

pub(crate) fn points(points: i64) -> CustomerEvent {
    CustomerEvent::PointsAdded { points }
}

/// Points that are added at this time.
fn at(now_ms: u64, added: i64) -> Draft<CustomerEvent> {
    Draft { timestamp_ms: Some(now_ms), ..points(added).into() }
}

/// The same event as a log takes it.
pub(crate) fn added(points: i64) -> NewEvent {
    event("POINTS_ADDED", json!({ "points": points }))
}

pub(crate) fn customer(id: &str) -> AggregateKey {
    key(Customers::NAME, id)
}

/// An envelope with this idempotency key, if any, and with metadata and time as a function gives them.
pub(crate) fn envelope(idempotency_key: Option<&str>) -> Envelope {
    let mut metadata = Metadata::default();
    for key in ["commandId", "correlationId", "causationId"] {
        metadata.insert(key, "0b1f0a53-6f0c-4f4b-8d6a-5a7f0c1d2e3f").expect("no key of the log");
    }
    let idempotency_key = idempotency_key.map(str::to_owned);
    let context = CommandContext { now_ms: NOW_MS, ..CommandContext::default() };
    Envelope { context, metadata, idempotency_key, ..Envelope::default() }
}
