//! RecordProductDemand: records which orders ask for a product.
//!
//! An automation: orders placed and cancelled in the ordering context lead to its commands. The
//! decision concerns one pair of product and order, so it reads by both tags: a product's second
//! order neither reads nor conflicts with its first.
//!
//! The order of these events matters: if a cancellation were handled before its order, there would be no demand to
//! revoke yet, and the demand that is recorded later would stay. So it reacts in the order of each partition.

use std::collections::BTreeSet;

use crate::{OrderId, ProductCatalog, ProductDemandRecorded, ProductDemandRevoked, ProductId};
use ringfence::prelude::*;
use serde::Deserialize;

/// Records or revokes the demand of one order for one product.
#[derive(Clone, Debug, PartialEq, Command)]
pub enum RecordProductDemand {
    RecordDemand {
        #[tag(partition)]
        product_id: ProductId,
        order_id: OrderId,
    },
    RevokeDemand {
        #[tag(partition)]
        product_id: ProductId,
        order_id: OrderId,
    },
}

/// What the decision reads.
#[derive(Reads)]
pub enum Consumed {
    ProductDemandRecorded,
    ProductDemandRevoked,
}

/// Whether the order asks for the product.
#[derive(Default)]
pub struct Demand {
    recorded: bool,
}

/// What the decision writes.
#[derive(Writes)]
pub enum Written {
    Recorded(ProductDemandRecorded),
    Revoked(ProductDemandRevoked),
}

impl State for Demand {
    type Reads = Consumed;

    fn evolve(self, event: Consumed) -> Self {
        Demand { recorded: matches!(event, Consumed::ProductDemandRecorded) }
    }
}

impl Slice for RecordProductDemand {
    const NAME: &'static str = "record-product-demand";
    const REACTS_TO: &'static [Cause] =
        &[Cause::named("ordering", "OrderPlaced"), Cause::named("ordering", "OrderCancelled")];
    const ORDER: Option<Lane> = Some(Lane::Partition);
    const SCOPES: &'static [&'static str] = &["catalog/write"];
    type Context = ProductCatalog;
    type State = Demand;
    type Writes = Written;
    type Rejection = Never;

    fn decide(&self, state: &Demand, _: &CommandContext) -> Result<Vec<Written>, Never> {
        Ok(match self.clone() {
            Self::RecordDemand { product_id, order_id } if !state.recorded => {
                vec![Written::Recorded(ProductDemandRecorded { product_id, order_id })]
            }
            Self::RevokeDemand { product_id, order_id } if state.recorded => {
                vec![Written::Revoked(ProductDemandRevoked { product_id, order_id })]
            }
            _ => vec![],
        })
    }

    fn react(event: &Current<'_, TopicEvent>) -> Result<Vec<Self>, serde_json::Error> {
        let command: fn(ProductId, OrderId) -> Self = match event.event_type.as_str() {
            "OrderPlaced" => |product_id, order_id| Self::RecordDemand { product_id, order_id },
            _ => |product_id, order_id| Self::RevokeDemand { product_id, order_id },
        };
        // An order may name a product twice; its demand is one.
        let Order { order_id, product_ids } = Order::deserialize(&event.data)?;
        Ok(product_ids.into_iter().map(|product| command(product, order_id.clone())).collect())
    }

    fn cases() -> Vec<Case<Self>> {
        let recorded =
            |product, order| ProductDemandRecorded { product_id: id(product), order_id: id(order) };
        let revoked =
            |product, order| ProductDemandRevoked { product_id: id(product), order_id: id(order) };
        let record =
            || RecordProductDemand::RecordDemand { product_id: id("p1"), order_id: id("o1") };
        let revoke =
            || RecordProductDemand::RevokeDemand { product_id: id("p1"), order_id: id("o1") };
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
}

/// What this context reads of an order.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Order {
    order_id: OrderId,
    product_ids: BTreeSet<ProductId>,
}
