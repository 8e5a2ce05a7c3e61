//! The stack as a user sees it: real processes, over HTTP and by direct invoke.

use std::cell::RefCell;
use std::fs;
use std::process::Command;

use ringfence_aws::wire::Wire;
use ringfence_local::{stack::RunningStack, workspace_root};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::SHOP;
use crate::contract::{check_answers, check_python};

/// A stack of this repository with a new folder.
pub(crate) async fn start(folder: &str) -> (RunningStack, TempDir) {
    let data = crate::folder();
    (crate::start(folder, data.path(), None).await, data)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_walk_through_the_shop_succeeds() {
    let folder = crate::folder();
    let (mut stack, program) = crate::start_with_tokens(folder.path()).await;
    stack.serve_console(tools::console()).await.unwrap();
    tools::walk(&stack).await.unwrap();
    let run = |arguments: &[&str]| {
        let mut command = Command::new(&program);
        let output = command.args(arguments).envs(stack.variables()).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    // The effects of Ada's second kettle.
    let trace = run(&["trace", "walk-ada"]);
    let without_times = |line: &str| {
        let (_, line) = line.split_once(" ms ").unwrap_or_default();
        line.split(", ").next().unwrap_or_default().trim().to_owned()
    };
    let lines: Vec<_> = trace.lines().map(without_times).collect();
    let expected = [
        "inventory/reserve-stock by reserve-stock for jwt:main:ada",
        "StockReserved orderId:ord-9/2",
        "payments/request-payment by request-payment for jwt:main:ada",
        "PaymentRequested orderId:ord-9/3",
        "inventory/release-stock by release-stock for jwt:main:ada",
        "StockReleased orderId:ord-9/4",
        "ordering/cancel-order by cancel-order for jwt:main:ada",
        "OrderCancelled orderId:ord-9/5",
    ];
    assert!(lines.windows(expected.len()).any(|found| found == expected), "{trace}");
    let token =
        |scopes: &[&str]| run(&[&["token", "--sub", "eve"], scopes].concat()).trim().to_owned();
    let token_of_orders = token(&["--scope", "ordering/write", "--scope", "ordering/read"]);
    check_python(stack.api(), &token_of_orders, &token(&[]));

    // The walk has moved the stack's clock, and this command moves it too. No event is ahead of it.
    assert_eq!(run(&["due", "--in", "10m"]), "0 took effect, 0 left\n");
    let verified = run(&["verify"]);
    assert!(!verified.contains("ahead"), "{verified}");
}

#[tokio::test]
async fn a_process_of_no_function_ends_and_names_it() {
    let program = crate::BUILT.get_or_init(crate::build).await["ringfence-local"].clone();
    let output = Command::new(program).env("RINGFENCE_FUNCTION", "place-ordre").output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    let expected = "error: RINGFENCE_FUNCTION=place-ordre: the stack has no such function\n";
    assert_eq!((output.status.code(), &*said), (Some(1), expected));
}

/// The event table's name.
fn event_table(stack: &RunningStack) -> &str {
    &stack.tables().iter().find(|table| table.id == "EventTable").unwrap().name
}

pub(crate) struct Api {
    pub(crate) stack: RunningStack,
    pub(crate) client: reqwest::Client,
    /// All answers to commands, for the comparison with the OpenAPI document.
    answers: RefCell<Vec<Value>>,
}

impl Api {
    pub(crate) fn of(stack: RunningStack) -> Self {
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { stack, client, answers: RefCell::default() }
    }

    /// Status, content type and body of a POST.
    async fn post(&self, path: &str, body: impl Into<reqwest::Body>) -> (u16, String, Value) {
        self.send(path, self.request(path).body(body)).await
    }

    /// Status and body of a POST with an idempotency key.
    async fn post_once(&self, path: &str, key: &str, command: &Value) -> (u16, Value) {
        let request = self.request(path).header("idempotency-key", key).body(command.to_string());
        let (status, _, body) = self.send(path, request).await;
        (status, body)
    }

    /// Status and body of a command of projects.
    pub(crate) async fn project(&self, slice: &str, command: &Value) -> (u16, Value) {
        let (status, _, body) = self.post(&format!("/projects/{slice}"), command.to_string()).await;
        (status, body)
    }

    fn request(&self, path: &str) -> reqwest::RequestBuilder {
        self.client.post(format!("{}{path}", self.stack.api()))
    }

    async fn send(&self, path: &str, request: reqwest::RequestBuilder) -> (u16, String, Value) {
        let answer = request.send().await.unwrap();
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        let content_type = headers.get("content-type").map(|value| value.to_str().unwrap());
        let content_type = content_type.unwrap_or_default().to_owned();
        let body = answer.json().await.unwrap_or_default();
        self.answers.borrow_mut().push(json!(["POST", path, status, content_type, body]));
        (status, content_type, body)
    }

    /// Expects the command to be accepted with these events, and the same answer to a repeat.
    async fn accepts_once(&self, path: &str, key: &str, command: Value, events: Value) {
        let answer = json!({ "accepted": true, "events": events });
        assert_eq!(self.post_once(path, key, &command).await, (200, answer.clone()), "{path}");
        let mut repeated = answer;
        repeated["repeated"] = json!(true);
        assert_eq!(self.post_once(path, key, &command).await, (200, repeated), "{path}");
    }

    /// The number of items in the event table, of any kind.
    async fn items(&self) -> i32 {
        let client = Wire::default().client(self.stack.dynamo());
        client.scan().table_name(event_table(&self.stack)).send().await.unwrap().count()
    }

    /// Expects a problem whose detail contains each of `names`.
    async fn refuses(&self, path: &str, body: String, status: u16, names: &[&str]) {
        let shown: String = body.chars().take(120).collect();
        let (found, content_type, problem) = self.post(path, body).await;
        assert_eq!(found, status, "{path} {shown}: {problem}");
        assert_eq!(content_type, "application/problem+json", "{path} {shown}");
        let detail = problem["detail"].as_str().unwrap();
        for name in names {
            assert!(detail.contains(name), "{path} {shown}: {name} is not named: {detail}");
        }
    }
}

fn order(order: &str, products: &[String]) -> Value {
    json!({ "orderId": order, "customerId": "c-1", "productIds": products })
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_input_is_refused_and_nothing_is_written() {
    let (stack, _folder) = start(SHOP).await;
    let api = Api::of(stack);
    let place = "/ordering/place-order";
    let good = || order("o-1", &["p-1".to_owned()]);
    let with = |field: &str, value: Value| {
        let mut order = good();
        order[field] = value;
        order.to_string()
    };

    api.refuses(place, String::new(), 400, &["body"]).await;
    api.refuses(place, "{\"orderId\":".to_owned(), 400, &["body", "EOF while parsing"]).await;
    api.refuses(place, "{}".to_owned(), 400, &["orderId"]).await;
    api.refuses(place, with("colour", json!("red")), 400, &["colour"]).await;
    api.refuses(place, with("orderId", json!(7)), 400, &["orderId"]).await;
    api.refuses(place, with("productIds", json!("p-1")), 400, &["productIds"]).await;
    for hostile in ["a#b", "a:b", "a/b", "a\0b", "🦀", "", &"x".repeat(3 * 1024)] {
        let limits = ["orderId", "1 to 64 characters of A-Z a-z 0-9 . _ -"];
        api.refuses(place, with("orderId", json!(hostile)), 400, &limits).await;
        let demand = json!({ "type": "RecordDemand", "productId": hostile, "orderId": "o-1" });
        let limits = ["productId", "1 to 64 characters of A-Z a-z 0-9 . _ -"];
        api.refuses("/catalog/record-product-demand", demand.to_string(), 400, &limits).await;
    }
    let price = json!({ "amount": -1, "currency": "EUR" });
    let sync = json!({ "productId": "p-1", "name": "Lamp", "price": price });
    api.refuses("/ordering/sync-catalog-product", sync.to_string(), 400, &["price.amount"]).await;

    let many: Vec<String> = (0..101).map(|n| format!("p-{n}")).collect();
    let limits = ["101 values of productId", "limit 100"];
    let many = order("o-1", &many).to_string();
    api.refuses(place, many, 413, &limits).await;
    let product = json!({
        "productId": "p-1", "name": "Lamp", "description": "x".repeat(400 * 1024),
        "price": { "amount": 1, "currency": "EUR" },
    });
    api.refuses("/catalog/add-product", product.to_string(), 413, &["body", "358400"]).await;
    for (path, field, limit) in [
        ("/catalog/add-product", "name", "200"),
        ("/catalog/add-product", "description", "4000"),
        ("/catalog/change-product-name", "name", "200"),
        ("/customers/register-customer", "name", "200"),
        ("/customers/rename-customer", "name", "200"),
        ("/ordering/sync-catalog-product", "name", "200"),
        ("/signups/initiate-sign-up", "name", "200"),
    ] {
        let mut command = json!({
            "productId": "p-1", "name": "Lamp", "description": "",
            "price": { "amount": 1, "currency": "EUR" },
            "customerId": "c-1", "email": "a@b.c", "emailId": "e-1", "otp": "1",
        });
        command[field] = "x".repeat(5_000).into();
        let limit = format!("{field}: must have at most {limit} bytes, has 5000");
        let fields: &[&str] = match path {
            "/catalog/add-product" => &["productId", "name", "description", "price"],
            "/catalog/change-product-name" => &["productId", "name"],
            "/customers/register-customer" => &["customerId", "name", "email"],
            "/customers/rename-customer" => &["customerId", "name"],
            "/ordering/sync-catalog-product" => &["productId", "name", "price"],
            _ => &["emailId", "otp", "name"],
        };
        command.as_object_mut().unwrap().retain(|name, _| fields.contains(&name.as_str()));
        api.refuses(path, command.to_string(), 400, &[&limit]).await;
    }

    check_answers(SHOP, api.answers.take()).await;
    let (status, _, body) = api.post("/ordering/no-such-slice", good().to_string()).await;
    assert_eq!((status, body), (404, json!({ "message": "Not Found" })));

    let define = r#"{"courseId":"c","capacity":1}"#;
    for port in [api.stack.api(), api.stack.services(), api.stack.dynamo()] {
        for (header, value, expected) in
            [("origin", "http://evil.example", 403), ("host", "evil.example:3000", 421)]
        {
            let request = api.client.post(format!("{port}/courses/define-course"));
            let answer = request.header(header, value).body(define).send().await.unwrap();
            assert_eq!(answer.status(), expected, "a website at {port}");
        }
    }

    assert_eq!(api.items().await, 0, "something was written");
    let (status, ..) = api.post("/courses/define-course", define).await;
    assert_eq!((status, api.items().await), (200, 1), "an event");
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_on_streams_take_effect_once_and_rejections_have_codes() {
    let (stack, _folder) = start(SHOP).await;
    let api = Api::of(stack);
    let event = |kind: &str, partition: &str, slot: u64| json!({ "type": kind, "partition": partition, "slot": slot });

    for (customer, email) in [("ada", "ada@example.com"), ("bob", "bob@example.com")] {
        let command = json!({ "customerId": customer, "name": customer, "email": email });
        let registered = event("CustomerRegistered", &format!("customers#{customer}"), 1);
        let path = "/customers/register-customer";
        api.accepts_once(path, customer, command, json!([registered])).await;
    }
    let transfer = |points: u64| json!({ "from": "ada", "to": "bob", "points": points });
    let both = json!([
        event("PointsSent", "customers#ada", 2),
        event("PointsReceived", "customers#bob", 2),
    ]);
    let path = "/customers/transfer-points";
    api.accepts_once(path, "t-1", transfer(60), both).await;
    let (status, rejection) = api.post_once(path, "t-2", &transfer(41)).await;
    assert_eq!((status, &rejection["code"]), (422, &json!("TooFewPoints")), "{rejection}");
    api.refuses(path, transfer(1).to_string().replace("ada", "a#b"), 400, &["from"]).await;

    let (add, check_out) = ("/carts/add-to-cart", "/carts/check-out");
    let order = json!({ "cartId": "cart-1", "customerId": "ada" });
    let (status, rejection) = api.post_once(check_out, "c-1", &order).await;
    assert_eq!((status, &rejection["code"]), (422, &json!("CartEmpty")), "{rejection}");
    let lamp = json!({ "cartId": "cart-1", "productId": "lamp", "quantity": 2 });
    let added = |n| json!([event("ItemAdded", "carts-cart-1", n)]);
    api.accepts_once(add, "a-1", lamp.clone(), added(0)).await;
    api.accepts_once(add, "a-2", lamp.clone(), added(1)).await;
    // A command that appended nothing is decided again.
    let checked_out = json!([event("CheckedOut", "carts-cart-1", 2)]);
    api.accepts_once(check_out, "c-1", order, checked_out).await;
    let (status, rejection) = api.post_once(add, "a-3", &lamp).await;
    assert_eq!((status, &rejection["code"]), (422, &json!("CartCheckedOut")), "{rejection}");
    api.refuses(add, lamp.to_string().replace("lamp", "a/b"), 400, &["productId"]).await;

    // A caller finds a queued command again, also if a path reserves characters of its key.
    let key = "a?b#c%25&d";
    let order = json!({ "cartId": "cart-2", "customerId": "ada" }).to_string();
    let request = api.request("/commands/carts/check-out").header("idempotency-key", key);
    let given = request.body(order).send().await.unwrap();
    let location = given.headers()["location"].to_str().unwrap();
    let asked = api.client.get(format!("{}{location}", api.stack.api())).send().await.unwrap();
    let by_location: Value = asked.json().await.unwrap();
    let mut program = Command::new(&crate::BUILT.get().unwrap()[crate::COMMAND_LINE]);
    let said = program.args(["answer", key]).envs(api.stack.variables()).output().unwrap();
    let by_program: Value = serde_json::from_slice(&said.stdout).unwrap();
    assert_eq!((&by_location["commandId"], &by_program["commandId"]), (&json!(key), &json!(key)));

    assert_eq!(api.stack.items("AggregateTable").unwrap().len(), 4, "events and nothing else");
    let documents = api.stack.items("DocumentTable").unwrap();
    let tip = documents.iter().find(|item| item["a"].is_object()).unwrap();
    assert_eq!(tip["n"]["N"], "3", "{tip}");
    check_answers(SHOP, api.answers.take()).await;
}

/// Sends every sample of the stack in this folder. Each gets an answer.
pub(crate) async fn answers_every_sample(stack_folder: &str, stack: &RunningStack) {
    let mut samples = 0;
    let mut over_http = Vec::new();
    let mut functions: Vec<_> = fs::read_dir(workspace_root().join(stack_folder).join("events"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    functions.sort();
    for folder in functions {
        let function = folder.file_name().unwrap().to_str().unwrap();
        for sample in fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            samples += 1;
            if function.ends_with("forward-spans") {
                // The stack names no collector, so it does not have this function.
                continue;
            }
            let payload: Value = serde_json::from_slice(&fs::read(&sample).unwrap()).unwrap();
            let shown = sample.display();
            let answer = stack.invoke(function, &payload).await;
            let answer = answer.unwrap_or_else(|error| panic!("{shown}: {error}"));
            let understood = match function.strip_prefix("projects-").unwrap_or(function) {
                "fire-deadlines" => answer["fired"].is_u64(),
                "export-projects" => answer["lines"].is_u64(),
                "publish-events" | "index-events" => answer == json!({ "batchItemFailures": [] }),
                "project-views" | "react-in-order" | "confirm-order" | "notify-partner"
                | "destroy-keys" => answer.is_null(),
                "query-views" | "ready-work" => is_reading(&answer),
                "run-commands" => is_of_queue(&answer),
                _ => is_answer(&answer),
            };
            assert!(understood, "{shown}: {answer}");
            if let Some(body) = answer["body"].as_str() {
                let (request, body): (_, Value) =
                    (&payload["requestContext"]["http"], serde_json::from_str(body).unwrap());
                let (status, content_type) =
                    (&answer["statusCode"], &answer["headers"]["content-type"]);
                let answer =
                    json!([request["method"], request["path"], status, content_type, body]);
                over_http.push(answer);
            }
        }
    }
    check_answers(stack_folder, over_http).await;
    assert!(samples >= 2 * 12 + 3, "{samples}");
}

/// A batch without failures, or the answer of a command. One sample asks for the command that another one gives.
fn is_of_queue(answer: &Value) -> bool {
    if let Some(body) = answer["body"].as_str() {
        return is_of_queue(&serde_json::from_str(body).unwrap());
    }
    let found = answer["commandId"] == "sample" && answer["state"].is_string();
    found
        || *answer == json!({ "batchItemFailures": [] })
        || answer["type"] == "urn:ringfence:problem:command-not-found"
}

/// A row, a list, or a row that is not found: the other samples decide whether the row exists.
fn is_reading(answer: &Value) -> bool {
    if let Some(body) = answer["body"].as_str() {
        return is_reading(&serde_json::from_str(body).unwrap());
    }
    let found = answer["id"].is_string() || answer["items"].is_array();
    found || answer["type"] == "urn:ringfence:problem:row-not-found"
}

/// Accepted, or rejected by the slice: the other samples decide whether the sample's product exists.
fn is_answer(answer: &Value) -> bool {
    if let Some(answers) = answer["answers"].as_array() {
        return !answers.is_empty() && answers.iter().all(is_answer);
    }
    if let Some(body) = answer["body"].as_str() {
        return is_answer(&serde_json::from_str(body).unwrap());
    }
    answer["accepted"] == true || answer["type"] == "urn:ringfence:problem:rejected"
}
