//! Clients that race: exactly the permitted number wins. Each request takes some milliseconds, chosen by a seed.

use futures::future::join_all;
use ringfence_aws::wire::Fault;
use ringfence_aws::{Clock, seed_thread};
use ringfence_core::kit::id;
use ringfence_core::prelude::*;
use ringfence_core::{HandleError, Handled, Outcome};
use ringfence_harness::bound;
use serde_json::json;

use crate::faults::renamed;
use crate::seats::{COURSES_MAX, CourseDefined, Subscribe};
use crate::shop::{
    AddProduct, ChangeProductName, OrderListed, PlaceOrder, ProductAdded, ProductId, ProductListed,
    ProductStocked, Shop,
};
use crate::stack::{NOW_MS, Stack, append, code, envelope};
use crate::weather::Slow;

const CLIENTS: usize = 16;

async fn stack<S: Slice>() -> Stack {
    seed_thread(1);
    let mut stack = Stack::start(S::Context::catalog()).await;
    stack.clock = Clock::running(NOW_MS);
    stack.wire.direct(Slow::new(1));
    stack
}

/// Runs the commands at once, each on its own client.
async fn race<S: Slice>(
    stack: &Stack,
    commands: impl Iterator<Item = S>,
) -> Vec<Result<Handled, HandleError>> {
    join_all(commands.map(async |command| stack.run(&command).await)).await
}

fn winners(ends: &[Result<Handled, HandleError>]) -> usize {
    let won = |end: &&_| matches!(end, Ok(Handled { outcome: Outcome::Accepted(_), .. }));
    ends.iter().filter(won).count()
}

#[tokio::test(start_paused = true)]
async fn many_entities_are_created_once_each() {
    let entities = bound(30, 100);
    let stack = stack::<AddProduct>().await;
    // Each client starts at another entity, so they collide at some entities and follow each other at others.
    let clients = (0..CLIENTS).map(async |client| {
        let mut won = 0;
        for n in 0..entities {
            let end = [stack.run(&add((client / 4 + n) % entities)).await];
            match winners(&end) {
                0 => assert_eq!(code(&end[0]), "ProductAlreadyExists"),
                one => won += one,
            }
        }
        won
    });
    let won: usize = join_all(clients).await.into_iter().sum();
    assert_eq!(won, entities);
    assert_eq!(stack.count("ProductAdded").await, entities);
    stack.check_fences().await;
}

fn add(n: usize) -> AddProduct {
    AddProduct { product_id: id(&format!("p{n}")), name: "Lamp".to_owned() }
}

fn subscribe(course: usize, student: usize) -> Subscribe {
    let (course, student) = (format!("c{course}"), format!("s{student}"));
    Subscribe { course_id: id(&course), student_id: id(&student) }
}

async fn define(stack: &Stack, course: usize, capacity: usize) {
    stack.seed(events![CourseDefined { course_id: id(&format!("c{course}")), capacity }]).await;
}

#[tokio::test(start_paused = true)]
async fn the_last_seat_of_a_course_is_taken_once() {
    let stack = stack::<Subscribe>().await;
    define(&stack, 0, 3).await;
    stack.accept(subscribe(0, 100)).await;
    stack.accept(subscribe(0, 101)).await;
    let ends = race(&stack, (0..CLIENTS).map(|student| subscribe(0, student))).await;
    assert_eq!(winners(&ends), 1, "{ends:?}");
    assert_eq!(stack.count("StudentSubscribed").await, 3);
    stack.check_fences().await;
}

#[tokio::test(start_paused = true)]
async fn a_students_last_slot_is_taken_once_across_courses() {
    let stack = stack::<Subscribe>().await;
    for course in 0..CLIENTS + COURSES_MAX {
        define(&stack, course, 100).await;
    }
    for course in 0..COURSES_MAX - 1 {
        stack.accept(subscribe(CLIENTS + course, 0)).await;
    }
    let ends = race(&stack, (0..CLIENTS).map(|course| subscribe(course, 0))).await;
    assert_eq!(winners(&ends), 1, "{ends:?}");
    assert_eq!(stack.count("StudentSubscribed").await, COURSES_MAX);
    stack.check_fences().await;
}

#[tokio::test(start_paused = true)]
async fn stale_reads_cost_attempts_and_never_a_seat() {
    let stack = stack::<Subscribe>().await;
    define(&stack, 0, 10).await;
    // Every third answer of a query comes from a replica that has no items yet.
    for n in 0..40 {
        let nothing = json!({ "Items": [], "Count": 0, "ScannedCount": 0 });
        stack.wire.inject("Query", 2 * n, Fault::Answer(200, nothing));
    }
    let ends = race(&stack, (0..CLIENTS).map(|student| subscribe(0, student))).await;
    let subscribed = stack.count("StudentSubscribed").await;
    assert_eq!(winners(&ends), subscribed);
    // If a client gave up in the crowd, it gets a seat afterwards, as long as there is one.
    for student in 0..CLIENTS {
        let _ = stack.run(&subscribe(0, student)).await;
    }
    assert_eq!(stack.count("StudentSubscribed").await, 10);
    stack.check_fences().await;
}

#[tokio::test(start_paused = true)]
async fn orders_of_a_product_pass_beside_its_other_events() {
    let stack = stack::<AddProduct>().await;
    stack
        .seed(events![
            ProductListed { product_id: id("p1") },
            ProductStocked { product_id: id("p1") }
        ])
        .await;
    let product_ids = || vec![id("p1")];
    let listed = (0..CLIENTS).map(async |n| {
        let (order_id, product_ids) = (id(&format!("listed-{n}")), product_ids());
        stack.accept(OrderListed { order_id, product_ids }).await.attempts
    });
    let stocked = (0..CLIENTS).map(async |n| {
        let (order_id, product_ids) = (id(&format!("stocked-{n}")), product_ids());
        let command = PlaceOrder { order_id, product_ids, paid: true };
        // Some commands that depend on every slot of the partition may give up.
        stack.run(&command).await.is_ok()
    });
    let names = (0..CLIENTS).map(async |n| {
        let event = renamed(&n.to_string()).into();
        append(&stack.log(), vec![event], &envelope()).await.is_ok()
    });
    let (listed, stocked, names) =
        tokio::join!(join_all(listed), join_all(stocked), join_all(names));
    assert_eq!(listed, [1; CLIENTS]);
    let placed = CLIENTS + stocked.iter().filter(|placed| **placed).count();
    assert_eq!(stack.count("OrderPlaced").await, placed);
    assert!(names.iter().all(|appended| *appended));
    stack.check_fences().await;
}

/// Adds units of a product. It reads another type than [`ChangeProductName`], in the same partition.
#[derive(Clone, Debug, PartialEq, Command)]
struct Stock {
    #[tag(partition)]
    product_id: ProductId,
}

#[derive(Reads)]
enum Stocked {
    ProductStocked,
}

/// How often units were added.
#[derive(Default)]
struct Times(usize);

impl State for Times {
    type Reads = Stocked;

    fn evolve(self, Stocked::ProductStocked: Stocked) -> Self {
        Self(self.0 + 1)
    }
}

impl Slice for Stock {
    const NAME: &'static str = "stock";
    type Context = Shop;
    type State = Times;
    type Writes = ProductStocked;
    type Rejection = Never;

    fn decide(&self, _: &Times, _: &CommandContext) -> Result<Vec<ProductStocked>, Never> {
        Ok(vec![ProductStocked { product_id: self.product_id.clone() }])
    }
}

/// Two types share the slots of their partition, so they meet more often than each alone.
#[tokio::test(start_paused = true)]
async fn changes_of_two_types_of_one_product_meet_at_its_next_slot_and_all_are_accepted() {
    let conflicts = async |of_each: usize, of_other: usize| {
        let stack = stack::<AddProduct>().await;
        stack.seed(events![ProductAdded { product_id: id("p1"), name: "Lamp".to_owned() }]).await;
        let names = (0..of_each).map(async |n| {
            let name = format!("Lamp {n}");
            stack.accept(ChangeProductName { product_id: id("p1"), name }).await
        });
        let stocks =
            (0..of_other).map(async |_| stack.accept(Stock { product_id: id("p1") }).await);
        let (names, stocks) = tokio::join!(join_all(names), join_all(stocks));
        stack.check_fences().await;
        names.iter().chain(&stocks).map(|it| it.conflicts.len()).sum::<usize>()
    };
    let alone = [conflicts(10, 0).await, conflicts(0, 10).await];
    assert_eq!((alone, conflicts(10, 10).await), ([18, 18], 48));
}
