//! product-demand: how many orders ask for a product. One row for each product.

use crate::ProductId;
use ringfence::prelude::*;
use ringfence::view::View;

#[derive(Debug)]
pub struct ProductDemand;

/// What the view reads.
#[derive(Reads)]
pub enum Consumed {
    ProductDemandRecorded { product_id: ProductId },
    ProductDemandRevoked { product_id: ProductId },
}

/// The demand for a product.
#[ringfence::value]
#[derive(Debug, Default)]
pub struct Demand {
    /// Orders that ask for it now.
    pub open: u64,
    /// How often an order began to ask for it.
    pub recorded: u64,
}

impl View for ProductDemand {
    const NAME: &'static str = "product-demand";
    type Reads = Consumed;
    type Row = Demand;

    fn rows(event: &Consumed) -> Vec<String> {
        match event {
            Consumed::ProductDemandRecorded { product_id }
            | Consumed::ProductDemandRevoked { product_id } => vec![product_id.to_string()],
        }
    }

    fn evolve(row: Option<Demand>, _id: &str, event: &Consumed) -> Option<Demand> {
        let Demand { open, recorded } = row.unwrap_or_default();
        Some(match event {
            Consumed::ProductDemandRecorded { .. } => {
                Demand { open: open + 1, recorded: recorded + 1 }
            }
            // The decision revokes only what is recorded; an imported history may not.
            Consumed::ProductDemandRevoked { .. } => {
                Demand { open: open.saturating_sub(1), recorded }
            }
        })
    }
}

#[test]
fn revoked_demand_lowers_only_the_open_demand() {
    use crate::{ProductDemandRecorded, ProductDemandRevoked};
    use ringfence::view::kit::given;

    let recorded =
        |product, order| ProductDemandRecorded { product_id: id(product), order_id: id(order) };
    let revoked =
        |product, order| ProductDemandRevoked { product_id: id(product), order_id: id(order) };
    given(events![
        recorded("p1", "o1"),
        recorded("p1", "o2"),
        recorded("p2", "o1"),
        revoked("p1", "o1"),
        recorded("p1", "o3"),
    ])
    .then::<ProductDemand>([
        ("p1", Demand { open: 2, recorded: 3 }),
        ("p2", Demand { open: 1, recorded: 1 }),
    ]);
}
