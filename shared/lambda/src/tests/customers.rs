//! Customers with points, each a stream of the aggregate log.

use ringfence::{Text, id_type, prelude::*};
use ringfence_aggregate_log::{
    AggregateContext, AggregateError, AggregateSlice, Aggregates, GetEvents, Others, To,
};
use serde::{Deserialize, Serialize};

id_type!(CustomerId, "names a customer");

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "payload")]
pub(crate) enum CustomerEvent {
    CustomerRegistered { name: String },
    CustomerRenamed { name: String },
    EmailChanged { email: Email },
    PointsSent { points: u64 },
    PointsReceived { points: u64 },
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Customer {
    name: String,
    points: u64,
}

/// A type that checks its text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    type Log = Aggregates;
    type Event = CustomerEvent;
}

impl AggregateContext for Customers {}

impl StreamContext for Customers {
    type State = Option<Customer>;

    fn evolve(customer: Option<Customer>, event: CustomerEvent) -> Option<Customer> {
        let mut customer = customer.unwrap_or(Customer { name: String::new(), points: 100 });
        match event {
            CustomerEvent::CustomerRegistered { name }
            | CustomerEvent::CustomerRenamed { name } => customer.name = name,
            CustomerEvent::EmailChanged { .. } => {}
            CustomerEvent::PointsSent { points } => customer.points -= points,
            CustomerEvent::PointsReceived { points } => customer.points += points,
        }
        Some(customer)
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

fn check(customer_id: &CustomerId, customer: &Option<Customer>) -> Result<u64, Rejection> {
    let missing = || Rejection::CustomerNotFound { customer_id: customer_id.clone() };
    customer.as_ref().map(|customer| customer.points).ok_or_else(missing)
}

#[derive(Clone, Debug, PartialEq, Command)]
pub(crate) struct RegisterCustomer {
    customer_id: CustomerId,
    name: Text<200>,
}

impl Slice for RegisterCustomer {
    const NAME: &'static str = "register-customer";
    type Context = Customers;
    type State = Option<Customer>;
    type Writes = CustomerEvent;
    type Rejection = Rejection;

    fn decide(
        &self,
        customer: &Option<Customer>,
        _: &CommandContext,
    ) -> Result<Vec<CustomerEvent>, Rejection> {
        let Self { customer_id, name } = self.clone();
        match customer {
            None => Ok(vec![CustomerEvent::CustomerRegistered { name: name.into() }]),
            Some(_) => Err(Rejection::CustomerExists { customer_id }),
        }
    }
}

impl StreamSlice for RegisterCustomer {
    fn stream_id(&self) -> String {
        self.customer_id.to_string()
    }
}

#[derive(Clone, Debug, PartialEq, Command)]
pub(crate) struct RenameCustomer {
    customer_id: CustomerId,
    name: Text<200>,
}

impl Slice for RenameCustomer {
    const NAME: &'static str = "rename-customer";
    type Context = Customers;
    type State = Option<Customer>;
    type Writes = CustomerEvent;
    type Rejection = Rejection;

    fn decide(
        &self,
        customer: &Option<Customer>,
        _: &CommandContext,
    ) -> Result<Vec<CustomerEvent>, Rejection> {
        check(&self.customer_id, customer)?;
        Ok(vec![CustomerEvent::CustomerRenamed { name: self.name.clone().into() }])
    }
}

impl StreamSlice for RenameCustomer {
    fn stream_id(&self) -> String {
        self.customer_id.to_string()
    }
}

#[derive(Clone, Debug, PartialEq, Command)]
pub(crate) struct ChangeEmail {
    customer_id: CustomerId,
    email: Email,
}

impl Slice for ChangeEmail {
    const NAME: &'static str = "change-email";
    type Context = Customers;
    type State = Option<Customer>;
    type Writes = CustomerEvent;
    type Rejection = Rejection;

    fn decide(
        &self,
        customer: &Option<Customer>,
        _: &CommandContext,
    ) -> Result<Vec<CustomerEvent>, Rejection> {
        check(&self.customer_id, customer)?;
        Ok(vec![CustomerEvent::EmailChanged { email: self.email.clone() }])
    }
}

impl StreamSlice for ChangeEmail {
    fn stream_id(&self) -> String {
        self.customer_id.to_string()
    }
}

/// Writes events of two customers in one transaction.
#[derive(Clone, Debug, PartialEq, Command)]
pub(crate) struct TransferPoints {
    from: CustomerId,
    to: CustomerId,
    points: u64,
}

impl Slice for TransferPoints {
    const NAME: &'static str = "transfer-points";
    type Context = Customers;
    type State = [Option<Customer>; 2];
    type Writes = To<CustomerEvent>;
    type Rejection = Rejection;

    fn decide(
        &self,
        [from, to]: &[Option<Customer>; 2],
        _: &CommandContext,
    ) -> Result<Vec<To<CustomerEvent>>, Rejection> {
        let points = self.points;
        let has = check(&self.from, from)?;
        check(&self.to, to)?;
        if has < points {
            return Err(Rejection::TooFewPoints);
        }
        let received = To::other(&self.to, CustomerEvent::PointsReceived { points });
        Ok(vec![CustomerEvent::PointsSent { points }.into(), received])
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
    ) -> Result<[Option<Customer>; 2], AggregateError> {
        Ok([from, others.get(&self.to.to_string()).await?])
    }
}
