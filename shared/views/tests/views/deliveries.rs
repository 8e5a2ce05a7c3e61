//! The views of the stack, whatever the stream delivers and whoever crashes: each is what its
//! rebuild is, and what a plain fold of the index is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use catalog::views::{catalog_products::CatalogProducts, product_demand::ProductDemand};
use catalog::{
    Money, ProductAdded, ProductDemandRecorded, ProductDemandRevoked, ProductNameChanged,
    ProductPriceChanged,
};
use courses::views::course_rosters::CourseRosters;
use courses::{CourseCapacityChanged, CourseDefined, StudentSubscribed, StudentUnsubscribed};
use futures::future::{join, join3};
use ordering::views::{customer_order_counts::CustomerOrderCounts, orders::Orders};
use ordering::{OrderCancelled, OrderPlaced, ProductOrdered};
use ringfence::{BoundaryId, FedEvent, NewEvent, Reads, kit::id};
use ringfence_dynamo::{Random, Retry};
use ringfence_views::{Definition, View};
use serde_json::Value;

use crate::weather::Weather;
use crate::world::{FIRST, SECOND, World};

const RUNS: u64 = 40;
/// Batches of the stream in a run.
const BATCHES: u64 = 5;
/// Records in a batch: 100,000 deliveries in all.
const RECORDS: usize = 500;
/// Events in a run.
const EVENTS: u64 = 50;

fn event(random: &mut Random) -> NewEvent {
    let mut name = |prefix: &str, of: u64| format!("{prefix}{}", random.below(of));
    let (product, order, customer) = (name("p", 3), name("o", 6), name("c", 3));
    let (course, student) = (name("k", 2), name("s", 4));
    let (product, order, course) = (id(&product), &*order, id(&course));
    let product_ids = vec![id("p0"), id("p1")];
    match random.below(12) {
        0 => ProductAdded {
            product_id: product,
            name: "Lamp".to_owned(),
            description: "Shines".to_owned(),
            price: Money::new(random.below(900), "EUR"),
        }
        .into(),
        1 => ProductNameChanged { product_id: product, name: random.next().to_string() }.into(),
        2 => {
            let price = Money::new(random.below(900), "EUR");
            ProductPriceChanged { product_id: product, price }.into()
        }
        3 => ProductDemandRecorded { product_id: product, order_id: id(order) }.into(),
        4 => ProductDemandRevoked { product_id: product, order_id: id(order) }.into(),
        5 => OrderPlaced {
            order_id: id(order),
            customer_id: id(&customer),
            product_ids,
            quantities: [].into(),
        }
        .into(),
        6 => OrderCancelled { order_id: id(order), product_ids }.into(),
        7 => ProductOrdered {
            order_id: id(order),
            customer_id: id(&customer),
            product_id: id("p0"),
            quantity: 1,
        }
        .into(),
        8 => CourseDefined { course_id: course, capacity: 3 }.into(),
        9 => CourseCapacityChanged { course_id: course, new_capacity: 5 }.into(),
        10 => StudentSubscribed { course_id: course, student_id: id(&student) }.into(),
        _ => StudentUnsubscribed { course_id: course, student_id: id(&student) }.into(),
    }
}

/// The rows by a plain fold.
fn fold<V: View>(events: &[FedEvent]) -> BTreeMap<String, Value> {
    let mut rows: BTreeMap<String, V::Row> = BTreeMap::new();
    for event in events.iter().filter(|event| V::Reads::TYPES.contains(&&*event.event_type)) {
        let event = V::Reads::decode(event).unwrap();
        for id in V::rows(&event).into_iter().collect::<BTreeSet<_>>() {
            let row = V::evolve(rows.remove(&id), &id, &event);
            rows.extend(row.map(|row| (id, row)));
        }
    }
    rows.into_iter().map(|(id, row)| (id, serde_json::to_value(row).unwrap())).collect()
}

/// What one invocation of the projector does, until it is done or crashes.
async fn project(world: &World, crash_ms: u64, wait_ms: u64) {
    tokio::time::sleep(Duration::from_millis(wait_ms)).await;
    let (projector, views) = (world.projector(), stack::stack().views());
    let round = ringfence_views::project_views::ring(
        &projector,
        &views,
        Duration::from_secs(60),
        &world.clock,
    );
    let _ = tokio::time::timeout(Duration::from_millis(crash_ms), round).await;
}

async fn run(seed: u64) {
    let world = World::new(seed, Ok(stack::stack().catalog));
    let weather = Arc::new(Weather::new(seed, [0, 5, 15, 25][(seed % 4) as usize]));
    let mut random = Random::new(&[seed, 2]);
    world.direct(&weather);
    let mut appended: Vec<BoundaryId> = Vec::new();
    for _ in 0..BATCHES {
        for _ in 0..EVENTS / BATCHES {
            appended.push(world.append(vec![event(&mut random)]).await[0].partition.clone());
        }
        let mut delivered = || {
            let mut any = || usize::try_from(random.below(appended.len() as u64)).unwrap();
            (0..RECORDS / 2).map(|_| appended[any()].clone()).collect::<Vec<_>>()
        };
        let (one, two) = (delivered(), delivered());
        let mut ms = |most| random.below(most);
        let index = async |partitions, crash_ms| {
            let index = world.indexer.index(partitions, Retry::default());
            let _ = tokio::time::timeout(Duration::from_millis(crash_ms), index).await;
        };
        let indexers = join(index(one, ms(400)), index(two, ms(400)));
        let (crash_ms, wait_ms) = ([ms(300), ms(300)], [ms(100), ms(100)]);
        let projectors = [0, 1].map(|n| project(&world, crash_ms[n], wait_ms[n]));
        let [first, second] = projectors;
        join3(indexers, first, second).await;
        let next = event(&mut random);
        appended.push(world.append(vec![next]).await[0].partition.clone());
    }
    weather.calm();
    world.indexer.index(appended.clone(), Retry::default()).await;
    let events = world.events().await;
    assert_eq!(events.len(), appended.len(), "seed {seed}: events of the index");
    project(&world, 60_000, 0).await;
    let folds = [
        (Definition::of::<CatalogProducts>(), fold::<CatalogProducts>(&events)),
        (Definition::of::<ProductDemand>(), fold::<ProductDemand>(&events)),
        (Definition::of::<Orders>(), fold::<Orders>(&events)),
        (Definition::of::<CustomerOrderCounts>(), fold::<CustomerOrderCounts>(&events)),
        (Definition::of::<CourseRosters>(), fold::<CourseRosters>(&events)),
    ];
    for (view, fold) in &folds {
        let context = format!("seed {seed}, {}", view.name);
        assert_eq!(world.rows(view.name, FIRST).await, *fold, "{context}: against a plain fold");
        world.projector().rebuild(view, &|_| {}).await.unwrap();
        assert_eq!(world.rows(view.name, SECOND).await, *fold, "{context}: against its rebuild");
        assert!(world.rows(view.name, FIRST).await.is_empty(), "{context}: old rows");
    }
}

#[tokio::test(start_paused = true)]
async fn each_view_equals_its_rebuild_after_100_000_deliveries() {
    for seed in 0..RUNS {
        run(seed).await;
    }
}
