//! A small stack with a context on each log.

mod late_parcel;

use std::collections::BTreeSet;
use std::error::Error;

use ringfence_core::{Query, QueryItem, Tag, TagSchema, id_type, prelude::*};
use ringfence_document_log::{AccessStrategy, Document, Documents, Snapshot};
use ringfence_lambda::Variables;
use ringfence_reactors::{Delivery, Failed, InDoubt, Reactor, Starts};
use ringfence_services::personal_data::PersonalData;
use ringfence_stack::{MemberList, Members, Visitor};
use ringfence_views::View;
use serde::Serialize;

id_type!(ProductId, "names a product");
id_type!(OrderId, "names an order");
id_type!(ParcelId, "names a parcel of an order");
id_type!(CustomerId, "names a customer");
id_type!(SealId, "names a seal");
id_type!(CartId, "names a cart");

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

/// A customer says who they are.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct CustomerMet {
    #[tag(partition)]
    #[subject]
    pub customer_id: CustomerId,
    pub name: Personal<String>,
}

/// A parcel of an order is packed. Each parcel has its partition.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct ParcelPacked {
    #[tag(partition)]
    pub order_id: OrderId,
    #[tag(partition)]
    pub parcel_id: ParcelId,
    #[tag(cross_partition)]
    pub seal_ids: Vec<SealId>,
}

pub struct ProductCatalog;

impl Context for ProductCatalog {
    const NAME: &'static str = "catalog";
    type Log = ringfence_dcb_log::Dcb;

    fn catalog() -> Result<Catalog, CatalogError> {
        Catalog::new(
            Self::NAME,
            [
                ProductAdded::SCHEMA,
                ProductNameChanged::SCHEMA,
                ProductDemandRecorded::SCHEMA,
                ProductDemandRevoked::SCHEMA,
                OrderPlaced::SCHEMA,
                ParcelPacked::SCHEMA,
                CustomerMet::SCHEMA,
            ],
        )
    }
}

impl Members for ProductCatalog {
    fn list(list: &mut MemberList<impl Visitor>) {
        list.slice::<PackParcel>()
            .due::<PackParcel>()
            .view::<CatalogProducts>()
            .view::<ProductDemand>();
        list.reactor::<AskSupplier>().event::<CustomerMet>();
    }
}

/// Packs a parcel, once, with seals that no other parcel has.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct PackParcel {
    #[tag(partition)]
    pub order_id: OrderId,
    #[tag(partition)]
    pub parcel_id: ParcelId,
    #[tag(cross_partition)]
    pub seal_ids: Vec<SealId>,
}

#[derive(Reads)]
pub enum Packed {
    ParcelPacked { order_id: OrderId, parcel_id: ParcelId, seal_ids: Vec<SealId> },
}

#[derive(Default)]
pub struct Packing {
    parcels: BTreeSet<(OrderId, ParcelId)>,
    seals: BTreeSet<SealId>,
}

#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code")]
pub enum NotPacked {
    #[error("the parcel is packed")]
    AlreadyPacked,
    #[error("a seal is on another parcel")]
    SealUsed,
}

impl State for Packing {
    type Reads = Packed;

    fn evolve(mut self, event: Packed) -> Self {
        let Packed::ParcelPacked { order_id, parcel_id, seal_ids } = event;
        self.parcels.insert((order_id, parcel_id));
        self.seals.extend(seal_ids);
        self
    }
}

impl Slice for PackParcel {
    const NAME: &'static str = "pack-parcel";
    type Context = ProductCatalog;
    type State = Packing;
    type Writes = ParcelPacked;
    type Rejection = NotPacked;

    fn decide(&self, state: &Packing, _: &CommandContext) -> Result<Vec<ParcelPacked>, NotPacked> {
        let Self { order_id, parcel_id, seal_ids } = self.clone();
        if state.parcels.contains(&(order_id.clone(), parcel_id.clone())) {
            return Err(NotPacked::AlreadyPacked);
        }
        if seal_ids.iter().any(|seal| state.seals.contains(seal)) {
            return Err(NotPacked::SealUsed);
        }
        Ok(vec![ParcelPacked { order_id, parcel_id, seal_ids }])
    }

    /// The parcel, and each seal.
    fn query(_: &[TagSchema], tags: Vec<Tag>, _: &Catalog) -> Query {
        let (seals, parcel): (Vec<_>, Vec<_>) =
            tags.into_iter().partition(|tag| tag.key == "sealId");
        let clauses = seals.into_iter().map(|seal| vec![seal]).chain([parcel]);
        let clause = |tags| QueryItem { tags, types: vec![ParcelPacked::NAME.into()] };
        Query { items: clauses.map(clause).collect() }
    }
}

/// The products, by id.
pub struct CatalogProducts;

#[derive(Reads)]
pub enum Product {
    ProductAdded { product_id: ProductId, name: String, description: String },
    ProductNameChanged { product_id: ProductId, name: String },
}

#[ringfence::value]
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

/// Asks a supplier for each product that an order asks for.
pub struct AskSupplier {
    /// Whether the supplier refuses.
    pub is_refused: bool,
}

impl Reactor for AskSupplier {
    const NAME: &'static str = "ask-supplier";
    const STARTS: Starts = Starts::Beginning;
    const IN_DOUBT: InDoubt = InDoubt::Repeat;
    type Context = ProductCatalog;
    type Reads = Demand;
    type Effect = ProductId;
    type Config = ();

    fn config(_: &mut Variables) {}

    async fn open((): ()) -> Result<Self, Box<dyn Error + Send + Sync>> {
        Ok(Self { is_refused: false })
    }

    fn plan(event: &Demand) -> Vec<ProductId> {
        match event {
            Demand::ProductDemandRecorded { product_id } => vec![product_id.clone()],
            Demand::ProductDemandRevoked { .. } => vec![],
        }
    }

    async fn run(&self, product: &ProductId, _: &Delivery<'_>) -> Result<(), Failed> {
        match self.is_refused {
            true => Err(Failed::ForGood(format!("{product} is sold out\nfor ever"))),
            false => Ok(()),
        }
    }
}

pub struct Customers;

#[derive(Clone, Debug, PartialEq, Event)]
pub struct CustomerRenamed {
    #[tag(partition)]
    pub customer_id: CustomerId,
    pub name: String,
}

impl Context for Customers {
    const NAME: &'static str = "customers";
    type Log = ringfence_aggregate_log::Aggregates;

    fn catalog() -> Result<Catalog, CatalogError> {
        Catalog::of_streams(Self::NAME, [CustomerRenamed::SCHEMA])
    }
}

impl Members for Customers {
    fn list(list: &mut MemberList<impl Visitor>) {
        list.event::<CustomerRenamed>();
    }
}

pub struct Carts;

#[derive(Clone, Debug, PartialEq, Event)]
pub struct CheckedOut {
    #[tag(partition)]
    pub cart_id: CartId,
    pub items: u32,
    pub paid_at: Option<Time>,
}

/// A time of RFC 3339.
#[ringfence::value]
#[derive(Clone, Debug, PartialEq)]
#[schemars(extend("format" = "date-time"))]
pub struct Time(String);

#[derive(Reads)]
pub enum CartEvent {
    CheckedOut { items: u32 },
}

#[ringfence::value]
#[derive(Clone, Default)]
pub struct Cart;

impl State for Cart {
    type Reads = CartEvent;

    fn evolve(self, _: CartEvent) -> Self {
        self
    }
}

impl Document for Cart {
    const ACCESS: AccessStrategy<Self> = AccessStrategy::Snapshot(Snapshot::named("CartSnapshot"));
}

#[derive(Clone, Debug, PartialEq, Command)]
pub struct CheckOut {
    #[tag(partition)]
    pub cart_id: CartId,
}

impl Slice for CheckOut {
    const NAME: &'static str = "check-out";
    const CALLERS: Callers = Callers::Nobody;
    type Context = Carts;
    type State = Cart;
    type Writes = CheckedOut;
    type Rejection = Never;

    fn decide(&self, _: &Cart, _: &CommandContext) -> Result<Vec<CheckedOut>, Never> {
        Ok(vec![CheckedOut { cart_id: self.cart_id.clone(), items: 0, paid_at: None }])
    }
}

impl Context for Carts {
    const NAME: &'static str = "carts";
    type Log = Documents<Cart>;

    fn catalog() -> Result<Catalog, CatalogError> {
        Catalog::new(Self::NAME, [CheckedOut::SCHEMA])
    }
}

impl Members for Carts {
    fn list(list: &mut MemberList<impl Visitor>) {
        list.slice::<CheckOut>();
    }
}

/// The stack.
pub struct Shop;

impl Members for Shop {
    fn list(list: &mut MemberList<impl Visitor>) {
        list.context::<ProductCatalog>().context::<Customers>().context::<Carts>();
        list.context::<PersonalData>();
    }
}
