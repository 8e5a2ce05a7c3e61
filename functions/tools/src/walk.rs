//! A walk through the shop: each request, its answer, each event on the topic, events of all three logs in the index,
//! and rows of the views. It ends with an error at the first thing that is wrong.

use anyhow::{Context, Result, ensure};
use futures::future::LocalBoxFuture;
use ringfence_local::stack::RunningStack;
use ringfence_local::walker::{
    EVENTS_WAIT_MAX, HttpAnswer, INDEX_PAUSE, Walker, expect_accepted, expect_rejected,
    is_accepted, title,
};
use serde_json::{Value, json};
use tokio::{
    select,
    time::{Instant, sleep},
};

/// The mail address of the customer whom the walk forgets. No sample has this address.
const ADDRESS: &str = "ada.l@example.com";
/// The pages of the console that show events, rows, commands and lines of the log.
const PAGES: &[&str] = &[
    "/",
    "/boundary?id=customers%23ada",
    "/commands",
    "/dead-letters",
    "/deadlines",
    "/events",
    "/events/customers%23ada/1",
    "/lanes",
    "/search?q=ada",
    "/slices/customers/register-customer",
    "/trouble",
    "/types/CustomerRegistered",
    "/views/customers",
];
/// The time after which no function of the stack has a forgotten key in memory, in milliseconds.
const FORGOTTEN_MS: u64 = 330_000;

/// Walks the shop on a stack that nobody else uses.
///
/// # Errors
/// An answer or an event is wrong or does not come.
pub fn walk(stack: &RunningStack) -> LocalBoxFuture<'_, Result<()>> {
    Box::pin(async move {
        let walker = &mut Walker::new(stack, "c-1", &["ordering/read", "payments/read"])?;
        sync_products(walker).await?;
        place_order(walker).await?;
        read_order(walker).await?;
        place_order_again(walker).await?;
        order_unknown_product(walker).await?;
        invoke_directly(walker).await?;
        order_up_to_the_cap(walker).await?;
        define_courses(walker).await?;
        subscribe_students(walker).await?;
        define_a_course_by_the_queue(walker).await?;
        register_customer(walker).await?;
        fill_cart(walker).await?;
        check_out(walker).await?;
        pay_in_time(walker).await?;
        pay_too_late(walker).await?;
        forget_customer(walker).await?;
        walker.expect_quiet().await?;
        walker.expect_no_mail("Subject: Your order cart-1 is cancelled")
    })
}

async fn sync_products(walker: &mut Walker<'_>) -> Result<()> {
    title("Two products become known to ordering");
    for (id, name, amount) in [("p-1", "Lamp", 1250), ("p-2", "Chair", 8900)] {
        let price = json!({ "amount": amount, "currency": "EUR" });
        let command = json!({ "productId": id, "name": name, "price": price });
        let answer = walker.post("/ordering/sync-catalog-product", &command).await?;
        expect_accepted(&answer, "CatalogProductSynced")?;
    }
    walker.expect_events(&[("CatalogProductSynced", 2)]).await
}

async fn place_order(walker: &mut Walker<'_>) -> Result<()> {
    title("An order; catalog records the demand for its products by itself");
    let answer =
        walker.post("/ordering/place-order", &order("ord-1", "c-1", &["p-1", "p-2"])).await?;
    expect_accepted(&answer, "OrderPlaced")?;
    walker.expect_events(&[("OrderPlaced", 1), ("ProductDemandRecorded", 2)]).await
}

async fn read_order(walker: &mut Walker<'_>) -> Result<()> {
    title("The order in the index, and in the views; each view waits until it has the order");
    let placed = walker.latest("OrderPlaced");
    let demand = walker.latest("ProductDemandRecorded");
    let product = demand["data"]["productId"].as_str().context("demand without a product")?;
    let product = format!("/product-demand/{product}");
    for (path, event, field, expected) in [
        ("/orders/ord-1", &placed, "/row/customerId", json!("c-1")),
        ("/customer-order-counts/c-1", &placed, "/row/orders", json!(1)),
        (&*product, &demand, "/row/open", json!(1)),
    ] {
        walker.expect_row(path, event, field, &expected).await?;
    }
    let partition = placed["partition"].as_str().context("an event without a partition")?;
    walker.expect_indexed("OrderPlaced", &format!("{partition}/{}", placed["slot"])).await
}

async fn place_order_again(walker: &mut Walker<'_>) -> Result<()> {
    title("The same order again");
    let answer =
        walker.post("/ordering/place-order", &order("ord-1", "c-1", &["p-1", "p-2"])).await?;
    expect_rejected(&answer, "OrderAlreadyPlaced")
}

async fn order_unknown_product(walker: &mut Walker<'_>) -> Result<()> {
    title("An order with a product that ordering does not know");
    let answer =
        walker.post("/ordering/place-order", &order("ord-2", "c-1", &["p-1", "p-9"])).await?;
    expect_rejected(&answer, "ProductsNotAvailable")?;
    let missing = &answer.1["missing"];
    ensure!(*missing == json!(["p-9"]), "the answer names {missing} as missing, not p-9");
    Ok(())
}

async fn invoke_directly(walker: &mut Walker<'_>) -> Result<()> {
    title("A slice invoked directly; ordering learns of the product by itself");
    let command = json!({
        "productId": "p-3", "name": "Desk", "description": "Oak, 160 cm",
        "price": { "amount": 24900, "currency": "EUR" },
    });
    let answer = walker.invoke("add-product", &command).await?;
    ensure!(answer["accepted"] == true, "add-product was not accepted");
    walker.expect_events(&[("ProductAdded", 1), ("CatalogProductSynced", 1)]).await
}

async fn order_up_to_the_cap(walker: &mut Walker<'_>) -> Result<()> {
    title(
        "A rule over many orders: a customer gets at most 10 units of a product, in all orders \
         together.\nFive orders of 4 units each, sent at once: two of them fit",
    );
    let order =
        |id: &str| json!({ "orderId": id, "customerId": "c-1", "productId": "p-1", "quantity": 4 });
    let orders = ["ord-3", "ord-4", "ord-5", "ord-6", "ord-7"].map(order);
    let answers = walker.post_at_once("/ordering/order-product", &orders).await?;
    let (accepted, rejected) = split(&answers);
    ensure!(accepted.len() == 2, "{} orders were accepted, not 2", accepted.len());
    for answer in rejected {
        expect_rejected(answer, "LimitExceeded")?;
    }
    walker.expect_events(&[("ProductOrdered", 2)]).await
}

async fn define_courses(walker: &mut Walker<'_>) -> Result<()> {
    title("Six courses; the first has 2 seats");
    for n in 1..=6 {
        let capacity = if n == 1 { 2 } else { 30 };
        let command = json!({ "courseId": format!("course-{n}"), "capacity": capacity });
        let answer = walker.post("/courses/define-course", &command).await?;
        expect_accepted(&answer, "CourseDefined")?;
    }
    walker.expect_events(&[("CourseDefined", 6)]).await
}

async fn define_a_course_by_the_queue(walker: &mut Walker<'_>) -> Result<()> {
    title(
        "Three commands by the queue, about one course: nobody waits, they are carried out in order, and their answers \
         are kept",
    );
    let define = json!({ "courseId": "course-7", "capacity": 10 });
    let change = json!({ "courseId": "course-7", "newCapacity": 20 });
    let defined = walker.queue("/courses/define-course", &define).await?;
    let changed = walker.queue("/courses/change-course-capacity", &change).await?;
    let again = walker.queue("/courses/define-course", &define).await?;
    expect_accepted(&walker.answer(&defined).await?, "CourseDefined")?;
    expect_accepted(&walker.answer(&changed).await?, "CourseCapacityChanged")?;
    expect_rejected(&walker.answer(&again).await?, "CourseAlreadyExists")?;
    walker.expect_events(&[("CourseDefined", 1), ("CourseCapacityChanged", 1)]).await
}

async fn subscribe_students(walker: &mut Walker<'_>) -> Result<()> {
    title(
        "One decision with two limits: the seats of the course, and 5 courses for each student.\n\
         Eve asks for all six courses and three others for the first one, all at once",
    );
    let seat = |course, student| json!({ "courseId": course, "studentId": student });
    let eve = (1..=6).map(|n| seat(format!("course-{n}"), "eve"));
    let others = ["fay", "gus", "hal"].map(|other| seat("course-1".to_owned(), other));
    let commands: Vec<_> = eve.chain(others).collect();
    let answers = walker.post_at_once("/courses/subscribe-student", &commands).await?;

    let taken = |field: &str, id: &str| {
        let asked = commands.iter().zip(&answers).filter(|(command, _)| command[field] == id);
        asked.filter(|(_, answer)| is_accepted(answer)).count()
    };
    let (seats, courses) = (taken("courseId", "course-1"), taken("studentId", "eve"));
    ensure!(seats == 2, "{seats} students have a seat in course-1, not 2");
    ensure!(courses == 5, "eve has {courses} courses, not 5");
    let (accepted, rejected) = split(&answers);
    for answer in rejected {
        expect_rejected(answer, "CourseFullyBooked")
            .or_else(|_| expect_rejected(answer, "TooManyCourses"))?;
    }
    walker.expect_events(&[("StudentSubscribed", accepted.len())]).await?;
    let events = accepted.iter().map(|(_, body)| &body["events"][0]);
    let first = events.filter(|event| event["partition"] == "courseId:course-1");
    let last = first.max_by_key(|event| event["slot"].as_u64()).context("a seat")?;
    walker.expect_row("/course-rosters/course-1", last, "/row/subscribed", &json!(2)).await
}

async fn register_customer(walker: &mut Walker<'_>) -> Result<()> {
    title("Ada registers: a stream of the aggregate log, on the topic and in the index too");
    walker.go_on_as("ada");
    let command = json!({ "customerId": "ada", "name": "Ada", "email": ADDRESS });
    let answer = walker.post("/customers/register-customer", &command).await?;
    expect_accepted(&answer, "CustomerRegistered")?;
    walker.expect_events(&[("CustomerRegistered", 1)]).await?;
    let registered = &answer.1["events"][0];
    walker.expect_row("/customers/ada", registered, "/row/name", &json!("Ada")).await?;
    walker.expect_indexed("CustomerRegistered", "customers#ada/1").await
}

async fn fill_cart(walker: &mut Walker<'_>) -> Result<()> {
    title("Her cart: a document");
    for (product, quantity) in [("p-1", 2), ("p-3", 1)] {
        let command = json!({ "cartId": "cart-1", "productId": product, "quantity": quantity });
        expect_accepted(&walker.post("/carts/add-to-cart", &command).await?, "ItemAdded")?;
    }
    walker.expect_events(&[("ItemAdded", 2)]).await
}

async fn check_out(walker: &mut Walker<'_>) -> Result<()> {
    title(
        "She checks out; ordering places the order by itself, catalog records the demand, and she gets a mail",
    );
    let command = json!({ "cartId": "cart-1", "customerId": "ada" });
    let answer = walker.post("/carts/check-out", &command).await?;
    expect_accepted(&answer, "CheckedOut")?;
    let caused = [("CheckedOut", 1), ("OrderPlaced", 1), ("ProductDemandRecorded", 2)];
    walker.expect_events(&caused).await?;
    walker.expect_indexed("CheckedOut", "carts-cart-1/2").await?;
    let placed = walker.latest("OrderPlaced");
    walker.expect_row("/orders/cart-1", &placed, "/row/customerId", &json!("ada")).await?;
    walker.expect_mail("Subject: Your order cart-1").await?;
    title("Her order is there for nobody else, who can't cancel it either");
    walker.go_on_as("eve");
    let cancel = json!({ "orderId": "cart-1" });
    expect_rejected(&walker.post("/ordering/cancel-order", &cancel).await?, "OrderNotFound")?;
    walker.expect_no_row("/orders/cart-1").await?;
    walker.go_on_as("ada");
    Ok(())
}

async fn pay_in_time(walker: &mut Walker<'_>) -> Result<()> {
    title(
        "Two kettles arrive. One is ordered: inventory reserves it, and payments asks for the money",
    );
    let kettle = json!({
        "productId": "p-4", "name": "Kettle", "description": "",
        "price": { "amount": 4900, "currency": "EUR" },
    });
    let answer = walker.invoke("add-product", &kettle).await?;
    ensure!(answer["accepted"] == true, "add-product was not accepted");
    walker.expect_events(&[("ProductAdded", 1), ("CatalogProductSynced", 1)]).await?;
    let delivery = json!({ "deliveryId": "d-1", "productId": "p-4", "units": 2 });
    let answer = walker.post("/inventory/receive-stock", &delivery).await?;
    expect_accepted(&answer, "StockReceived")?;
    walker.expect_events(&[("StockReceived", 1)]).await?;
    order_kettle(walker, "ord-8").await?;
    let requested = walker.latest("PaymentRequested");
    let (path, amount) = ("/open-payments/ord-8", json!(4900));
    walker.expect_row(path, &requested, "/row/amount/amount", &amount).await?;
    let answer = walker.post("/payments/record-payment", &json!({ "orderId": "ord-8" })).await?;
    expect_accepted(&answer, "PaymentReceived")?;
    walker.expect_events(&[("PaymentReceived", 1)]).await
}

async fn pay_too_late(walker: &mut Walker<'_>) -> Result<()> {
    title(
        "The other one is ordered, and nobody pays. Fifteen minutes pass on the stack's clock: the kettle is\n\
         free again, the order is cancelled, and Ada gets a mail",
    );
    order_kettle(walker, "ord-9").await?;
    let stack = walker.stack();
    stack.pass_time(15 * 60_000).await?;
    let caused = ["StockReleased", "OrderCancelled", "ProductDemandRevoked"];
    let caused = caused.map(|event| (event, 1));
    select! {
        caused = walker.expect_events(&caused) => caused?,
        failed = fire_deadlines(stack) => failed?,
    }
    let cancelled = walker.latest("OrderCancelled");
    walker.expect_row("/orders/ord-9", &cancelled, "/row/status", &json!("cancelled")).await?;
    walker.expect_mail("Subject: Your order ord-9 is cancelled").await?;
    title("Then the payment comes, and is sent back");
    let answer = walker.post("/payments/record-payment", &json!({ "orderId": "ord-9" })).await?;
    expect_accepted(&answer, "PaymentReceived")?;
    walker.expect_events(&[("PaymentReceived", 1), ("PaymentRefunded", 1)]).await
}

async fn forget_customer(walker: &mut Walker<'_>) -> Result<()> {
    title(
        "Ada asks to be forgotten. Her key is destroyed. Five and a half minutes later nobody can read her name or address",
    );
    let command = json!({ "subjectId": "ada", "why": "she asked for it" });
    let answer = walker.invoke("forget-subject", &command).await?;
    ensure!(answer["accepted"] == true, "forget-subject was not accepted");
    walker.expect_events(&[("SubjectForgotten", 1)]).await?;
    let stack = walker.stack();
    let deadline = Instant::now() + EVENTS_WAIT_MAX;
    let has_key = |item: &Value| item["p"]["S"] == "subject#ada" && item["keys"].is_object();
    while stack.items("KeyTable")?.iter().any(has_key) {
        ensure!(Instant::now() < deadline, "ada's key is not destroyed");
        sleep(INDEX_PAUSE).await;
    }
    stack.pass_time(FORGOTTEN_MS).await?;
    let registered = json!({ "partition": "customers#ada", "slot": 1 });
    for field in ["/row/name", "/row/email"] {
        walker.expect_row("/customers/ada", &registered, field, &Value::Null).await?;
    }
    for table in stack.tables() {
        let items = serde_json::to_string(&stack.items(&table.id)?)?;
        ensure!(!items.contains(ADDRESS), "{} has her address", table.id);
        println!("  {}: her address is nowhere in clear", table.id);
    }
    for (path, page) in PAGES.iter().zip(walker.pages(PAGES).await?) {
        ensure!(!page.contains(ADDRESS), "the console's page {path} has her address");
    }
    println!("  none of {} pages of the console has her address", PAGES.len());
    title("Nobody can rename her, and the cancellation of her order sends no mail");
    let command = json!({ "customerId": "ada", "name": "Ada" });
    let answer = walker.post("/customers/rename-customer", &command).await?;
    expect_rejected(&answer, "SubjectForgotten")?;
    let before = mailed(stack, "cart-1")?;
    let answer = walker.post("/ordering/cancel-order", &json!({ "orderId": "cart-1" })).await?;
    expect_accepted(&answer, "OrderCancelled")?;
    walker.expect_events(&[("OrderCancelled", 1), ("ProductDemandRevoked", 2)]).await?;
    let deadline = Instant::now() + EVENTS_WAIT_MAX;
    while mailed(stack, "cart-1")? == before {
        ensure!(
            Instant::now() < deadline,
            "confirm-order does not go on after a forgotten customer"
        );
        sleep(INDEX_PAUSE).await;
    }
    Ok(())
}

/// The last event of an order that confirm-order is done with.
fn mailed(stack: &RunningStack, order: &str) -> Result<Value> {
    let id = format!("LANE#orderId:{order}");
    let items = stack.items("ViewTable")?;
    let lane = items
        .iter()
        .find(|item| item["view"]["S"] == "$Reactor-confirm-order" && item["id"]["S"] == id);
    Ok(lane.context("confirm-order has not handled the order")?["done"].clone())
}

/// Fires the deadlines until it is dropped. The stack does so once a minute, and the new row may not be there yet.
async fn fire_deadlines(stack: &RunningStack) -> Result<()> {
    loop {
        stack.invoke("fire-deadlines", &json!({})).await?;
        sleep(INDEX_PAUSE).await;
    }
}

async fn order_kettle(walker: &mut Walker<'_>, id: &str) -> Result<()> {
    let answer = walker.post("/ordering/place-order", &order(id, "ada", &["p-4"])).await?;
    expect_accepted(&answer, "OrderPlaced")?;
    let caused = ["OrderPlaced", "ProductDemandRecorded", "StockReserved", "PaymentRequested"];
    walker.expect_events(&caused.map(|event| (event, 1))).await
}

fn order(id: &str, customer: &str, products: &[&str]) -> Value {
    json!({ "orderId": id, "customerId": customer, "productIds": products })
}

/// The accepted answers, and the others.
fn split(answers: &[HttpAnswer]) -> (Vec<&HttpAnswer>, Vec<&HttpAnswer>) {
    answers.iter().partition(|answer| is_accepted(answer))
}
