//! RenameCustomer: renames a customer.
//!
//! The boundary is the customer.

use crate::{CustomerId, CustomerName, CustomerRenamed, Customers, Named, NotActive};
use ringfence::{Personal, prelude::*};

/// Renames a customer.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct RenameCustomer {
    #[tag(partition)]
    #[subject]
    pub customer_id: CustomerId,
    pub name: Personal<CustomerName>,
}

impl Slice for RenameCustomer {
    const NAME: &'static str = "rename-customer";
    type Context = Customers;
    type State = Named;
    type Writes = CustomerRenamed;
    type Rejection = NotActive;

    fn decide(
        &self,
        customers: &Named,
        context: &CommandContext,
    ) -> Result<Vec<CustomerRenamed>, NotActive> {
        let Self { customer_id, name } = self.clone();
        customers.own(&customer_id, context)?;
        Ok(vec![CustomerRenamed { customer_id, name: name.map(String::from) }])
    }

    fn cases() -> Vec<Case<Self>> {
        use crate::facts::{deactivated, inactive, missing, registered};

        let command = |name: &str| RenameCustomer {
            customer_id: id("ada"),
            name: id::<CustomerName>(name).into(),
        };
        let renamed =
            |name: &str| CustomerRenamed { customer_id: id("ada"), name: name.to_owned().into() };
        vec![
            given(events![registered("ada")])
                .when(command("Eve"))
                .by("jwt:main:ada")
                .then([renamed("Eve")]),
            given(events![registered("ada")])
                .when(command("Eve"))
                .by("jwt:main:eve")
                .then_rejected(missing("ada")),
            given([]).when(command("Eve")).then_rejected(missing("ada")),
            given(events![registered("ada")]).when(command("Eve")).then([renamed("Eve")]),
            given(events![registered("ada"), renamed("Eve")])
                .when(command("Ada"))
                .then([renamed("Ada")]),
            given(events![registered("ada"), deactivated("ada")])
                .when(command("Eve"))
                .then_rejected(inactive("ada")),
        ]
    }
}
