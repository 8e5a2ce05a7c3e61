//! PlaceOrder: a customer orders products that ordering knows.
//!
//! The boundary is the order (placed once) and each of its products (still known at the commit).

use std::collections::BTreeSet;

use ringfence::prelude::*;
use ringfence_ordering::{CustomerId, OrderId, OrderPlaced, ProductId};
use serde::Serialize;

/// Places an order.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct PlaceOrder {
    /// The order.
    #[tag(partition)]
    pub order_id: OrderId,
    /// Who orders; no decision asks for it.
    #[tag(skip)]
    pub customer_id: CustomerId,
    /// What is ordered.
    pub product_ids: Vec<ProductId>,
}

/// What the decision reads.
#[derive(Reads)]
pub enum Consumed {
    /// The order is there.
    OrderPlaced,
    /// Ordering knows the product.
    CatalogProductSynced {
        /// The product.
        product_id: ProductId,
    },
}

/// Whether the order is there, and which products ordering knows.
#[derive(Default)]
pub struct State {
    placed: bool,
    known: BTreeSet<ProductId>,
}

/// Why an order is not placed.
#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code", rename_all_fields = "camelCase")]
pub enum Rejection {
    /// An id names one order.
    #[error("order {order_id} is already placed")]
    OrderAlreadyPlaced {
        /// The order.
        order_id: OrderId,
    },
    /// Nothing is ordered.
    #[error("order {order_id} has no products")]
    OrderIsEmpty {
        /// The order.
        order_id: OrderId,
    },
    /// Some products are unknown.
    #[error("not available: {}", list(missing))]
    ProductsNotAvailable {
        /// Those, and only those.
        missing: Vec<ProductId>,
    },
}

fn list(products: &[ProductId]) -> String {
    products.iter().map(ProductId::to_string).collect::<Vec<_>>().join(", ")
}

impl Slice for PlaceOrder {
    const NAME: &'static str = "place-order";
    const CONTEXT: &'static str = "ordering";
    type Reads = Consumed;
    type State = State;
    type Writes = OrderPlaced;
    type Rejection = Rejection;

    fn catalog() -> Result<Catalog, CatalogError> {
        ringfence_ordering::catalog()
    }

    fn evolve(mut state: State, event: Consumed) -> State {
        match event {
            Consumed::OrderPlaced => state.placed = true,
            Consumed::CatalogProductSynced { product_id } => {
                state.known.insert(product_id);
            }
        }
        state
    }

    fn decide(
        state: &State,
        command: &Self,
        _context: &Context,
    ) -> Result<Vec<OrderPlaced>, Rejection> {
        let Self { order_id, customer_id, product_ids } = command.clone();
        if state.placed {
            return Err(Rejection::OrderAlreadyPlaced { order_id });
        }
        if product_ids.is_empty() {
            return Err(Rejection::OrderIsEmpty { order_id });
        }
        let unknown = |product: &&ProductId| !state.known.contains(*product);
        let missing: BTreeSet<_> = product_ids.iter().filter(unknown).cloned().collect();
        if !missing.is_empty() {
            let missing = missing.into_iter().collect();
            return Err(Rejection::ProductsNotAvailable { missing });
        }
        Ok(vec![OrderPlaced { order_id, customer_id, product_ids }])
    }
}

/// The rules, as cases.
pub fn cases() -> Vec<Case<PlaceOrder>> {
    use ringfence_ordering::{CatalogProductSynced, Money};

    let synced = |product| CatalogProductSynced {
        product_id: id(product),
        name: "Lamp".to_owned(),
        price: Money::new(1_250, "EUR"),
    };
    let ids = |products: &[&str]| products.iter().map(|product| id(product)).collect::<Vec<_>>();
    let place = |order, products| PlaceOrder {
        order_id: id(order),
        customer_id: id("c1"),
        product_ids: ids(products),
    };
    let placed = |order, products| OrderPlaced {
        order_id: id(order),
        customer_id: id("c1"),
        product_ids: ids(products),
    };
    let missing = |products| Rejection::ProductsNotAvailable { missing: ids(products) };
    vec![
        given(events![synced("p1"), synced("p2")])
            .when(place("o1", &["p1", "p2"]))
            .then([placed("o1", &["p1", "p2"])]),
        given([]).when(place("o1", &["p1"])).then_rejected(missing(&["p1"])),
        given(events![synced("p1")])
            .when(place("o1", &["p3", "p1", "p2"]))
            .then_rejected(missing(&["p2", "p3"])),
        given(events![synced("p1"), placed("o1", &["p1"])])
            .when(place("o1", &["p1"]))
            .then_rejected(Rejection::OrderAlreadyPlaced { order_id: id("o1") }),
        // Another order of the same product is no obstacle, nor is a second sync.
        given(events![synced("p1"), placed("o1", &["p1"]), synced("p1")])
            .when(place("o2", &["p1"]))
            .then([placed("o2", &["p1"])]),
        given([])
            .when(place("o1", &[]))
            .then_rejected(Rejection::OrderIsEmpty { order_id: id("o1") }),
        given(events![synced("p1")])
            .when(place("o1", &["p1", "p1"]))
            .then([placed("o1", &["p1", "p1"])]),
    ]
}

#[test]
fn rules_hold() {
    ringfence::kit::check_in_memory(cases());
}
