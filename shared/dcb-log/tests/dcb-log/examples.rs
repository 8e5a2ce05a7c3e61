//! The four worked examples, as exact transactions from the wire.

use catalog::Money;
use catalog::add_product::AddProduct;
use catalog::record_product_demand::RecordProductDemand;
use ordering::order_product::OrderProduct;
use ordering::place_order::PlaceOrder;
use ordering::{CatalogProductSynced, ProductOrdered};
use ringfence::kit::id;
use ringfence::{DcbContext, events};

use crate::render::transaction;
use crate::stack::{NOW_MS, Stack};

/// The one transaction that was sent since the last look.
#[track_caller]
fn only_transaction(stack: &Stack) -> String {
    let [exchange] = &stack.take("TransactWriteItems")[..] else { panic!("not one transaction") };
    transaction(exchange)
}

pub(crate) fn synced(product: &str) -> CatalogProductSynced {
    CatalogProductSynced {
        product_id: id(product),
        name: "Lamp".to_owned(),
        price: Money::new(1_250, "EUR"),
    }
}

#[tokio::test]
async fn add_product() {
    let stack = Stack::start(catalog::ProductCatalog::catalog()).await;
    stack
        .accept(AddProduct {
            product_id: id("p1"),
            name: id("Lamp"),
            description: id("Gives light"),
            price: Money::new(1_250, "EUR"),
        })
        .await;
    insta::assert_snapshot!(only_transaction(&stack));
}

#[tokio::test]
async fn place_order() {
    let stack = Stack::start(ordering::Ordering::catalog()).await;
    stack.clock.set(NOW_MS - 10);
    stack.seed(events![synced("p1"), synced("p1"), synced("p2")]).await;
    stack.clock.set(NOW_MS);
    let _ = stack.wire.take();
    stack
        .accept(PlaceOrder {
            order_id: id("o1"),
            customer_id: id("c1"),
            product_ids: vec![id("p1"), id("p2")],
            quantities: [].into(),
        })
        .await;
    insta::assert_snapshot!(only_transaction(&stack));
}

#[tokio::test]
async fn record_product_demand() {
    let stack = Stack::start(catalog::ProductCatalog::catalog()).await;
    let demand =
        |order| RecordProductDemand::RecordDemand { product_id: id("p1"), order_id: id(order) };
    stack.clock.set(NOW_MS - 20);
    stack.accept(demand("o1")).await;
    stack.clock.set(NOW_MS - 10);
    stack.accept(demand("o2")).await;
    stack.clock.set(NOW_MS);
    let _ = stack.wire.take();
    let third = stack.accept(demand("o3")).await;
    assert_eq!(third.attempts, 1);
    insta::assert_snapshot!(only_transaction(&stack));

    // Revoked once; again is no event.
    let revoke = || RecordProductDemand::RevokeDemand { product_id: id("p1"), order_id: id("o3") };
    stack.accept(revoke()).await;
    stack.accept(revoke()).await;
    assert_eq!(stack.count("ProductDemandRevoked").await, 1);
}

#[tokio::test]
async fn order_product() {
    let stack = Stack::start(ordering::Ordering::catalog()).await;
    let order = |order, customer, quantity| OrderProduct {
        order_id: id(order),
        customer_id: id(customer),
        product_id: id("p1"),
        quantity,
    };
    stack.clock.set(NOW_MS - 20);
    stack
        .seed(events![ProductOrdered {
            order_id: id("o1"),
            customer_id: id("c1"),
            product_id: id("p1"),
            quantity: 4,
        }])
        .await;
    stack.clock.set(NOW_MS);
    let _ = stack.wire.take();
    stack.accept(order("o2", "c1", 6)).await;
    insta::assert_snapshot!(only_transaction(&stack));

    // The cap counts across orders, and for this customer alone.
    let refused = stack.run(&order("o3", "c1", 1)).await;
    assert_eq!(crate::stack::code(&refused), "LimitExceeded");
    stack.accept(order("o3", "c2", 1)).await;
}
