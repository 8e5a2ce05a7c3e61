//! catalog-products: what the shop sells. One row for each product.

use crate::{Money, ProductId};
use ringfence::prelude::*;
use ringfence::view::View;

#[derive(Debug)]
pub struct CatalogProducts;

/// What the view reads.
#[derive(Reads)]
pub enum Consumed {
    ProductAdded { product_id: ProductId, name: String, description: String, price: Money },
    ProductNameChanged { product_id: ProductId, name: String },
    ProductPriceChanged { product_id: ProductId, price: Money },
}

/// A product.
#[ringfence::value]
#[derive(Debug)]
pub struct Product {
    pub name: String,
    pub description: String,
    pub price: Money,
}

impl View for CatalogProducts {
    const NAME: &'static str = "catalog-products";
    type Reads = Consumed;
    type Row = Product;

    fn rows(event: &Consumed) -> Vec<String> {
        match event {
            Consumed::ProductAdded { product_id, .. }
            | Consumed::ProductNameChanged { product_id, .. }
            | Consumed::ProductPriceChanged { product_id, .. } => vec![product_id.to_string()],
        }
    }

    fn evolve(row: Option<Product>, _id: &str, event: &Consumed) -> Option<Product> {
        match event {
            Consumed::ProductAdded { name, description, price, .. } => Some(Product {
                name: name.clone(),
                description: description.clone(),
                price: price.clone(),
            }),
            Consumed::ProductNameChanged { name, .. } => {
                row.map(|row| Product { name: name.clone(), ..row })
            }
            Consumed::ProductPriceChanged { price, .. } => {
                row.map(|row| Product { price: price.clone(), ..row })
            }
        }
    }
}

#[test]
fn a_row_shows_the_latest_name_and_price() {
    use crate::{ProductAdded, ProductNameChanged, ProductPriceChanged};
    use ringfence::view::kit::given;

    let added = |product| ProductAdded {
        product_id: id(product),
        name: "Lamp".to_owned(),
        description: "Shines".to_owned(),
        price: Money::new(1_250, "EUR"),
    };
    let row = |name: &str, cents| Product {
        name: name.to_owned(),
        description: "Shines".to_owned(),
        price: Money::new(cents, "EUR"),
    };
    given(events![
        added("p1"),
        added("p2"),
        ProductNameChanged { product_id: id("p1"), name: "Torch".to_owned() },
        ProductPriceChanged { product_id: id("p2"), price: Money::new(990, "EUR") },
    ])
    .then::<CatalogProducts>([("p1", row("Torch", 1_250)), ("p2", row("Lamp", 990))]);
}
