//! Each shape of a boundary, as exact appends from the wire.

use ringfence_core::kit::id;
use ringfence_core::{Context, events};

use crate::render::append;
use crate::shop::{
    AddProduct, ListProduct, OrderListed, OrderProduct, PlaceOrder, ProductOrdered, ProductStocked,
    RecordDemand, Shop,
};
use crate::stack::{NOW_MS, Stack, code};

/// The only append since the last call.
#[track_caller]
fn only_append(stack: &Stack) -> String {
    let mut sent = stack.wire.take();
    sent.retain(|exchange| exchange.operation.contains("Write") || exchange.operation == "PutItem");
    let [exchange] = &sent[..] else { panic!("not one append") };
    append(exchange)
}

#[tokio::test]
async fn add_product() {
    let stack = Stack::start(Shop::catalog()).await;
    stack.accept(AddProduct { product_id: id("p1"), name: "Lamp".to_owned() }).await;
    insta::assert_snapshot!(only_append(&stack));
}

#[tokio::test]
async fn place_order() {
    let stack = Stack::start(Shop::catalog()).await;
    stack.clock.set(NOW_MS - 10);
    let stocked = |product| ProductStocked { product_id: id(product) };
    stack.seed(events![stocked("p1"), stocked("p1"), stocked("p2")]).await;
    stack.clock.set(NOW_MS);
    stack.wire.forget();
    let product_ids = vec![id("p1"), id("p2")];
    stack.accept(PlaceOrder { order_id: id("o1"), product_ids, paid: true }).await;
    insta::assert_snapshot!(only_append(&stack));
}

#[tokio::test]
async fn order_listed() {
    let stack = Stack::start(Shop::catalog()).await;
    stack.clock.set(NOW_MS - 10);
    stack.accept(ListProduct { product_id: id("p1") }).await;
    stack.clock.set(NOW_MS);
    stack.wire.forget();
    stack.accept(ListProduct { product_id: id("p2") }).await;
    insta::assert_snapshot!("list_product", only_append(&stack));
    let product_ids = vec![id("p1"), id("p2")];
    stack.clock.set(NOW_MS + 10);
    stack.accept(OrderListed { order_id: id("o1"), product_ids }).await;
    insta::assert_snapshot!(only_append(&stack));
}

#[tokio::test]
async fn record_demand() {
    let stack = Stack::start(Shop::catalog()).await;
    let demand = |order| RecordDemand::Record { product_id: id("p1"), order_id: id(order) };
    stack.clock.set(NOW_MS - 20);
    stack.accept(demand("o1")).await;
    stack.clock.set(NOW_MS - 10);
    stack.accept(demand("o2")).await;
    stack.clock.set(NOW_MS);
    stack.wire.forget();
    let third = stack.accept(demand("o3")).await;
    assert_eq!(third.attempts, 1);
    insta::assert_snapshot!(only_append(&stack));

    // Revoked once. The second time there is nothing to revoke.
    let revoke = || RecordDemand::Revoke { product_id: id("p1"), order_id: id("o3") };
    stack.accept(revoke()).await;
    stack.accept(revoke()).await;
    assert_eq!(stack.count("DemandRevoked").await, 1);
}

#[tokio::test]
async fn order_product() {
    let stack = Stack::start(Shop::catalog()).await;
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
    stack.wire.forget();
    stack.accept(order("o2", "c1", 6)).await;
    insta::assert_snapshot!(only_append(&stack));

    // The cap counts across orders, and only for this customer.
    let rejected = stack.run(&order("o3", "c1", 1)).await;
    assert_eq!(code(&rejected), "LimitExceeded");
    stack.accept(order("o3", "c2", 1)).await;
}
