//! The cases of a cart, in memory and on an embedded DynamoDB.
#![allow(missing_docs, reason = "a test")]

use ringfence::kit::id;
use ringfence_carts::{Cart, Event, PRODUCTS_MAX, ProductId, Rejection, access};
use ringfence_document_log::kit::{Case, check_in_memory, given};
use ringfence_document_log::{Cache, Category, DocumentLog, DynamoStore};
use ringfence_dynamo::Clock;
use ringfence_dynamo::wire::Wire;
use ringfence_local::embedded::Embedded;
use serde_json::json;

fn lamp() -> ProductId {
    id("lamp")
}

fn added(quantity: u32) -> Event {
    Event::ItemAdded { product_id: lamp(), quantity }
}

fn many(products: usize) -> Vec<Event> {
    let added = |n| Event::ItemAdded { product_id: id(&format!("product-{n}")), quantity: 1 };
    (0..products).map(added).collect()
}

fn cases() -> Vec<Case<Cart, Rejection>> {
    let out_of_range = |quantity| Rejection::QuantityOutOfRange { product_id: lamp(), quantity };
    let removed = Event::ItemRemoved { product_id: lamp() };
    let changed = Event::QuantityChanged { product_id: lamp(), quantity: 5 };
    let not_in_cart = Rejection::NotInCart { product_id: lamp() };
    let checked_out = || given([added(1), Event::CheckedOut]);
    vec![
        given([]).when(|cart: &Cart| cart.add(lamp(), 2)).then([added(2)]),
        given([added(98)]).when(|cart: &Cart| cart.add(lamp(), 1)).then([added(1)]),
        given([added(98)]).when(|cart: &Cart| cart.add(lamp(), 2)).then_rejected(out_of_range(100)),
        given([]).when(|cart: &Cart| cart.add(lamp(), 0)).then_rejected(out_of_range(0)),
        given(many(PRODUCTS_MAX - 1)).when(|cart: &Cart| cart.add(lamp(), 1)).then([added(1)]),
        given(many(PRODUCTS_MAX))
            .when(|cart: &Cart| cart.add(lamp(), 1))
            .then_rejected(Rejection::TooManyProducts),
        given([added(1)]).when(|cart: &Cart| cart.change_quantity(lamp(), 5)).then([changed]),
        given([added(5)]).when(|cart: &Cart| cart.change_quantity(lamp(), 5)).then_nothing(),
        given([added(5), removed.clone()])
            .when(|cart: &Cart| cart.change_quantity(lamp(), 5))
            .then_rejected(not_in_cart),
        given([added(5)])
            .when(|cart: &Cart| cart.change_quantity(lamp(), 100))
            .then_rejected(out_of_range(100)),
        given([added(1)]).when(|cart: &Cart| cart.remove(lamp())).then([removed]),
        given([]).when(|cart: &Cart| cart.remove(lamp())).then_nothing(),
        given([added(1)]).when(Cart::check_out).then([Event::CheckedOut]),
        given([]).when(Cart::check_out).then_rejected(Rejection::CartEmpty),
        checked_out().when(Cart::check_out).then_nothing(),
        checked_out()
            .when(|cart: &Cart| cart.add(lamp(), 1))
            .then_rejected(Rejection::CartCheckedOut),
        checked_out()
            .when(|cart: &Cart| cart.remove(lamp()))
            .then_rejected(Rejection::CartCheckedOut),
        checked_out()
            .when(|cart: &Cart| cart.change_quantity(lamp(), 2))
            .then_rejected(Rejection::CartCheckedOut),
    ]
}

#[test]
fn the_cases_hold_in_memory() {
    check_in_memory(access, &cases());
}

#[tokio::test]
async fn the_cases_hold_on_dynamodb() {
    let dynamo = Embedded::start().await.expect("an embedded DynamoDB");
    let key = |name: &str, kind| json!({ "AttributeName": name, "KeyType": kind });
    let typed = |name: &str, kind| json!({ "AttributeName": name, "AttributeType": kind });
    let table = json!({
        "KeySchema": [key("p", "HASH"), key("i", "RANGE")],
        "AttributeDefinitions": [typed("p", "S"), typed("i", "N")],
    });
    dynamo.create_table(&table, "carts").expect("the table");
    let store = DynamoStore::new(Wire::default().client(dynamo.endpoint()), "carts");
    let log = DocumentLog::new(store, Clock::system());
    let carts = Category::new(log, access(), Cache::none()).expect("the events are an enum");
    for (n, case) in cases().iter().enumerate() {
        case.check(&carts, &format!("case-{n}")).await;
    }
}
