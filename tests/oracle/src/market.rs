//! Products that are ordered, and other events in their partitions.

use std::marker::PhantomData;

use ringfence_core::{Event, id_type, prelude::*};

id_type!(ProductId, "names a product");
id_type!(OrderId, "names an order");

/// A product can be ordered.
#[derive(Clone, Debug, PartialEq, Event)]
#[event(fenced)]
pub(crate) struct ProductAdded {
    #[tag(partition)]
    pub(crate) product_id: ProductId,
}

/// Units of a product came in. No order reads it.
#[derive(Clone, Debug, PartialEq, Event)]
pub(crate) struct ProductStocked {
    #[tag(partition)]
    pub(crate) product_id: ProductId,
}

/// An order is placed.
#[derive(Clone, Debug, PartialEq, Event)]
pub(crate) struct OrderPlaced {
    #[tag(partition)]
    pub(crate) order_id: OrderId,
    #[tag(skip)]
    pub(crate) product_ids: Vec<ProductId>,
}

pub(crate) struct Market;

impl Context for Market {
    const NAME: &'static str = "market";
    type Log = ringfence_dcb_log::Dcb;

    fn catalog() -> Result<Catalog, CatalogError> {
        let schemas = [ProductAdded::SCHEMA, ProductStocked::SCHEMA, OrderPlaced::SCHEMA];
        Catalog::new(Self::NAME, schemas)
    }
}

#[derive(Clone, Debug, PartialEq, Command)]
pub(crate) struct AddProduct {
    #[tag(partition)]
    pub(crate) product_id: ProductId,
}

#[derive(Clone, Debug, PartialEq, Command)]
pub(crate) struct StockProduct {
    #[tag(partition)]
    pub(crate) product_id: ProductId,
}

#[derive(Clone, Debug, PartialEq, Command)]
pub(crate) struct PlaceOrder {
    #[tag(partition)]
    pub(crate) order_id: OrderId,
    pub(crate) product_ids: Vec<ProductId>,
}

#[derive(Reads)]
pub(crate) enum Product {
    ProductAdded,
}

#[derive(Reads)]
pub(crate) enum ProductOrOrder {
    ProductAdded,
    OrderPlaced,
}

/// Events that are read only for the condition of the append.
pub(crate) struct Unused<R>(PhantomData<fn(R)>);

impl<R> Default for Unused<R> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<R: Reads> State for Unused<R> {
    type Reads = R;

    fn evolve(self, _: R) -> Self {
        self
    }
}

macro_rules! appends {
    ($slice:ident, $name:literal, $reads:ident, $writes:ident { $($field:ident),* }) => {
        impl Slice for $slice {
            const NAME: &'static str = $name;
            type Context = Market;
            type State = Unused<$reads>;
            type Writes = $writes;
            type Rejection = Never;

            fn decide(&self, _: &Unused<$reads>, _: &CommandContext) -> Result<Vec<$writes>, Never> {
                Ok(vec![$writes { $($field: self.$field.clone()),* }])
            }
        }
    };
}

appends!(AddProduct, "add-product", Product, ProductAdded { product_id });
appends!(StockProduct, "stock-product", Product, ProductStocked { product_id });
appends!(PlaceOrder, "place-order", ProductOrOrder, OrderPlaced { order_id, product_ids });
