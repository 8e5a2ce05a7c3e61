//! ConfirmOrder: a mail to the customer when an order is placed or cancelled.
//!
//! The events have no address, because addresses change and orders do not. The mail goes to the address that the
//! customer has when it is sent. The row of the order names the customer, and the row of the customer has the address.
//! Both are read once their views show the event, so a customer who registers and orders at once gets the mail too. A
//! customer without a row, or one that is deactivated or whose address is forgotten, gets none.

use std::collections::BTreeMap;
use std::error::Error;
use std::num::NonZeroU32;
use std::time::Duration;

use crate::views::orders::{Order, Orders};
use crate::{OrderId, Ordering, ProductId};
use customers::Email;
use customers::views::customers::Customers;
use ringfence::aws::{Clock, client_from_env};
use ringfence::effect::{Mail, MailConfig, Mailer};
use ringfence::feed::Index;
use ringfence::function::{Variables, VaultNames, vault};
use ringfence::reactor::{Delivery, Failed, InDoubt, Reactor, Starts, kit::ReactorCase};
use ringfence::view::{Content, Definition, View, ViewRead, ViewReader, Wait};
use ringfence::{MailAddressError, Personal, prelude::*};
use serde::{Deserialize, de::DeserializeOwned};

/// How long a mail waits for the views. They are usually a second behind; otherwise the mail is tried again later.
const VIEWS_TIME: Duration = Duration::from_millis(1_500);

pub struct ConfirmOrder {
    mailer: Mailer,
    views: ViewReader,
}

/// What it reads.
#[derive(Reads)]
pub enum Consumed {
    OrderPlaced {
        order_id: OrderId,
        product_ids: Vec<ProductId>,
        #[serde(default)]
        quantities: BTreeMap<ProductId, NonZeroU32>,
    },
    OrderCancelled {
        order_id: OrderId,
    },
}

/// A mail to the customer of an order.
#[derive(Debug, PartialEq)]
pub struct OrderMail {
    pub order_id: OrderId,
    pub subject: String,
    pub text: String,
}

/// The configuration, from the variables.
pub struct Config {
    mail: MailConfig,
    index_table: String,
    view_table: String,
    vault: Option<VaultNames>,
}

/// The part of a customer's row that it needs.
#[derive(Deserialize)]
struct Recipient {
    email: Personal<Email>,
    active: bool,
}

impl Reactor for ConfirmOrder {
    const NAME: &'static str = "confirm-order";
    const STARTS: Starts = Starts::Now;
    /// Two mails are better than none. Both have one id.
    const IN_DOUBT: InDoubt = InDoubt::Repeat;
    const VIEWS: &'static [&'static str] = &[Orders::NAME, Customers::NAME];
    type Context = Ordering;
    type Reads = Consumed;
    type Effect = OrderMail;
    type Config = Config;

    fn config(variables: &mut Variables) -> Config {
        Config {
            mail: Mailer::config(variables),
            index_table: variables.required("INDEX_TABLE"),
            view_table: variables.required("VIEW_TABLE"),
            vault: variables.vault(true),
        }
    }

    async fn open(config: Config) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let Config { mail, index_table, view_table, vault: names } = config;
        let client = client_from_env()?;
        let vault = vault(names, &client, &Clock::system()).await?;
        let index = Index::new(client.clone(), index_table, []);
        let views = [Definition::of::<Orders>(), Definition::of::<Customers>()];
        let views = ViewReader::new(client, index, view_table, &views)
            .with_vault(vault.map(|vault| vault as _));
        Ok(Self { mailer: Mailer::open(mail).await?, views })
    }

    fn plan(event: &Consumed) -> Vec<OrderMail> {
        match event {
            Consumed::OrderPlaced { order_id, product_ids, quantities } => {
                let line = |product| match quantities.get(product) {
                    Some(quantity) => format!("- {quantity} x {product}\n"),
                    None => format!("- {product}\n"),
                };
                let lines: String = product_ids.iter().map(line).collect();
                let text = format!("Thank you for your order {order_id}:\n\n{lines}");
                let subject = format!("Your order {order_id}");
                vec![OrderMail { order_id: order_id.clone(), subject, text }]
            }
            Consumed::OrderCancelled { order_id } => {
                let subject = format!("Your order {order_id} is cancelled");
                let text = format!("Your order {order_id} is cancelled. You pay nothing.\n");
                vec![OrderMail { order_id: order_id.clone(), subject, text }]
            }
        }
    }

    async fn run(&self, mail: &OrderMail, delivery: &Delivery<'_>) -> Result<(), Failed> {
        let order = self.row(Orders::NAME, &mail.order_id.to_string(), delivery).await?;
        let Some(Order { customer_id: Some(customer_id), .. }) = order else { return Ok(()) };
        let customer = self.row(Customers::NAME, &customer_id.to_string(), delivery).await?;
        let Some(Recipient { email, active: true }) = customer else { return Ok(()) };
        let Some(email) = email.into_known() else { return Ok(()) };
        // An older event has whatever the customer typed.
        let to = email.to_string().parse();
        let to = to.map_err(|e: MailAddressError| Failed::Undeliverable(e.to_string()))?;
        let (subject, text) = (mail.subject.clone(), mail.text.clone());
        self.mailer.send(&Mail { to, subject, text }, delivery).await
    }

    fn cases() -> Vec<ReactorCase<OrderMail>> {
        use crate::{OrderCancelled, OrderPlaced};
        use ringfence::reactor::kit::when;

        let mail = |subject: &str, text: &str| OrderMail {
            order_id: id("o1"),
            subject: subject.to_owned(),
            text: text.to_owned(),
        };
        let placed = OrderPlaced {
            order_id: id("o1"),
            customer_id: id("c1"),
            product_ids: vec![id("lamp"), id("desk")],
            quantities: [(id("desk"), NonZeroU32::MIN.saturating_add(1))].into(),
        };
        let thanks = "Thank you for your order o1:\n\n- lamp\n- 2 x desk\n";
        let cancelled = "Your order o1 is cancelled. You pay nothing.\n";
        vec![
            when(placed).then([mail("Your order o1", thanks)]),
            when(OrderCancelled { order_id: id("o1"), product_ids: vec![] })
                .then([mail("Your order o1 is cancelled", cancelled)]),
        ]
    }
}

impl ConfirmOrder {
    /// The row of a view as soon as the view shows the event, with its personal data open.
    async fn row<T: DeserializeOwned>(
        &self,
        view: &'static str,
        id: &str,
        delivery: &Delivery<'_>,
    ) -> Result<Option<T>, Failed> {
        let event = delivery.event();
        let wait = Wait { partition: event.partition.clone(), slot: event.slot, most: VIEWS_TIME };
        let read = self.views.row(view, id, Some(&wait)).await;
        match read.map_err(|error| Failed::for_now(&error))? {
            ViewRead::Found(None) => Ok(None),
            ViewRead::Found(Some(row)) => match row.content {
                Content::Row(mut row) => {
                    if let Some(vault) = self.views.vault() {
                        let opened = vault.open(vec![&mut row]).await;
                        opened.map_err(|error| Failed::for_now(&error))?;
                    }
                    let row = serde_json::from_value(row);
                    row.map(Some).map_err(|error| Failed::for_now(&error))
                }
                Content::Parked(_) => Err(Failed::ForNow(format!("a row of {view} is parked"))),
            },
            _ => Err(Failed::ForNow(format!("{view} does not show the event yet"))),
        }
    }
}
