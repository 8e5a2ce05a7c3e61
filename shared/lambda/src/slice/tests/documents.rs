//! Slices of carts on streams in memory, invoked like Lambda invokes them.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

use futures::{FutureExt, TryStreamExt, future::BoxFuture};
use lambda_runtime::Context;
use ringfence_aws::{Clock, Failure, Item, Meter};
use ringfence_core::{Consistency, Envelope, SequencedEvent, Slice};
use ringfence_document_log::{
    Batch, Cache, Category, Direction, DocumentLog, ItemPage, ItemQuery, MemoryStore, Store,
    StreamName, Streams, Write,
};
use serde_json::{Value, json};

use super::carts::{AddToCart, Cart, Carts};
use super::{NOW_MS, request};
use crate::slice::function::Function;

const CACHED: NonZeroUsize = NonZeroUsize::new(10).unwrap();

type OnFar<S> = Function<S, Category<Cart, Far>>;

/// The fate of writes.
#[derive(Clone, Copy, Default, PartialEq)]
enum Weather {
    #[default]
    Fair,
    /// Others are always faster.
    Taken,
    /// They take effect, but their answers are lost.
    Silent,
}

/// Streams in memory, reached through a network.
#[derive(Clone, Default)]
struct Far(MemoryStore, Arc<Mutex<Weather>>);

impl Far {
    fn set(&self, weather: Weather) {
        *self.1.lock().unwrap() = weather;
    }
}

impl Store for Far {
    fn tip<'a>(
        &'a self,
        stream: &'a StreamName,
        consistency: Consistency,
    ) -> BoxFuture<'a, Result<Option<Batch>, Failure>> {
        self.0.tip(stream, consistency)
    }

    fn query<'a>(&'a self, query: ItemQuery<'a>) -> BoxFuture<'a, Result<ItemPage, Failure>> {
        self.0.query(query)
    }

    fn write<'a>(&'a self, write: &'a Write) -> BoxFuture<'a, Result<(), Failure>> {
        let weather = *self.1.lock().unwrap();
        async move {
            match weather {
                Weather::Fair => self.0.write(write).await,
                Weather::Taken => Err(Failure::Condition(None)),
                Weather::Silent => {
                    let _ = self.0.write(write).await;
                    Err(Failure::Unknown { source: "no answer".into() })
                }
            }
        }
        .boxed()
    }

    fn delete<'a>(
        &'a self,
        stream: &'a StreamName,
        key: i64,
    ) -> BoxFuture<'a, Result<(), Failure>> {
        self.0.delete(stream, key)
    }

    fn streams(&self, after: Option<Item>) -> BoxFuture<'_, Result<Streams, Failure>> {
        self.0.streams(after)
    }
}

fn on<S: Slice<State = Cart, Context = Carts>>(far: &Far) -> OnFar<S> {
    let log = DocumentLog::new(far.clone(), Clock::fixed(NOW_MS));
    let category = Category::of::<S>(log, Cache::of(CACHED)).unwrap();
    Function::new(category, Clock::fixed(NOW_MS), Meter::default())
}

async fn direct<S: Slice<State = Cart>>(function: &OnFar<S>, payload: Value) -> Value {
    function.invoke(&payload.to_string(), &Context::default()).await.answer.unwrap()
}

/// Status and body of the answer to a request with this key and body.
async fn http(function: &OnFar<AddToCart>, key: Option<&str>, body: &str) -> (u64, Value) {
    let headers = key.map_or_else(|| json!({}), |key| json!({ "idempotency-key": key }));
    let answer = direct(function, request(body, headers)).await;
    let body = serde_json::from_str(answer["body"].as_str().unwrap()).unwrap();
    (answer["statusCode"].as_u64().unwrap(), body)
}

fn lamps(quantity: u32) -> String {
    json!({ "cartId": "cart-1", "productId": "lamp", "quantity": quantity }).to_string()
}

fn added(slot: u64) -> Value {
    json!({ "type": "ItemAdded", "slot": slot, "partition": "carts-cart-1" })
}

/// The events of the stream.
async fn events(far: &Far) -> Vec<SequencedEvent> {
    let log = DocumentLog::new(far.clone(), Clock::fixed(NOW_MS));
    let (stream, envelope) = (StreamName::new("carts", "cart-1").unwrap(), Envelope::default());
    let all = 0..u64::MAX;
    let read = log.read(&stream, all, Direction::Forward, Consistency::Strong, &envelope);
    let read: Vec<_> = read.try_collect().await.unwrap();
    read.into_iter().map(|recorded| recorded.fed(&stream).unwrap()).collect()
}

#[tokio::test]
async fn a_command_is_answered_with_its_events_or_with_a_problem() {
    let far = Far::default();
    let carts = on::<AddToCart>(&far);
    assert_eq!(
        http(&carts, None, &lamps(2)).await,
        (200, json!({ "accepted": true, "events": [added(0)] }))
    );
    let (status, body) = http(&carts, None, &lamps(98)).await;
    assert_eq!((status, &body["code"]), (422, &json!("QuantityOutOfRange")));
    assert_eq!((&body["productId"], &body["quantity"]), (&json!("lamp"), &json!(100)));
    let (status, body) = http(&carts, None, r#"{"cartId":"a/b"}"#).await;
    assert_eq!((status, body["detail"].as_str().unwrap().contains("cartId: an id")), (400, true));
    let (status, body) = http(&carts, None, &lamps(1).replace("quantity", "amount")).await;
    assert_eq!((status, &body["errors"][0]["field"]), (400, &json!("amount")));
    let (status, _) = http(&carts, None, &(lamps(1) + &" ".repeat(400_000))).await;
    assert_eq!(status, 413);
    assert_eq!(events(&far).await.len(), 1);
}

#[tokio::test]
async fn the_surroundings_of_a_command_are_in_its_events() {
    let far = Far::default();
    let command: Value = serde_json::from_str(&lamps(1)).unwrap();
    let enveloped = json!({
        "command": command,
        "commandId": "c-1",
        "correlationId": "walk",
        "causationId": "click",
        "principal": "ada",
    });
    assert_eq!(direct(&on::<AddToCart>(&far), enveloped).await["accepted"], true);
    let events = events(&far).await;
    let text = |key| events[0].metadata.text(key);
    for (key, value) in [
        ("commandId", "c-1"),
        ("correlationId", "walk"),
        ("causationId", "click"),
        ("principal", "direct:ada"),
        ("slice", "add-to-cart"),
    ] {
        assert_eq!(text(key), Some(value), "{key}");
    }
    assert_eq!(events[0].context, "carts");

    let command: Value = serde_json::from_str(&lamps(1)).unwrap();
    direct(&on::<AddToCart>(&far), command).await;
    let metadata = serde_json::to_value(&self::events(&far).await[1].metadata).unwrap();
    let id = &metadata["commandId"];
    let span = &metadata["traceparent"];
    let without =
        json!({ "commandId": id, "correlationId": id, "causationId": id, "traceparent": span });
    let mut with = without.clone();
    with["slice"] = "add-to-cart".into();
    assert_eq!(metadata, with);
    // As JSON it takes six bytes more than name and value.
    let [with, without] = [with, without].map(|json| json.to_string().len());
    assert_eq!(with - without, "slice".len() + "add-to-cart".len() + 6);
}

#[tokio::test(start_paused = true)]
async fn a_command_that_gets_no_answer_can_be_repeated() {
    let far = Far::default();
    let carts = on::<AddToCart>(&far);
    far.set(Weather::Taken);
    let (status, body) = http(&carts, Some("k"), &lamps(1)).await;
    assert_eq!((status, &body["type"]), (409, &json!("urn:ringfence:problem:contention")));
    assert!(events(&far).await.is_empty());
    far.set(Weather::Silent);
    let (status, body) = http(&carts, Some("k"), &lamps(1)).await;
    assert_eq!((status, &body["type"]), (504, &json!("urn:ringfence:problem:outcome-unknown")));
    far.set(Weather::Fair);
    let (status, body) = http(&carts, Some("k"), &lamps(1)).await;
    assert_eq!((status, &body["repeated"]), (200, &json!(true)));
    assert_eq!(events(&far).await.len(), 1);
}
