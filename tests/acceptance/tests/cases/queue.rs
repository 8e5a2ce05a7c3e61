//! Commands by the queue, on the tables and the queues of the template: their order, their answers, and what becomes of
//! them when something fails.

mod machine;

use std::sync::Arc;
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use ringfence_function::{Call, Issuers, MESSAGE_BYTES_MAX, Service, message};
use ringfence_local::queue_poller::{batch, failed};
use ringfence_local::queues::Queues;
use ringfence_local::template::Template;
use ringfence_queue::{
    COMMAND_BYTES_MAX, CommandAnswers, CommandState, QueuedSlices, RunCommands, TRIES_MAX,
};
use ringfence_testing::Dynamo;
use serde_json::{Value, json};
use stack::Shop;

use machine::{Busy, COMMANDS, LETTERS, Local};

const TABLES: [&str; 4] = ["EventTable", "AggregateTable", "DocumentTable", "ViewTable"];
const PLACE: &str = "ordering/place-order";
const CANCEL: &str = "ordering/cancel-order";
const SYNC: &str = "ordering/sync-catalog-product";

struct World {
    dynamo: Dynamo,
    busy: Arc<Busy>,
    queues: Queues,
    function: RunCommands,
}

impl World {
    fn start() -> Self {
        let template = Template::of_stack().unwrap();
        let dynamo = Dynamo::with(&template, &TABLES);
        let busy = Arc::<Busy>::default();
        dynamo.wire.direct(busy.clone());
        let queues = Queues::of_template(&template.model("").unwrap().queues);
        let logs = ["EVENT_TABLE", "AGGREGATE_TABLE", "DOCUMENT_TABLE"];
        let logs: Vec<_> = logs.into_iter().zip(TABLES.map(str::to_owned)).collect();
        let function = RunCommands::on(
            &QueuedSlices::of::<Shop>(),
            &dynamo.client,
            &logs,
            "ViewTable",
            Box::new(Local(queues.clone())),
            Issuers::default(),
            dynamo.clock.clone(),
        );
        Self { dynamo, busy, queues, function: function.unwrap() }
    }

    async fn call(&self, payload: Value) -> Value {
        let time = Duration::from_secs(25);
        let (request_id, function) = ("r-1".to_owned(), "run-commands".to_owned());
        self.function.answer(Call { payload, request_id, function, time }).await.unwrap()
    }

    /// Status and body of a request of a caller.
    async fn ask(
        &self,
        method: &str,
        parameters: Value,
        caller: &Caller,
        body: &str,
    ) -> (u64, Value) {
        let answer = self
            .call(json!({
                "headers": caller.headers,
                "pathParameters": parameters,
                "requestContext": { "http": { "method": method }, "authorizer": caller.authorizer },
                "body": body,
                "isBase64Encoded": false,
            }))
            .await;
        let body = serde_json::from_str(answer["body"].as_str().unwrap()).unwrap();
        (answer["statusCode"].as_u64().unwrap(), body)
    }

    async fn give_as(&self, caller: &Caller, slice: &str, command: &Value) -> (u64, Value) {
        let (context, slice) = slice.split_once('/').unwrap();
        let parameters = json!({ "context": context, "slice": slice });
        self.ask("POST", parameters, caller, &command.to_string()).await
    }

    /// Puts a command into the queue under this id.
    async fn give(&self, slice: &str, id: &str, command: &Value) {
        let (status, answer) = self.give_as(&caller(id), slice, command).await;
        assert_eq!((status, &answer["state"]), (202, &json!("pending")), "{answer}");
    }

    /// What became of a command.
    async fn answer(&self, id: &str) -> Value {
        let (status, answer) = self.ask("GET", json!({ "id": id }), &Caller::default(), "").await;
        assert_eq!(status, 200, "{answer}");
        answer
    }

    /// The states of commands.
    async fn states(&self, ids: &[&str]) -> Vec<String> {
        let mut states = Vec::new();
        for id in ids {
            states.push(self.answer(id).await["state"].as_str().unwrap().to_owned());
        }
        states
    }

    /// Delivers a batch, as Lambda does. Those that succeeded stay in the queue if the process crashes before it deletes
    /// them. Returns how many messages it had.
    async fn deliver(&self, crashes: bool) -> usize {
        let received = self.queues.receive(COMMANDS, 10, None).unwrap();
        let failed = failed(&self.call(batch(COMMANDS, &received)).await);
        for message in received.iter().filter(|it| !failed.contains(&it.message.message_id)) {
            if !crashes {
                self.queues.delete(COMMANDS, &message.receipt_handle).unwrap();
            }
        }
        received.len()
    }

    /// How many requests there were to the tables of logs.
    fn requests_to_logs(&self) -> usize {
        let taken = self.dynamo.wire.take();
        taken.iter().filter(|it| !it.request.to_string().contains("ViewTable")).count()
    }

    fn letters(&self) -> Vec<Value> {
        let letters = &self.queues.messages()[LETTERS];
        letters.iter().map(|letter| serde_json::from_str(&letter.body).unwrap()).collect()
    }
}

#[derive(Default)]
struct Caller {
    headers: Value,
    authorizer: Value,
}

/// A caller whom no authorizer has looked at, with this key.
fn caller(key: &str) -> Caller {
    Caller { headers: json!({ "idempotency-key": key }), authorizer: Value::Null }
}

/// A caller with a token.
fn with_token(key: &str, subject: &str, scope: &str) -> Caller {
    let claims = json!({ "iss": "https://id.example.com/", "sub": subject, "scope": scope });
    Caller { authorizer: json!({ "jwt": { "claims": claims } }), ..caller(key) }
}

fn sync(product: &str) -> Value {
    let price = json!({ "amount": 100, "currency": "EUR" });
    json!({ "productId": product, "name": "Lamp", "price": price })
}

fn place(order: &str, product: &str) -> Value {
    json!({ "orderId": order, "customerId": "c-1", "productIds": [product] })
}

fn cancel(order: &str) -> Value {
    json!({ "orderId": order })
}

#[tokio::test(start_paused = true)]
async fn commands_of_a_group_are_carried_out_in_order_at_their_cost() {
    let world = World::start();
    world.give(SYNC, "s", &sync("lamp")).await;
    world.dynamo.wire.forget();
    let before = world.function.meter().snapshot();
    world.give(PLACE, "p", &place("o-1", "lamp")).await;
    // What is taken costs one write of the answer's item.
    let taken = world.function.meter().snapshot().since(&before);
    assert_eq!((taken.reads, taken.writes, taken.total().write), (0, 1, 1.0));
    world.give(CANCEL, "c", &cancel("o-1")).await;
    world.give(CANCEL, "unknown", &cancel("o-2")).await;
    // Within five minutes SQS drops it, and afterwards its answer is known.
    world.give(CANCEL, "c", &cancel("o-1")).await;
    assert_eq!(world.queues.messages()[COMMANDS].len(), 4);
    let before = world.function.meter().snapshot();
    assert_eq!(world.deliver(false).await, 4);
    // What is carried out costs one strong read and one write of the item, besides what the slice costs.
    let run = world.function.meter().snapshot().since(&before);
    assert_eq!((run.reads, run.writes), (4, 4));
    assert_eq!((run.total().read, run.total().write), (4.0, 4.0));
    let answer = world.answer("p").await;
    let events = json!([{ "type": "OrderPlaced", "partition": "orderId:o-1", "slot": 1 }]);
    assert_eq!(answer["answer"], json!({ "accepted": true, "events": events }));
    assert_eq!((&answer["state"], &answer["slice"]), (&json!("accepted"), &json!(PLACE)));
    assert_eq!(world.answer("c").await["answer"]["events"][0]["slot"], 2);
    let rejected = world.answer("unknown").await;
    assert_eq!(
        (&rejected["state"], &rejected["answer"]["code"]),
        (&json!("rejected"), &json!("OrderNotFound"))
    );
    assert_eq!(rejected["answer"]["type"], "urn:ringfence:problem:rejected");
    assert_eq!(world.deliver(false).await, 0);
    // When SQS no longer knows its id, a repeat is answered at once, and nothing is in the queue.
    tokio::time::advance(Duration::from_secs(600)).await;
    let (status, repeat) = world.give_as(&caller("p"), PLACE, &place("o-1", "lamp")).await;
    assert_eq!((status, &repeat), (200, &answer));
    assert!(world.queues.messages()[COMMANDS].is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_command_without_an_answer_holds_back_its_group_and_no_other_and_is_tried_again() {
    let world = World::start();
    world.give(SYNC, "s", &sync("lamp")).await;
    world.deliver(false).await;
    for (slice, id, command) in [
        (PLACE, "p1", place("o-1", "lamp")),
        (CANCEL, "c1", cancel("o-1")),
        (PLACE, "p2", place("o-2", "lamp")),
    ] {
        world.give(slice, id, &command).await;
    }
    world.busy.0.lock().unwrap().push("orderId:o-1");
    assert_eq!(world.deliver(false).await, 3);
    assert_eq!(world.states(&["p1", "c1", "p2"]).await, ["pending", "pending", "accepted"]);
    let waits = world.answer("p1").await;
    assert_eq!((&waits["tries"], &waits["problem"]["status"]), (&json!(1), &json!(503)));
    assert_eq!(world.deliver(false).await, 0, "the group waits");
    // Of what was tried, a repeat adds no message, also when SQS has forgotten its id.
    tokio::time::advance(Duration::from_secs(600)).await;
    world.give(PLACE, "p1", &place("o-1", "lamp")).await;
    world.busy.0.lock().unwrap().clear();
    assert_eq!(world.deliver(false).await, 2);
    assert_eq!(world.states(&["p1", "c1"]).await, ["accepted", "accepted"]);
    assert_eq!(world.answer("c1").await["answer"]["events"][0]["slot"], 2);
}

#[tokio::test(start_paused = true)]
async fn a_command_without_an_answer_becomes_a_letter_and_its_group_goes_on() {
    let world = World::start();
    world.give(SYNC, "s", &sync("lamp")).await;
    world.deliver(false).await;
    world.give(PLACE, "p1", &place("o-1", "lamp")).await;
    world.give(CANCEL, "c1", &cancel("o-1")).await;
    world.busy.0.lock().unwrap().push("Query");
    for n in 1..=TRIES_MAX {
        assert_eq!(world.states(&["p1"]).await, ["pending"], "{n}");
        assert_eq!(world.deliver(false).await, 2, "{n}");
        tokio::time::advance(Duration::from_secs(600)).await;
    }
    assert_eq!(world.states(&["p1", "c1"]).await, ["failed", "pending"]);
    let [letter] = &world.letters()[..] else { panic!("{:?}", world.letters()) };
    assert_eq!((&letter["tries"], &letter["queued"]["slice"]), (&json!(TRIES_MAX), &json!(PLACE)));
    assert!(letter["cause"].as_str().unwrap().starts_with("throttled: "), "{letter}");
    assert!(letter["firstFailed"].is_string());
    world.busy.0.lock().unwrap().clear();
    while world.deliver(false).await > 0 {}
    assert_eq!(world.answer("c1").await["answer"]["code"], "OrderNotFound");

    // A redrive puts it into the queue again. It has all its tries again.
    let again = letter["queued"].clone();
    Local(world.queues.clone()).put(COMMANDS, again, "orderId:o-1", "redrive");
    world.busy.0.lock().unwrap().push("Query");
    world.deliver(false).await;
    assert_eq!(world.letters().len(), 1, "it is not given up at once");
    assert_eq!(world.answer("p1").await["tries"], 1);
    world.busy.0.lock().unwrap().clear();
    tokio::time::advance(Duration::from_secs(600)).await;
    world.deliver(false).await;
    assert_eq!(world.states(&["p1"]).await, ["accepted"]);

    // So does a repeat of its request after it was given up. Its id is still its own.
    let answers = CommandAnswers::new(world.dynamo.client.clone(), "ViewTable");
    let mut given_up = answers.find("p1").await.unwrap().unwrap();
    (given_up.state, given_up.answer) = (CommandState::Failed, None);
    given_up.tries = TRIES_MAX;
    let keep = async || answers.keep(&given_up, world.dynamo.clock.now_ms()).await.unwrap();
    keep().await;
    assert_eq!(world.states(&["p1"]).await, ["accepted"], "a late write takes no answer away");
    let item = world.dynamo.client.delete_item().table_name("ViewTable");
    let item = item.key("view", AttributeValue::S("$Command-p1".to_owned()));
    item.key("id", AttributeValue::S("ANSWER".to_owned())).send().await.unwrap();
    keep().await;
    let (status, _) = world.give_as(&caller("p1"), PLACE, &place("o-2", "lamp")).await;
    assert_eq!((status, world.queues.messages()[COMMANDS].len()), (422, 0));
    world.give(PLACE, "p1", &place("o-1", "lamp")).await;
    assert_eq!(world.answer("p1").await.get("tries"), None);
    world.deliver(false).await;
    assert_eq!(world.states(&["p1"]).await, ["accepted"]);
}

#[tokio::test(start_paused = true)]
async fn whatever_breaks_off_a_command_takes_effect_once_and_its_answer_stays() {
    let world = World::start();
    world.give(SYNC, "s", &sync("lamp")).await;
    world.deliver(false).await;
    world.give(PLACE, "p", &place("o-1", "lamp")).await;
    world.give(PLACE, "no", &place("o-2", "desk")).await;
    // It takes effect, and its answer is not kept.
    world.busy.0.lock().unwrap().push("\"answer\":{\"S\"");
    assert_eq!(world.deliver(false).await, 2);
    assert_eq!(world.states(&["p", "no"]).await, ["pending", "pending"]);
    // Nothing notes how often that was, so the pauses go by how often the messages were received.
    for (seconds, messages) in [(2, 2), (10, 2), (10, 0)] {
        tokio::time::advance(Duration::from_secs(seconds)).await;
        assert_eq!(world.deliver(false).await, messages);
    }
    world.busy.0.lock().unwrap().clear();
    tokio::time::advance(Duration::from_secs(600)).await;
    // Its answer is kept, and the message is not deleted.
    assert_eq!(world.deliver(true).await, 2);
    assert_eq!(world.states(&["p", "no"]).await, ["accepted", "rejected"]);
    let accepted = world.answer("p").await;
    assert_eq!(accepted["answer"]["repeated"], true);
    assert_eq!(accepted["answer"]["events"][0]["slot"], 1);
    // By now the order of the desk would be accepted. But its caller may know that it was rejected.
    world.give(SYNC, "s2", &sync("desk")).await;
    world.deliver(false).await;
    tokio::time::advance(Duration::from_secs(600)).await;
    world.requests_to_logs();
    assert_eq!(world.deliver(false).await, 2);
    assert_eq!(world.requests_to_logs(), 0);
    assert_eq!(world.answer("no").await["answer"]["code"], "ProductsNotAvailable");
    assert_eq!(world.answer("p").await, accepted);
    assert!(world.queues.messages()[COMMANDS].is_empty() && world.letters().is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_is_said_before_the_queue_and_only_the_caller_sees_the_answer() {
    let world = World::start();
    let ada = with_token("k", "ada", "ordering/write");
    let (status, given) = world.give_as(&ada, CANCEL, &cancel("o-1")).await;
    assert_eq!((status, &given["commandId"]), (202, &json!("k")));
    let mut large = place("o-1", "");
    large["productIds"] = (0..30_000).map(|n| format!("p-{n:05}")).collect();
    let refused = [
        (&ada, CANCEL, cancel("o-2"), 422, "key-reused"),
        (&ada, PLACE, place("o-1", "lamp"), 422, "key-reused"),
        (&with_token("k", "eve", "ordering/write"), CANCEL, cancel("o-1"), 422, "key-reused"),
        (&with_token("l", "eve", "ordering/read"), CANCEL, cancel("o-1"), 403, "scope-missing"),
        (&caller("l"), CANCEL, json!({}), 400, "malformed"),
        (&caller("l/m"), CANCEL, cancel("o-1"), 400, "malformed"),
        (&caller("l"), "ordering/no-slice", cancel("o-1"), 404, "slice-not-found"),
        (&caller("l"), PLACE, large, 413, "too-large"),
    ];
    for (caller, slice, command, expected, kind) in refused {
        let (status, problem) = world.give_as(caller, slice, &command).await;
        assert_eq!(status, expected, "{problem}");
        assert_eq!(problem["type"], format!("urn:ringfence:problem:{kind}"));
    }
    assert_eq!(world.queues.messages()[COMMANDS].len(), 1);
    world.deliver(false).await;
    let id = || json!({ "id": "k" });
    for (caller, expected) in [
        (&ada, 200),
        // An API without an authorizer lets everybody see everything.
        (&Caller::default(), 200),
        (&with_token("", "eve", "ordering/write"), 404),
        (&with_token("", "ada", "ordering/read"), 403),
    ] {
        let (status, answer) = world.ask("GET", id(), caller, "").await;
        assert_eq!(status, expected, "{answer}");
    }
    world.busy.0.lock().unwrap().push("$Command-");
    let (status, problem) = world.ask("GET", id(), &ada, "").await;
    let detail = "what became of the command is not known now; ask again";
    assert_eq!((status, &problem["detail"]), (503, &json!(detail)));
    world.busy.0.lock().unwrap().clear();
    for unknown in ["other".to_owned(), "k".repeat(3_000)] {
        let (status, problem) = world.ask("GET", json!({ "id": unknown }), &ada, "").await;
        assert_eq!((status, &problem["title"]), (404, &json!("There is no such command")));
    }
    // The events say who gave it.
    let log = world.dynamo.client.scan().table_name("EventTable").send().await.unwrap();
    assert_eq!(log.count(), 0, "the order does not exist");

    // What is no command of this stack becomes a letter at once.
    Local(world.queues.clone()).put(COMMANDS, json!({ "x": 1 }), "g", "1");
    world.deliver(false).await;
    let [letter] = &world.letters()[..] else { panic!("{:?}", world.letters()) };
    assert!(letter["cause"].as_str().unwrap().contains("is not a command of this stack"));
    assert_eq!(letter["body"], "{\"x\":1}");

    // The letter about the largest command fits into a message. Its slice is not there, and the cause names it.
    let slice = format!("a/{}", "\u{ffff}\"".repeat(1_000));
    let queued =
        |text: &str| json!({ "slice": slice, "commandId": "i", "group": "g", "command": text });
    let left = COMMAND_BYTES_MAX - message(&queued("")).len();
    Local(world.queues.clone()).put(COMMANDS, queued(&"x".repeat(left)), "g", "i");
    for _ in 0..TRIES_MAX {
        world.deliver(false).await;
        tokio::time::advance(Duration::from_secs(600)).await;
    }
    let [_, letter] = &world.letters()[..] else { panic!("{:?}", world.letters().len()) };
    let bytes = message(letter).len();
    assert!((COMMAND_BYTES_MAX..=MESSAGE_BYTES_MAX).contains(&bytes), "{bytes}");
}
