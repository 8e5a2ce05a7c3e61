//! The function on tables and queues of the template, and its callers.

use std::sync::Arc;
use std::time::Duration;

use ringfence_lambda::{Call, Issuers, Service};
use ringfence_local::queue_poller::{batch, failed};
use ringfence_local::queues::Queues;
use ringfence_local::template::Template;
use ringfence_services::queue::{QueuedSlices, RunCommands};
use ringfence_testing::Dynamo;
use serde_json::{Value, json};
use stack::Shop;
use tokio::time::timeout;

use super::machine::{Busy, COMMANDS, DEAD_LETTERS, Local};

pub(super) const TABLES: [&str; 4] = ["EventTable", "AggregateTable", "DocumentTable", "ViewTable"];
pub(super) const PLACE: &str = "ordering/place-order";
pub(super) const CANCEL: &str = "ordering/cancel-order";
/// Callers do not give its command.
pub(super) const LAPSE: &str = "signups/lapse-sign-up";
/// The time for an invocation.
pub(super) const TIME_MS: u64 = 25_000;
pub(super) const HOUR: u64 = 3_600;
pub(super) const SYNC: &str = "ordering/sync-catalog-product";

pub(super) struct World {
    pub(super) dynamo: Dynamo,
    pub(super) busy: Arc<Busy>,
    pub(super) queues: Queues,
    pub(super) function: RunCommands,
}

impl World {
    pub(super) fn start() -> Self {
        let template = Template::of_stack().unwrap();
        let dynamo = Dynamo::with(&template, &TABLES);
        let busy = Arc::new(Busy::of(dynamo.clock.clone()));
        dynamo.wire.direct(busy.clone());
        let queues = Queues::of_template(&template.model("").unwrap().queues);
        let queue = Box::new(Local(queues.clone()));
        let (slices, issuers) = (QueuedSlices::of::<Shop>(), Issuers::default());
        let function = RunCommands::on(&slices, &dynamo.logs(), "ViewTable", queue, issuers);
        Self { dynamo, busy, queues, function: function.unwrap() }
    }

    /// A world with a product.
    pub(super) async fn with_lamp() -> Self {
        let world = Self::start();
        world.give(SYNC, "s", &sync("lamp")).await;
        world.deliver(false).await;
        world
    }

    pub(super) async fn call(&self, payload: Value) -> Value {
        let time = Duration::from_millis(TIME_MS);
        let (request_id, function) = ("r-1".to_owned(), "run-commands".to_owned());
        self.function.answer(Call { payload, request_id, function, time }).await.unwrap()
    }

    /// The answer to a request of a caller.
    pub(super) async fn request(
        &self,
        method: &str,
        parameters: Value,
        caller: &Caller,
        body: &str,
    ) -> Value {
        self.call(json!({
            "headers": caller.headers,
            "pathParameters": parameters,
            "requestContext": { "http": { "method": method }, "authorizer": caller.authorizer },
            "body": body,
            "isBase64Encoded": false,
        }))
        .await
    }

    /// Status and body of a request of a caller.
    pub(super) async fn ask(
        &self,
        method: &str,
        parameters: Value,
        caller: &Caller,
        body: &str,
    ) -> (u64, Value) {
        let answer = self.request(method, parameters, caller, body).await;
        let body = serde_json::from_str(answer["body"].as_str().unwrap()).unwrap();
        (answer["statusCode"].as_u64().unwrap(), body)
    }

    pub(super) async fn give_as(
        &self,
        caller: &Caller,
        slice: &str,
        command: &Value,
    ) -> (u64, Value) {
        let (context, slice) = slice.split_once('/').unwrap();
        let parameters = json!({ "context": context, "slice": slice });
        self.ask("POST", parameters, caller, &command.to_string()).await
    }

    /// Puts a command into the queue under this id.
    pub(super) async fn give(&self, slice: &str, id: &str, command: &Value) {
        let (status, answer) = self.give_as(&caller(id), slice, command).await;
        assert_eq!((status, &answer["state"]), (202, &json!("pending")), "{answer}");
    }

    /// Puts a command into the queue as its owner does, without a request.
    pub(super) fn put_own(&self, slice: &str, id: &str, command: &Value) {
        let queued = json!({ "slice": slice, "commandId": id, "group": id, "command": command });
        Local(self.queues.clone()).put(COMMANDS, queued, id, id);
    }

    /// The answer of a command.
    pub(super) async fn answer(&self, id: &str) -> Value {
        let (status, answer) = self.ask("GET", json!({ "id": id }), &Caller::default(), "").await;
        assert_eq!(status, 200, "{answer}");
        answer
    }

    /// The states of commands.
    pub(super) async fn states(&self, ids: &[&str]) -> Vec<String> {
        let mut states = Vec::new();
        for id in ids {
            states.push(self.answer(id).await["state"].as_str().unwrap().to_owned());
        }
        states
    }

    pub(super) async fn wait(&self, seconds: u64) {
        self.dynamo.clock.set(self.dynamo.clock.now_ms() + 1_000 * seconds);
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    /// Delivers a batch, like Lambda. All messages stay in the queue if the process ends before it answers. Successful
    /// ones stay too if it crashes before it deletes them. Returns how many messages the batch had.
    pub(super) async fn deliver(&self, crashes: bool) -> usize {
        let received = self.queues.receive(COMMANDS, 10, None).unwrap();
        // A function gives up a hanging command before its time is over. So this is the end of the process.
        let time = Duration::from_millis(TIME_MS - 1_000);
        let answered = timeout(time, self.call(batch(COMMANDS, &received))).await;
        let Ok(answer) = answered else { return received.len() };
        let failed = failed(&answer);
        for message in received.iter().filter(|it| !failed.contains(&it.message.message_id)) {
            if !crashes {
                self.queues.delete(COMMANDS, &message.receipt_handle).unwrap();
            }
        }
        received.len()
    }

    /// The number of requests to the tables of logs.
    pub(super) fn requests_to_logs(&self) -> usize {
        let taken = self.dynamo.wire.take();
        taken.iter().filter(|it| !it.request.to_string().contains("ViewTable")).count()
    }

    pub(super) fn dead_letters(&self) -> Vec<Value> {
        let dead_letters = &self.queues.messages()[DEAD_LETTERS];
        dead_letters
            .iter()
            .map(|dead_letter| serde_json::from_str(&dead_letter.body).unwrap())
            .collect()
    }
}

#[derive(Default)]
pub(super) struct Caller {
    pub(super) headers: Value,
    pub(super) authorizer: Value,
}

/// A caller with this key, without an authorizer.
pub(super) fn caller(key: &str) -> Caller {
    Caller { headers: json!({ "idempotency-key": key }), authorizer: Value::Null }
}

/// A caller with a token.
pub(super) fn with_token(key: &str, subject: &str, scope: &str) -> Caller {
    let claims = json!({ "iss": "https://id.example.com/", "sub": subject, "scope": scope });
    Caller { authorizer: json!({ "jwt": { "claims": claims } }), ..caller(key) }
}

pub(super) fn sync(product: &str) -> Value {
    let price = json!({ "amount": 100, "currency": "EUR" });
    json!({ "productId": product, "name": "Lamp", "price": price })
}

pub(super) fn place(order: &str, product: &str) -> Value {
    json!({ "orderId": order, "customerId": "c-1", "productIds": [product] })
}

pub(super) fn lapse() -> Value {
    json!({ "emailId": "3f7a9c0e", "otp": "444444" })
}

pub(super) fn cancel(order: &str) -> Value {
    json!({ "orderId": order })
}
