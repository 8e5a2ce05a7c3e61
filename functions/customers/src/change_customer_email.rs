//! ChangeCustomerEmail: changes a customer's email address.
//!
//! The boundary is the customer.

use crate::{CustomerId, Customers, Email, EmailChanged, Named, NotActive};
use ringfence::{MailAddress, Personal, prelude::*};

/// Changes a customer's email address.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct ChangeCustomerEmail {
    #[tag(partition)]
    #[subject]
    pub customer_id: CustomerId,
    pub email: Personal<MailAddress>,
}

impl Slice for ChangeCustomerEmail {
    const NAME: &'static str = "change-customer-email";
    type Context = Customers;
    type State = Named;
    type Writes = EmailChanged;
    type Rejection = NotActive;

    fn decide(
        &self,
        customers: &Named,
        context: &CommandContext,
    ) -> Result<Vec<EmailChanged>, NotActive> {
        let Self { customer_id, email } = self.clone();
        customers.own(&customer_id, context)?;
        Ok(vec![EmailChanged { customer_id, email: email.map(Email::from) }])
    }

    fn cases() -> Vec<Case<Self>> {
        use crate::facts::{deactivated, inactive, missing, registered};

        let command = |email| ChangeCustomerEmail {
            customer_id: id("ada"),
            email: id::<MailAddress>(email).into(),
        };
        let changed =
            |email| EmailChanged { customer_id: id("ada"), email: id::<Email>(email).into() };
        vec![
            given(events![registered("ada")])
                .when(command("a@b.c"))
                .by("jwt:main:ada")
                .then([changed("a@b.c")]),
            given(events![registered("ada")])
                .when(command("a@b.c"))
                .by("jwt:main:eve")
                .then_rejected(missing("ada")),
            given([]).when(command("a@b.c")).then_rejected(missing("ada")),
            given(events![registered("ada")]).when(command("a@b.c")).then([changed("a@b.c")]),
            given(events![registered("ada"), changed("a@b.c")])
                .when(command("b@c.d"))
                .then([changed("b@c.d")]),
            given(events![registered("ada"), deactivated("ada")])
                .when(command("a@b.c"))
                .then_rejected(inactive("ada")),
        ]
    }
}
