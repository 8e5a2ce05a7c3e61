//! Slices of the shop that depend on fenced types of other partitions, or on a pair that is the partition.

use std::marker::PhantomData;

use ringfence_core::prelude::*;

use crate::shop::*;

/// Places an order of listed products: a decision that depends on fenced types of other partitions.
#[derive(Clone, Debug, PartialEq, Command)]
pub(crate) struct OrderListed {
    #[tag(partition)]
    pub(crate) order_id: OrderId,
    pub(crate) product_ids: Vec<ProductId>,
}

#[derive(Reads)]
pub(crate) enum Listing {
    OrderPlaced,
    ProductListed { product_id: ProductId },
}

#[derive(Default)]
pub(crate) struct PlacingListed(Placing);

impl State for PlacingListed {
    type Reads = Listing;

    fn evolve(mut self, event: Listing) -> Self {
        match event {
            Listing::OrderPlaced => self.0.placed = true,
            Listing::ProductListed { product_id } => {
                self.0.products.insert(product_id);
            }
        }
        self
    }
}

impl Slice for OrderListed {
    const NAME: &'static str = "order-listed";
    type Context = Shop;
    type State = PlacingListed;
    type Writes = OrderPlaced;
    type Rejection = Rejection;

    fn decide(
        &self,
        PlacingListed(state): &PlacingListed,
        _: &CommandContext,
    ) -> Result<Vec<OrderPlaced>, Rejection> {
        let Self { order_id, product_ids } = self.clone();
        state.place(order_id, product_ids)
    }
}

/// Lists a product, once.
#[derive(Clone, Debug, PartialEq, Command)]
pub(crate) struct ListProduct {
    #[tag(partition)]
    pub(crate) product_id: ProductId,
}

#[derive(Reads)]
pub(crate) enum Listed {
    ProductListed,
}

impl Slice for ListProduct {
    const NAME: &'static str = "list-product";
    type Context = Shop;
    type State = Count<Listed>;
    type Writes = ProductListed;
    type Rejection = Never;

    fn decide(
        &self,
        listed: &Count<Listed>,
        _: &CommandContext,
    ) -> Result<Vec<ProductListed>, Never> {
        let product_id = self.product_id.clone();
        Ok(if listed.0 > 0 { vec![] } else { vec![ProductListed { product_id }] })
    }
}

/// Finds a pair, once, if it is one.
#[derive(Clone, Debug, PartialEq, Command)]
pub(crate) struct FindPair {
    #[tag(partition)]
    pub(crate) product_id: ProductId,
    #[tag(partition)]
    pub(crate) other_id: ProductId,
    pub(crate) fits: bool,
}

#[derive(Reads)]
pub(crate) enum Pair {
    PairFound,
}

impl Slice for FindPair {
    const NAME: &'static str = "find-pair";
    type Context = Shop;
    type State = Count<Pair>;
    type Writes = PairFound;
    type Rejection = Never;

    fn decide(&self, found: &Count<Pair>, _: &CommandContext) -> Result<Vec<PairFound>, Never> {
        let Self { product_id, other_id, fits } = self.clone();
        Ok(if fits && found.0 == 0 { vec![PairFound { product_id, other_id }] } else { vec![] })
    }
}

/// Stocks a product that exists. It reads the product's existence and not the events that it writes.
#[derive(Clone, Debug, PartialEq, Command)]
pub(crate) struct StockProduct {
    #[tag(partition)]
    pub(crate) product_id: ProductId,
}

impl Slice for StockProduct {
    const NAME: &'static str = "stock-product";
    type Context = Shop;
    type State = Count<Added>;
    type Writes = ProductStocked;
    type Rejection = Rejection;

    fn decide(
        &self,
        added: &Count<Added>,
        _: &CommandContext,
    ) -> Result<Vec<ProductStocked>, Rejection> {
        let product_id = self.product_id.clone();
        match added.0 > 0 {
            true => Ok(vec![ProductStocked { product_id }]),
            false => Err(Rejection::ProductNotFound),
        }
    }
}

/// The number of events that the decision reads.
pub(crate) struct Count<R>(pub(crate) u32, PhantomData<fn(R)>);

impl<R> Default for Count<R> {
    fn default() -> Self {
        Self(0, PhantomData)
    }
}

impl<R: Reads> State for Count<R> {
    type Reads = R;

    fn evolve(self, _: R) -> Self {
        Self(self.0 + 1, PhantomData)
    }
}
