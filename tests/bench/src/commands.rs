//! A command through the decide loop and the log, beside the same requests written by hand.

use aws_sdk_dynamodb::Client;
use catalog::add_product::AddProduct;
use catalog::change_product_name::ChangeProductName;
use catalog::{Money, ProductAdded, ProductCatalog, ProductId};
use futures::future::BoxFuture;
use ordering::CatalogProductSynced;
use ordering::place_order::PlaceOrder;
use ringfence_aws::{Clock, Table};
use ringfence_core::kit::id;
use ringfence_core::{
    Append, Appended, Context, Decisions, Envelope, EventLog, Metadata, NewEvent, Outcome,
    SequencedEvent, Slice, handle,
};
use ringfence_dcb_log::DcbLog;

use crate::bare::{self, Bare, METADATA, Way};
use crate::measure::{Case, Side, runtime};
use crate::store::{EVENTS, Store};
use crate::{BARE, FLOOR, OURS, tls};

/// The time of every clock: 2024-06-23T00:00:00Z.
pub(crate) const NOW_MS: u64 = 1_719_100_800_000;
pub(crate) fn envelope() -> Envelope {
    let mut metadata = Metadata::default();
    for (key, value) in METADATA {
        metadata.insert(key, value).expect("not a key of the log");
    }
    Envelope { metadata, ..Envelope::default() }
}

/// Appends events in one transaction, without a condition.
pub(crate) async fn append(log: &DcbLog, events: Vec<NewEvent>) -> Vec<SequencedEvent> {
    let envelope = envelope();
    match log.append(Append { events, seen: None, record: None, envelope: &envelope }).await {
        Ok(Appended::Committed(events)) => events,
        other => panic!("not committed: {other:?}"),
    }
}

/// `AddProduct`: one read that finds nothing, one put.
pub(crate) fn add_product() -> Case {
    adding(Store::client)
}

/// `AddProduct` over TLS. It sends one request after another, so the store knows which answer to repeat.
pub(crate) fn add_product_over_tls() -> Case {
    adding(tls::client)
}

fn adding(connect: Connect) -> Case {
    let price = Money::new(1_250, "EUR");
    let (name, description) = (id("Lamp"), id("Gives light"));
    let command = AddProduct { product_id: id("product-0001"), name, description, price };
    case(connect, command, &[], |bare, command| Box::pin(bare::add_product(bare, command)))
}

/// `ChangeProductName` on a warm handler: it knows the product, so it puts without a read. It always puts at the slot
/// after the previous change, and the store always gives the same answer.
pub(crate) fn change_product_name_warm() -> Case {
    let product_id: ProductId = id("product-0001");
    let changes = ["Lamp", "Torch"]
        .map(|name| ChangeProductName { product_id: product_id.clone(), name: id(name) });
    let runtime = runtime();
    let catalog = ProductCatalog::catalog().expect("free of contradictions");
    let world = || {
        let (store, name) = (Store::new(), "Bulb".to_owned());
        let log =
            DcbLog::new(store.client(), EVENTS, catalog.clone(), Clock::fixed(NOW_MS - 1_000));
        let (product_id, price) = (product_id.clone(), Money::new(1_250, "EUR"));
        let added = ProductAdded { product_id, name, description: String::new(), price };
        runtime.block_on(append(&log, vec![added.into()]));
        store
    };

    let store = world();
    let log = DcbLog::new(store.client(), EVENTS, catalog.clone(), Clock::fixed(NOW_MS));
    let (envelope, decisions, run) = (envelope(), Decisions::new(1), runtime.clone());
    let (known, mut turns) = (catalog.clone(), changes.clone().into_iter().cycle());
    let mut work = move || {
        let change = turns.next().expect("it never ends");
        let handled = run.block_on(handle(&log, &known, &decisions, &change, &envelope));
        let handled = handled.expect("it is settled");
        assert!(matches!(handled.outcome, Outcome::Accepted(events) if !events.is_empty()));
    };
    work();
    let ours = Side::on(&store, work);

    let by_hand = |way: fn(Client) -> Way| {
        let store = world();
        // The previous change was in the same millisecond.
        let bare = Bare { way: way(store.client()), clock: Clock::fixed(NOW_MS + 1) };
        let (run, change) = (runtime.clone(), changes[1].clone());
        let side = Side::on(&store, move || {
            run.block_on(bare::change_product_name(&bare, &change));
        });
        assert_eq!(ours.usage.requests, side.usage.requests, "the sides ask for different things");
        side
    };
    let bare = by_hand(Way::Sdk);
    let floor = by_hand(|client| Way::Floor(Table::new(client, EVENTS, &Clock::system())));
    Case { sides: vec![(OURS, ours), (BARE, bare), (FLOOR, floor)], unit: "command", units: 1 }
}

/// `PlaceOrder` with two products: three reads at once, one event, two checks.
pub(crate) fn place_order() -> Case {
    let product_ids = vec![id("product-0001"), id("product-0002")];
    let synced = |product_id: &_| {
        let (product_id, name) = (ordering::ProductId::clone(product_id), "Lamp".into());
        CatalogProductSynced { product_id, name, price: Money::new(1_250, "EUR") }.into()
    };
    let given: Vec<NewEvent> = product_ids.iter().map(synced).collect();
    let (order_id, customer_id) = (id("order-000001"), id("customer-001"));
    let command = PlaceOrder { order_id, customer_id, product_ids, quantities: [].into() };
    case(Store::client, command, &given, |bare, command| Box::pin(bare::place_order(bare, command)))
}

/// Makes a client of a store.
type Connect = fn(&Store) -> Client;
type ByHand<S> = for<'a> fn(&'a Bare, &'a S) -> BoxFuture<'a, String>;

fn case<S: Slice + Clone + 'static>(
    connect: Connect,
    command: S,
    given: &[NewEvent],
    by_hand: ByHand<S>,
) -> Case {
    let runtime = runtime();
    let catalog = S::Context::catalog().expect("free of contradictions");
    let world = || {
        let (store, clock) = (Store::new(), Clock::fixed(NOW_MS));
        let log =
            DcbLog::new(store.client(), EVENTS, catalog.clone(), Clock::fixed(NOW_MS - 1_000));
        for event in given {
            runtime.block_on(append(&log, vec![event.clone()]));
        }
        (store, clock)
    };

    let (store, clock) = world();
    let log = DcbLog::new(connect(&store), EVENTS, catalog.clone(), clock);
    let (envelope, decisions) = (envelope(), Decisions::new(0));
    let (run, ours, known) = (runtime.clone(), command.clone(), catalog.clone());
    let ours = Side::on(&store, move || {
        let handled = run.block_on(handle(&log, &known, &decisions, &ours, &envelope));
        let handled = handled.expect("it is settled");
        assert!(matches!(handled.outcome, Outcome::Accepted(_)), "{handled:?}");
    });

    let by_hand = |way: fn(Client) -> Way| {
        let (store, clock) = world();
        let by_hand_on = Bare { way: way(connect(&store)), clock };
        let (run, command) = (runtime.clone(), command.clone());
        let side = Side::on(&store, move || {
            let event = run.block_on(by_hand(&by_hand_on, &command));
            assert!(!event.is_empty(), "it is not accepted");
        });
        assert_eq!(ours.usage.requests, side.usage.requests, "the sides ask for different things");
        side
    };
    let bare = by_hand(Way::Sdk);
    let floor = by_hand(|client| Way::Floor(Table::new(client, EVENTS, &Clock::system())));
    Case { sides: vec![(OURS, ours), (BARE, bare), (FLOOR, floor)], unit: "command", units: 1 }
}
