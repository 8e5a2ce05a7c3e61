//! A small shop on the DCB log.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

use ringfence_core::{id_type, prelude::*};
use serde::{Deserialize, Serialize};
use serde_json::Value;

id_type!(OrderId, "names an order");
id_type!(ProductId, "names a product");
id_type!(CustomerId, "names a customer");

#[derive(Clone, Debug, PartialEq, Event)]
pub(crate) struct ProductAdded {
    #[tag(partition)]
    pub(crate) product_id: ProductId,
    pub(crate) price: Money,
}

#[derive(Clone, Debug, PartialEq, Event)]
pub(crate) struct PriceChanged {
    #[tag(partition)]
    pub(crate) product_id: ProductId,
    pub(crate) price: Money,
}

#[derive(Clone, Debug, PartialEq, Event)]
pub(crate) struct OrderPlaced {
    #[tag(partition)]
    pub(crate) order_id: OrderId,
    pub(crate) product_ids: Vec<ProductId>,
}

#[derive(Clone, Debug, PartialEq, Event)]
#[event(read_as_composite)]
pub(crate) struct DemandRecorded {
    #[tag(partition)]
    pub(crate) product_id: ProductId,
    pub(crate) order_id: OrderId,
}

/// An amount in the smallest unit of its currency.
#[ringfence::value]
#[derive(Clone, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Money {
    pub(crate) amount: u64,
    pub(crate) currency: Currency,
}

pub(crate) fn euros(amount: u64) -> Money {
    Money { amount, currency: Currency("EUR".to_owned()) }
}

/// A type that checks its text.
#[ringfence::value]
#[derive(Clone, Debug, PartialEq)]
#[serde(try_from = "String")]
pub(crate) struct Currency(String);

impl TryFrom<String> for Currency {
    type Error = &'static str;

    fn try_from(code: String) -> Result<Self, Self::Error> {
        let valid = code.len() == 3 && code.bytes().all(|b| b.is_ascii_uppercase());
        if valid { Ok(Self(code)) } else { Err("a currency is three capital letters") }
    }
}

pub(crate) struct Shop;

impl Context for Shop {
    const NAME: &'static str = "shop";
    type Log = ringfence_dcb_log::Dcb;

    fn catalog() -> Result<Catalog, CatalogError> {
        Catalog::new(
            Self::NAME,
            [
                ProductAdded::SCHEMA,
                PriceChanged::SCHEMA,
                OrderPlaced::SCHEMA,
                DemandRecorded::SCHEMA,
            ],
        )
    }
}

/// Places an order for products that exist, once.
#[derive(Clone, Debug, PartialEq, Command)]
pub(crate) struct PlaceOrder {
    #[tag(partition)]
    order_id: OrderId,
    #[tag(skip)]
    customer_id: CustomerId,
    product_ids: Vec<ProductId>,
    #[serde(default)]
    quantities: BTreeMap<ProductId, NonZeroU32>,
}

#[derive(Reads)]
pub(crate) enum Consumed {
    OrderPlaced,
    ProductAdded { product_id: ProductId },
}

#[derive(Default)]
pub(crate) struct Placing {
    placed: bool,
    products: BTreeSet<ProductId>,
}

#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code", rename_all_fields = "camelCase")]
pub(crate) enum Rejection {
    #[error("order {order_id} is already placed")]
    OrderAlreadyPlaced { order_id: OrderId },
    #[error("a product is not available")]
    ProductsNotAvailable,
}

impl State for Placing {
    type Reads = Consumed;

    fn evolve(mut self, event: Consumed) -> Self {
        match event {
            Consumed::OrderPlaced => self.placed = true,
            Consumed::ProductAdded { product_id } => {
                self.products.insert(product_id);
            }
        }
        self
    }
}

impl Slice for PlaceOrder {
    const NAME: &'static str = "place-order";
    const SCOPES: &'static [&'static str] = &["orders/write", "orders/all"];
    type Context = Shop;
    type State = Placing;
    type Writes = OrderPlaced;
    type Rejection = Rejection;

    fn decide(&self, state: &Placing, _: &CommandContext) -> Result<Vec<OrderPlaced>, Rejection> {
        let Self { order_id, product_ids, .. } = self.clone();
        if state.placed {
            return Err(Rejection::OrderAlreadyPlaced { order_id });
        }
        if !product_ids.iter().all(|product| state.products.contains(product)) {
            return Err(Rejection::ProductsNotAvailable);
        }
        Ok(vec![OrderPlaced { order_id, product_ids }])
    }
}

/// An automation: records which orders ask for a product, once.
#[derive(Clone, Debug, PartialEq, Command)]
pub(crate) enum RecordDemand {
    Record {
        #[tag(partition)]
        product_id: ProductId,
        order_id: OrderId,
    },
    Ignore {
        #[tag(partition)]
        product_id: ProductId,
        order_id: OrderId,
    },
}

#[derive(Reads)]
pub(crate) enum Demand {
    DemandRecorded,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Order {
    order_id: OrderId,
    product_ids: Vec<ProductId>,
}

/// Whether the demand is recorded.
#[derive(Default)]
pub(crate) struct Recorded(bool);

impl State for Recorded {
    type Reads = Demand;

    fn evolve(self, _: Demand) -> Self {
        Self(true)
    }
}

impl Slice for RecordDemand {
    const NAME: &'static str = "record-demand";
    const REACTS_TO: &'static [Cause] = &[Cause::named("ordering", "OrderPlaced")];
    type Context = Shop;
    type State = Recorded;
    type Writes = DemandRecorded;
    type Rejection = Never;

    fn decide(
        &self,
        Recorded(recorded): &Recorded,
        _: &CommandContext,
    ) -> Result<Vec<DemandRecorded>, Never> {
        Ok(match self.clone() {
            Self::Record { product_id, order_id } if !recorded => {
                vec![DemandRecorded { product_id, order_id }]
            }
            _ => vec![],
        })
    }

    fn react(event: &Current<'_, TopicEvent>) -> Result<Vec<Self>, serde_json::Error> {
        let Order { order_id, product_ids } = Order::deserialize(&event.data)?;
        let record = |product_id| Self::Record { product_id, order_id: order_id.clone() };
        Ok(product_ids.into_iter().map(record).collect())
    }
}

/// A command with JSON of any shape, which has no effect.
#[derive(Clone, Debug, PartialEq, Command)]
pub(crate) struct KeepNote {
    pub(crate) order_id: OrderId,
    #[serde(default)]
    pub(crate) note: Value,
}

impl Slice for KeepNote {
    const NAME: &'static str = "keep-note";
    type Context = Shop;
    type State = Placing;
    type Writes = OrderPlaced;
    type Rejection = Never;

    fn decide(&self, _: &Placing, _: &CommandContext) -> Result<Vec<OrderPlaced>, Never> {
        Ok(vec![])
    }
}
