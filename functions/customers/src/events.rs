//! The events and the value types.

use std::collections::BTreeMap;

use ringfence::prelude::*;
use ringfence::{Personal, Text, id_type};
use serde::Serialize;

use crate::Email;

id_type!(CustomerId, "names a customer");

/// The name of a customer, as a command gives it.
pub type CustomerName = Text<200>;

/// The points that a new customer gets.
pub const WELCOME_POINTS: u64 = 100;

#[derive(Clone, Debug, PartialEq, Event)]
#[event(version = 2)]
#[upcast(1 = Ok)]
pub struct CustomerRegistered {
    #[tag(partition)]
    #[subject]
    pub customer_id: CustomerId,
    pub name: Personal<String>,
    pub email: Personal<Email>,
    pub points: u64,
}

#[derive(Clone, Debug, PartialEq, Event)]
#[event(version = 2)]
#[upcast(1 = Ok)]
pub struct CustomerRenamed {
    #[tag(partition)]
    #[subject]
    pub customer_id: CustomerId,
    pub name: Personal<String>,
}

#[derive(Clone, Debug, PartialEq, Event)]
#[event(version = 2)]
#[upcast(1 = Ok)]
pub struct EmailChanged {
    #[tag(partition)]
    #[subject]
    pub customer_id: CustomerId,
    pub email: Personal<Email>,
}

/// Points went to another customer, whose [`PointsReceived`] is in the same append.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct PointsSent {
    #[tag(partition)]
    pub customer_id: CustomerId,
    pub to: CustomerId,
    pub points: u64,
}

#[derive(Clone, Debug, PartialEq, Event)]
pub struct PointsReceived {
    #[tag(partition)]
    pub customer_id: CustomerId,
    pub from: CustomerId,
    pub points: u64,
}

#[derive(Clone, Debug, PartialEq, Event)]
pub struct CustomerDeactivated {
    #[tag(partition)]
    pub customer_id: CustomerId,
}

/// What the decisions read. No decision needs a name or an address, so none of them opens personal data.
#[derive(Reads)]
pub enum CustomerEvent {
    CustomerRegistered { customer_id: CustomerId, points: u64 },
    PointsSent { customer_id: CustomerId, points: u64 },
    PointsReceived { customer_id: CustomerId, points: u64 },
    CustomerDeactivated { customer_id: CustomerId },
}

/// A customer as it is now.
#[derive(Clone, Debug, PartialEq)]
pub struct Customer {
    pub points: u64,
    /// False once the customer is deactivated.
    pub active: bool,
}

/// The customers that the command names.
#[derive(Default)]
pub struct Named(BTreeMap<CustomerId, Customer>);

impl State for Named {
    type Reads = CustomerEvent;

    fn evolve(mut self, event: CustomerEvent) -> Self {
        match event {
            CustomerEvent::CustomerRegistered { customer_id, points } => {
                self.0.insert(customer_id, Customer { points, active: true });
            }
            CustomerEvent::PointsSent { customer_id, points } => {
                self.change(&customer_id, |it| it.points = it.points.saturating_sub(points));
            }
            CustomerEvent::PointsReceived { customer_id, points } => {
                self.change(&customer_id, |it| it.points = it.points.saturating_add(points));
            }
            CustomerEvent::CustomerDeactivated { customer_id } => {
                self.change(&customer_id, |customer| customer.active = false);
            }
        }
        self
    }
}

impl Named {
    fn change(&mut self, id: &CustomerId, change: impl FnOnce(&mut Customer)) {
        if let Some(customer) = self.0.get_mut(id) {
            change(customer);
        }
    }

    /// The customer, if it is registered.
    #[must_use]
    pub fn get(&self, id: &CustomerId) -> Option<&Customer> {
        self.0.get(id)
    }

    /// The customer, if the caller may act for it: another person does not learn whether it exists.
    ///
    /// # Errors
    /// As [`Self::active`], and the caller is another person.
    pub fn own(&self, id: &CustomerId, context: &CommandContext) -> Result<&Customer, NotActive> {
        if context.is_other_person(id) {
            return Err(NotActive::CustomerNotFound { customer_id: id.clone() });
        }
        self.active(id)
    }

    /// The customer, if it exists and is active.
    ///
    /// # Errors
    /// The customer does not exist, or is deactivated.
    pub fn active(&self, id: &CustomerId) -> Result<&Customer, NotActive> {
        let customer_id = id.clone();
        match self.get(id) {
            None => Err(NotActive::CustomerNotFound { customer_id }),
            Some(customer) if !customer.active => Err(NotActive::CustomerInactive { customer_id }),
            Some(customer) => Ok(customer),
        }
    }
}

/// Why a customer can't be changed.
#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code", rename_all_fields = "camelCase")]
pub enum NotActive {
    #[error("customer {customer_id} does not exist")]
    CustomerNotFound { customer_id: CustomerId },
    #[error("customer {customer_id} is deactivated")]
    CustomerInactive { customer_id: CustomerId },
}
