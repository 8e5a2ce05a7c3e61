//! RecordProductDemand: which orders ask for a product.
//!
//! An automation: orders placed and cancelled in the ordering context lead to its commands. The
//! decision concerns one pair of product and order, so it reads by both tags: a product's second
//! order neither reads nor conflicts with its first.
//!
//! The bus keeps no order: where a cancellation is handled before its order, the revoke finds nothing
//! to revoke, and the demand that is recorded after it stays.

use std::collections::BTreeSet;

use ringfence::prelude::*;
use ringfence_catalog::{OrderId, ProductDemandRecorded, ProductDemandRevoked, ProductId};
use serde::Deserialize;

/// Records or revokes the demand of one order for one product.
#[derive(Clone, Debug, PartialEq, Command)]
pub enum RecordProductDemand {
    /// The order asks for the product.
    RecordDemand {
        /// The product.
        #[tag(partition)]
        product_id: ProductId,
        /// The order.
        order_id: OrderId,
    },
    /// The order no longer asks for it.
    RevokeDemand {
        /// The product.
        #[tag(partition)]
        product_id: ProductId,
        /// The order.
        order_id: OrderId,
    },
}

/// What the decision reads.
#[derive(Reads)]
pub enum Consumed {
    /// The order asks for the product.
    ProductDemandRecorded,
    /// It no longer does.
    ProductDemandRevoked,
}

/// Whether the order asks for the product.
#[derive(Default)]
pub struct State {
    recorded: bool,
}

/// What the decision writes.
#[derive(Writes)]
pub enum Written {
    /// The order asks for the product.
    Recorded(ProductDemandRecorded),
    /// It no longer does.
    Revoked(ProductDemandRevoked),
}

impl Slice for RecordProductDemand {
    const NAME: &'static str = "record-product-demand";
    const CONTEXT: &'static str = "catalog";
    type Reads = Consumed;
    type State = State;
    type Writes = Written;
    type Rejection = Never;

    fn catalog() -> Result<Catalog, CatalogError> {
        ringfence_catalog::catalog()
    }

    fn evolve(_state: State, event: Consumed) -> State {
        State { recorded: matches!(event, Consumed::ProductDemandRecorded) }
    }

    fn decide(state: &State, command: &Self, _context: &Context) -> Result<Vec<Written>, Never> {
        Ok(match command.clone() {
            Self::RecordDemand { product_id, order_id } if !state.recorded => {
                vec![Written::Recorded(ProductDemandRecorded { product_id, order_id })]
            }
            Self::RevokeDemand { product_id, order_id } if state.recorded => {
                vec![Written::Revoked(ProductDemandRevoked { product_id, order_id })]
            }
            _ => vec![],
        })
    }

    fn react(event: &TopicEvent) -> Result<Option<Vec<Self>>, serde_json::Error> {
        let record: fn(ProductId, OrderId) -> Self = match event.event_type.as_str() {
            "OrderPlaced" => |product_id, order_id| Self::RecordDemand { product_id, order_id },
            "OrderCancelled" => |product_id, order_id| Self::RevokeDemand { product_id, order_id },
            _ => return Ok(None),
        };
        // An order may name a product twice; its demand is one.
        let Order { order_id, product_ids } = Order::deserialize(&event.data)?;
        Ok(Some(product_ids.into_iter().map(|product| record(product, order_id.clone())).collect()))
    }
}

/// What this context reads of an order.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Order {
    order_id: OrderId,
    product_ids: BTreeSet<ProductId>,
}

/// The rules, as cases.
pub fn cases() -> Vec<Case<RecordProductDemand>> {
    let recorded =
        |product, order| ProductDemandRecorded { product_id: id(product), order_id: id(order) };
    let revoked =
        |product, order| ProductDemandRevoked { product_id: id(product), order_id: id(order) };
    let record = || RecordProductDemand::RecordDemand { product_id: id("p1"), order_id: id("o1") };
    let revoke = || RecordProductDemand::RevokeDemand { product_id: id("p1"), order_id: id("o1") };
    vec![
        given([]).when(record()).then([Written::Recorded(recorded("p1", "o1"))]),
        given(events![recorded("p1", "o1")]).when(record()).then_nothing(),
        given(events![recorded("p1", "o2"), recorded("p2", "o1")])
            .when(record())
            .then([Written::Recorded(recorded("p1", "o1"))]),
        given([]).when(revoke()).then_nothing(),
        given(events![recorded("p1", "o1")])
            .when(revoke())
            .then([Written::Revoked(revoked("p1", "o1"))]),
        given(events![recorded("p1", "o2")]).when(revoke()).then_nothing(),
        given(events![recorded("p1", "o1"), revoked("p1", "o1")]).when(revoke()).then_nothing(),
        given(events![recorded("p1", "o1"), revoked("p1", "o1")])
            .when(record())
            .then([Written::Recorded(recorded("p1", "o1"))]),
    ]
}

#[test]
fn rules_hold() {
    ringfence::kit::check_in_memory(cases());
}
