//! RenameCustomer: renames a customer.
//!
//! The boundary is the customer.

use crate::{Customer, CustomerEvent, CustomerId, CustomerName, Customers, NotActive, active};
use ringfence::prelude::*;

/// Renames a customer.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct RenameCustomer {
    pub customer_id: CustomerId,
    pub name: CustomerName,
}

impl Slice for RenameCustomer {
    const NAME: &'static str = "rename-customer";
    type Context = Customers;
    type State = Option<Customer>;
    type Writes = CustomerEvent;
    type Rejection = NotActive;

    fn decide(
        &self,
        customer: &Option<Customer>,
        _: &CommandContext,
    ) -> Result<Vec<CustomerEvent>, NotActive> {
        let name = String::from(self.name.clone());
        if active(&self.customer_id, customer)?.name == name {
            return Ok(vec![]);
        }
        Ok(vec![CustomerEvent::CustomerRenamed { name }])
    }

    fn cases() -> Vec<Case<Self>> {
        use crate::facts::{inactive, missing, registered};

        let command = |name: &str| RenameCustomer { customer_id: id("ada"), name: id(name) };
        let renamed = |name: &str| CustomerEvent::CustomerRenamed { name: name.to_owned() };
        vec![
            given([]).when(command("Eve")).then_rejected(missing("ada")),
            given([registered()]).when(command("Eve")).then([renamed("Eve")]),
            given([registered()]).when(command("Ada")).then_nothing(),
            given([registered(), renamed("Eve")]).when(command("Ada")).then([renamed("Ada")]),
            given([registered(), CustomerEvent::CustomerDeactivated])
                .when(command("Eve"))
                .then_rejected(inactive("ada")),
        ]
    }
}

impl StreamSlice for RenameCustomer {
    fn stream_id(&self) -> String {
        self.customer_id.to_string()
    }
}
