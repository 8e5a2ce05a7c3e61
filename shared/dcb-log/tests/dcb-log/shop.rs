//! A small shop. Its slices cover each shape of a boundary: one partition, several partitions, a pair that is read as
//! a composite, and a tag that is read across partitions.

use std::collections::{BTreeMap, BTreeSet};

use ringfence_core::{id_type, prelude::*};
use serde::Serialize;

pub(crate) use crate::listing::{Count, FindPair, ListProduct, OrderListed};

id_type!(ProductId, "names a product");
id_type!(OrderId, "names an order");
id_type!(CustomerId, "names a customer");

/// How many units of one product a customer may order over all orders.
const UNITS_MAX: u32 = 10;

#[derive(Clone, Debug, PartialEq, Event)]
pub(crate) struct ProductAdded {
    #[tag(partition)]
    pub(crate) product_id: ProductId,
    pub(crate) name: String,
}

#[derive(Clone, Debug, PartialEq, Event)]
pub(crate) struct ProductNameChanged {
    #[tag(partition)]
    pub(crate) product_id: ProductId,
    pub(crate) name: String,
}

/// A product that customers can order. A decision elsewhere can depend on this event without depending on the
/// product's other events.
#[derive(Clone, Debug, PartialEq, Event)]
#[event(fenced)]
pub(crate) struct ProductListed {
    #[tag(partition)]
    pub(crate) product_id: ProductId,
}

/// There are new units of a product.
#[derive(Clone, Debug, PartialEq, Event)]
pub(crate) struct ProductStocked {
    #[tag(partition)]
    pub(crate) product_id: ProductId,
}

#[derive(Clone, Debug, PartialEq, Event)]
#[event(read_as_composite)]
pub(crate) struct DemandRecorded {
    #[tag(partition)]
    pub(crate) product_id: ProductId,
    pub(crate) order_id: OrderId,
}

#[derive(Clone, Debug, PartialEq, Event)]
#[event(read_as_composite)]
pub(crate) struct DemandRevoked {
    #[tag(partition)]
    pub(crate) product_id: ProductId,
    pub(crate) order_id: OrderId,
}

/// A product goes well with another one. The pair is the partition.
#[derive(Clone, Debug, PartialEq, Event)]
#[event(read_as_composite)]
pub(crate) struct PairFound {
    #[tag(partition)]
    pub(crate) product_id: ProductId,
    #[tag(partition)]
    pub(crate) other_id: ProductId,
}

#[derive(Clone, Debug, PartialEq, Event)]
pub(crate) struct OrderPlaced {
    #[tag(partition)]
    pub(crate) order_id: OrderId,
    pub(crate) product_ids: Vec<ProductId>,
}

#[derive(Clone, Debug, PartialEq, Event)]
pub(crate) struct ProductOrdered {
    #[tag(partition)]
    pub(crate) order_id: OrderId,
    #[tag(cross_partition)]
    pub(crate) customer_id: CustomerId,
    #[tag(skip)]
    pub(crate) product_id: ProductId,
    pub(crate) quantity: u32,
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
                ProductNameChanged::SCHEMA,
                ProductStocked::SCHEMA,
                ProductListed::SCHEMA,
                PairFound::SCHEMA,
                DemandRecorded::SCHEMA,
                DemandRevoked::SCHEMA,
                OrderPlaced::SCHEMA,
                ProductOrdered::SCHEMA,
            ],
        )
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code")]
pub(crate) enum Rejection {
    #[error("the product exists")]
    ProductAlreadyExists,
    #[error("the product does not exist")]
    ProductNotFound,
    #[error("the order is placed")]
    OrderAlreadyPlaced,
    #[error("a product is not in stock")]
    ProductsNotAvailable,
    #[error("the customer has ordered enough")]
    LimitExceeded,
    #[error("the order is not paid")]
    OrderNotPaid,
}

/// Adds a product, once: one partition.
#[derive(Clone, Debug, PartialEq, Command)]
pub(crate) struct AddProduct {
    #[tag(partition)]
    pub(crate) product_id: ProductId,
    pub(crate) name: String,
}

#[derive(Reads)]
pub(crate) enum Added {
    ProductAdded,
}

impl Slice for AddProduct {
    const NAME: &'static str = "add-product";
    type Context = Shop;
    type State = Count<Added>;
    type Writes = ProductAdded;
    type Rejection = Rejection;

    fn decide(
        &self,
        added: &Count<Added>,
        _: &CommandContext,
    ) -> Result<Vec<ProductAdded>, Rejection> {
        if added.0 > 0 {
            return Err(Rejection::ProductAlreadyExists);
        }
        let Self { product_id, name } = self.clone();
        Ok(vec![ProductAdded { product_id, name }])
    }
}

/// Gives a product another name: one partition with many events.
#[derive(Clone, Debug, PartialEq, Command)]
pub(crate) struct ChangeProductName {
    #[tag(partition)]
    pub(crate) product_id: ProductId,
    pub(crate) name: String,
}

#[derive(Reads)]
pub(crate) enum Named {
    ProductAdded { name: String },
    ProductNameChanged { name: String },
}

/// The name of a product.
#[derive(Default)]
pub(crate) struct Name(Option<String>);

impl State for Name {
    type Reads = Named;

    fn evolve(self, event: Named) -> Self {
        let (Named::ProductAdded { name } | Named::ProductNameChanged { name }) = event;
        Self(Some(name))
    }
}

impl Slice for ChangeProductName {
    const NAME: &'static str = "change-product-name";
    type Context = Shop;
    type State = Name;
    type Writes = ProductNameChanged;
    type Rejection = Rejection;

    fn decide(
        &self,
        Name(current): &Name,
        _: &CommandContext,
    ) -> Result<Vec<ProductNameChanged>, Rejection> {
        let Self { product_id, name } = self.clone();
        match current {
            None => Err(Rejection::ProductNotFound),
            Some(current) if *current == name => Ok(vec![]),
            Some(_) => Ok(vec![ProductNameChanged { product_id, name }]),
        }
    }
}

/// Records or revokes the demand of one order for one product: the pair, read as a composite.
#[derive(Clone, Debug, PartialEq, Command)]
pub(crate) enum RecordDemand {
    Record {
        #[tag(partition)]
        product_id: ProductId,
        order_id: OrderId,
    },
    Revoke {
        #[tag(partition)]
        product_id: ProductId,
        order_id: OrderId,
    },
}

#[derive(Reads)]
pub(crate) enum Demand {
    DemandRecorded,
    DemandRevoked,
}

#[derive(Writes)]
pub(crate) enum Changed {
    Recorded(DemandRecorded),
    Revoked(DemandRevoked),
}

/// Whether the demand is recorded.
#[derive(Default)]
pub(crate) struct Recorded(bool);

impl State for Recorded {
    type Reads = Demand;

    fn evolve(self, event: Demand) -> Self {
        Self(matches!(event, Demand::DemandRecorded))
    }
}

impl Slice for RecordDemand {
    const NAME: &'static str = "record-demand";
    type Context = Shop;
    type State = Recorded;
    type Writes = Changed;
    type Rejection = Never;

    fn decide(
        &self,
        Recorded(recorded): &Recorded,
        _: &CommandContext,
    ) -> Result<Vec<Changed>, Never> {
        Ok(match self.clone() {
            Self::Record { product_id, order_id } if !recorded => {
                vec![Changed::Recorded(DemandRecorded { product_id, order_id })]
            }
            Self::Revoke { product_id, order_id } if *recorded => {
                vec![Changed::Revoked(DemandRevoked { product_id, order_id })]
            }
            _ => vec![],
        })
    }
}

/// Places an order, once, of products that are in stock: several partitions.
#[derive(Clone, Debug, PartialEq, Command)]
pub(crate) struct PlaceOrder {
    #[tag(partition)]
    pub(crate) order_id: OrderId,
    pub(crate) product_ids: Vec<ProductId>,
    pub(crate) paid: bool,
}

#[derive(Reads)]
pub(crate) enum Stock {
    OrderPlaced,
    ProductStocked { product_id: ProductId },
}

#[derive(Default)]
pub(crate) struct Placing {
    pub(crate) placed: bool,
    pub(crate) products: BTreeSet<ProductId>,
}

impl Placing {
    pub(crate) fn place(
        &self,
        order_id: OrderId,
        product_ids: Vec<ProductId>,
    ) -> Result<Vec<OrderPlaced>, Rejection> {
        if self.placed {
            return Err(Rejection::OrderAlreadyPlaced);
        }
        if !product_ids.iter().all(|product| self.products.contains(product)) {
            return Err(Rejection::ProductsNotAvailable);
        }
        Ok(vec![OrderPlaced { order_id, product_ids }])
    }
}

impl State for Placing {
    type Reads = Stock;

    fn evolve(mut self, event: Stock) -> Self {
        match event {
            Stock::OrderPlaced => self.placed = true,
            Stock::ProductStocked { product_id } => {
                self.products.insert(product_id);
            }
        }
        self
    }
}

impl Slice for PlaceOrder {
    const NAME: &'static str = "place-order";
    type Context = Shop;
    type State = Placing;
    type Writes = OrderPlaced;
    type Rejection = Rejection;

    fn decide(&self, state: &Placing, _: &CommandContext) -> Result<Vec<OrderPlaced>, Rejection> {
        let Self { order_id, product_ids, paid } = self.clone();
        if !paid {
            return Err(Rejection::OrderNotPaid);
        }
        state.place(order_id, product_ids)
    }
}

/// Orders units, at most [`UNITS_MAX`] of a product over all orders of a customer: a tag across partitions.
#[derive(Clone, Debug, PartialEq, Command)]
pub(crate) struct OrderProduct {
    #[tag(partition)]
    pub(crate) order_id: OrderId,
    #[tag(cross_partition)]
    pub(crate) customer_id: CustomerId,
    #[tag(skip)]
    pub(crate) product_id: ProductId,
    pub(crate) quantity: u32,
}

#[derive(Reads)]
pub(crate) enum Ordered {
    ProductOrdered { order_id: OrderId, product_id: ProductId, quantity: u32 },
}

/// The units of each order, and their product.
#[derive(Default)]
pub(crate) struct Orders(BTreeMap<OrderId, (ProductId, u32)>);

impl State for Orders {
    type Reads = Ordered;

    fn evolve(mut self, event: Ordered) -> Self {
        let Ordered::ProductOrdered { order_id, product_id, quantity } = event;
        self.0.insert(order_id, (product_id, quantity));
        self
    }
}

impl Slice for OrderProduct {
    const NAME: &'static str = "order-product";
    type Context = Shop;
    type State = Orders;
    type Writes = ProductOrdered;
    type Rejection = Rejection;

    fn decide(
        &self,
        Orders(orders): &Orders,
        _: &CommandContext,
    ) -> Result<Vec<ProductOrdered>, Rejection> {
        let Self { order_id, customer_id, product_id, quantity } = self.clone();
        if orders.contains_key(&order_id) {
            return Err(Rejection::OrderAlreadyPlaced);
        }
        let same = orders.values().filter(|(product, _)| *product == product_id);
        if same.map(|(_, units)| units).sum::<u32>() + quantity > UNITS_MAX {
            return Err(Rejection::LimitExceeded);
        }
        Ok(vec![ProductOrdered { order_id, customer_id, product_id, quantity }])
    }
}
