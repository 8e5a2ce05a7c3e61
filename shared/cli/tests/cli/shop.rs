//! A small stack with a context on each log.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "the command line and the tests each use a part of it"
)]

use ringfence::{id_type, prelude::*};
use ringfence_aggregate_log::{AggregateContext, Aggregates};
use ringfence_document_log::{Access, DocumentContext, Documents};
use ringfence_stack::{List, Members, Stack, Visitor};
use ringfence_views::View;
use serde::{Deserialize, Serialize};

id_type!(ProductId, "names a product");
id_type!(OrderId, "names an order");

#[derive(Clone, Debug, PartialEq, Event)]
pub struct ProductAdded {
    #[tag(partition)]
    pub product_id: ProductId,
    pub name: String,
    pub description: String,
}

#[derive(Clone, Debug, PartialEq, Event)]
pub struct ProductNameChanged {
    #[tag(partition)]
    pub product_id: ProductId,
    pub name: String,
}

#[derive(Clone, Debug, PartialEq, Event)]
#[event(read_as_composite)]
pub struct ProductDemandRecorded {
    #[tag(partition)]
    pub product_id: ProductId,
    pub order_id: OrderId,
}

#[derive(Clone, Debug, PartialEq, Event)]
#[event(read_as_composite)]
pub struct ProductDemandRevoked {
    #[tag(partition)]
    pub product_id: ProductId,
    pub order_id: OrderId,
}

#[derive(Clone, Debug, PartialEq, Event)]
pub struct OrderPlaced {
    #[tag(partition)]
    pub order_id: OrderId,
}

pub struct ProductCatalog;

impl Context for ProductCatalog {
    const NAME: &'static str = "catalog";
    type Log = Dcb;
    type Event = NewEvent;
}

impl DcbContext for ProductCatalog {
    fn catalog() -> Result<Catalog, CatalogError> {
        Catalog::new(
            Self::NAME,
            [
                ProductAdded::SCHEMA,
                ProductNameChanged::SCHEMA,
                ProductDemandRecorded::SCHEMA,
                ProductDemandRevoked::SCHEMA,
                OrderPlaced::SCHEMA,
            ],
        )
    }
}

impl Members for ProductCatalog {
    fn list(list: &mut List<impl Visitor>) {
        list.view::<CatalogProducts>().view::<ProductDemand>();
    }
}

/// The products, by id.
pub struct CatalogProducts;

#[derive(Reads)]
pub enum Product {
    ProductAdded { product_id: ProductId, name: String, description: String },
    ProductNameChanged { product_id: ProductId, name: String },
}

#[derive(Serialize, Deserialize)]
pub struct Described {
    name: String,
    description: String,
}

impl View for CatalogProducts {
    const NAME: &'static str = "catalog-products";
    type Reads = Product;
    type Row = Described;

    fn rows(event: &Product) -> Vec<String> {
        let (Product::ProductAdded { product_id, .. }
        | Product::ProductNameChanged { product_id, .. }) = event;
        vec![product_id.to_string()]
    }

    fn evolve(row: Option<Described>, _id: &str, event: &Product) -> Option<Described> {
        match event {
            Product::ProductAdded { name, description, .. } => {
                Some(Described { name: name.clone(), description: description.clone() })
            }
            Product::ProductNameChanged { name, .. } => {
                row.map(|row| Described { name: name.clone(), ..row })
            }
        }
    }
}

/// How many orders ask for a product.
pub struct ProductDemand;

#[derive(Reads)]
pub enum Demand {
    ProductDemandRecorded { product_id: ProductId },
    ProductDemandRevoked { product_id: ProductId },
}

impl View for ProductDemand {
    const NAME: &'static str = "product-demand";
    type Reads = Demand;
    type Row = u64;

    fn rows(event: &Demand) -> Vec<String> {
        let (Demand::ProductDemandRecorded { product_id }
        | Demand::ProductDemandRevoked { product_id }) = event;
        vec![product_id.to_string()]
    }

    fn evolve(row: Option<u64>, _id: &str, event: &Demand) -> Option<u64> {
        let orders = row.unwrap_or_default();
        Some(match event {
            Demand::ProductDemandRecorded { .. } => orders + 1,
            Demand::ProductDemandRevoked { .. } => orders.saturating_sub(1),
        })
    }
}

pub struct Customers;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "payload")]
pub enum CustomerEvent {
    CustomerRenamed { name: String },
}

impl Context for Customers {
    const NAME: &'static str = "customers";
    type Log = Aggregates;
    type Event = CustomerEvent;
}

impl StreamContext for Customers {
    type State = ();

    fn evolve((): (), _: CustomerEvent) {}
}

impl AggregateContext for Customers {}

impl Members for Customers {
    fn list(_: &mut List<impl Visitor>) {}
}

pub struct Carts;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum CartEvent {
    CheckedOut { items: u32 },
}

impl Context for Carts {
    const NAME: &'static str = "carts";
    type Log = Documents;
    type Event = CartEvent;
}

impl StreamContext for Carts {
    type State = ();

    fn evolve((): (), _: CartEvent) {}
}

impl DocumentContext for Carts {
    fn access() -> Access<Self> {
        Access::Unoptimized
    }
}

impl Members for Carts {
    fn list(_: &mut List<impl Visitor>) {}
}

struct Shop;

impl Members for Shop {
    fn list(list: &mut List<impl Visitor>) {
        list.context::<ProductCatalog>().context::<Customers>().context::<Carts>();
    }
}

pub fn stack() -> Stack {
    Stack::of::<Shop>().expect("the contexts agree")
}
