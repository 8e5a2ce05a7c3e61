//! An event that is delivered again, to the same or a later version of the automation.

use std::sync::{Mutex, PoisonError};

use futures::future::{BoxFuture, FutureExt, ready};
use futures::stream::BoxStream;
use ringfence_aws::{Clock, Meter};
use ringfence_core::{
    Append, Appended, BoundaryId, Cause, Change, Command, CommandContext, CommandRecord, Conflict,
    Consistency, Context, Current, Envelope, EventLog, EventRef, LogError, MemoryLog, OnEvents,
    Plan, Reads, Seen, SequencedEvent, Slice, State, StoreError, TopicEvent, Upcasts, kit::id,
};
use serde::Serialize;
use serde_json::{Value, json};

use super::shop::{self, Money, PriceChanged, ProductAdded, ProductId, euros};
use super::{NOW_MS, invoke, topic_event};
use crate::slice::function::{Function, Invoked};

/// A log on which other writers are always faster for one product.
struct Contended {
    log: MemoryLog,
    product: Mutex<&'static str>,
}

impl EventLog for Contended {
    fn read<'a>(
        &'a self,
        plan: &'a Plan,
        consistency: Consistency,
        envelope: &'a Envelope,
    ) -> BoxStream<'a, Result<SequencedEvent, LogError>> {
        self.log.read(plan, consistency, envelope)
    }

    fn append<'a>(&'a self, append: Append<'a>) -> BoxFuture<'a, Result<Appended, LogError>> {
        let product = *self.product.lock().unwrap_or_else(PoisonError::into_inner);
        if append.events.iter().any(|event| event.data["productId"] == product) {
            let partition = BoundaryId::tag("productId", product);
            let taken = Change::Slot { partition, slot: 2, event_type: "PriceChanged".into() };
            let over = Some(Conflict(vec![taken]).into());
            return ready(Err(StoreError::Contention { attempts: 8, over }.into())).boxed();
        }
        self.log.append(append)
    }

    fn verify<'a>(
        &'a self,
        seen: &'a Seen,
        envelope: &'a Envelope,
    ) -> BoxFuture<'a, Result<Option<Conflict>, LogError>> {
        self.log.verify(seen, envelope)
    }

    fn recorded<'a>(
        &'a self,
        record: &'a CommandRecord,
        envelope: &'a Envelope,
    ) -> BoxFuture<'a, Result<Option<Vec<EventRef>>, LogError>> {
        self.log.recorded(record, envelope)
    }

    fn pause<'a>(&'a self, attempt: u32, envelope: &'a Envelope) -> BoxFuture<'a, bool> {
        self.log.pause(attempt, envelope)
    }
}

/// An automation that changes prices as the event says, so a test can stand for any version of it.
#[derive(Clone, Debug, PartialEq, Command)]
pub(super) struct Reprice {
    #[tag(partition)]
    product_id: ProductId,
    price: Money,
}

#[derive(Reads)]
pub(super) enum Priced {
    ProductAdded { price: Money },
    PriceChanged { price: Money },
}

#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code")]
pub(super) enum Rejection {
    #[error("the product does not exist")]
    ProductNotFound,
}

/// The price of the product.
#[derive(Default)]
pub(super) struct Price(Option<Money>);

impl State for Price {
    type Reads = Priced;

    fn evolve(self, event: Priced) -> Self {
        let (Priced::ProductAdded { price } | Priced::PriceChanged { price }) = event;
        Self(Some(price))
    }
}

/// The second version of the event, which the shop does not send yet.
const PRICES_ARE_CHANGES: Upcasts = Upcasts(&[|mut data| {
    data.rename("prices", "changes")?;
    Ok(data)
}]);

impl Slice for Reprice {
    const NAME: &'static str = "reprice";
    const REACTS_TO: &'static [Cause] =
        &[Cause { upcasts: PRICES_ARE_CHANGES, ..Cause::named("ordering", "OrderPlaced") }];
    type Context = shop::Shop;
    type State = Price;
    type Writes = PriceChanged;
    type Rejection = Rejection;

    fn decide(
        &self,
        Price(current): &Price,
        _: &CommandContext,
    ) -> Result<Vec<PriceChanged>, Rejection> {
        let Self { product_id, price } = self.clone();
        match current {
            None => Err(Rejection::ProductNotFound),
            Some(current) if *current == price => Ok(vec![]),
            Some(_) => Ok(vec![PriceChanged { product_id, price }]),
        }
    }

    fn react(event: &Current<'_, TopicEvent>) -> Result<Vec<Self>, serde_json::Error> {
        let prices: Vec<(String, u64)> = serde_json::from_value(event.data["changes"].clone())?;
        let command = |(product, price): (String, u64)| Self {
            product_id: id(&product),
            price: euros(price),
        };
        Ok(prices.into_iter().map(command).collect())
    }
}

struct Shop(Function<Reprice, OnEvents<Reprice, Contended>>);

impl Shop {
    /// A shop with these products, each for one euro.
    fn with(products: &[&str]) -> Self {
        let catalog = shop::Shop::catalog().unwrap();
        let log = Contended { log: MemoryLog::new(catalog.clone()), product: Mutex::default() };
        let on = OnEvents::new(log, catalog, 0);
        let shop = Self(Function::new(on, Clock::fixed(NOW_MS), Meter::default()));
        products.iter().for_each(|product| shop.add(product));
        shop
    }

    fn log(&self) -> &Contended {
        self.0.on().log()
    }

    fn add(&self, product: &str) {
        let added = ProductAdded { product_id: id(product), price: euros(100) };
        let envelope = Envelope::default();
        let events = ringfence_core::events![added];
        let append = Append { events, seen: None, record: None, envelope: &envelope };
        futures::executor::block_on(self.log().log.append(append)).unwrap();
    }

    fn contend(&self, product: &'static str) {
        *self.log().product.lock().unwrap() = product;
    }

    /// Delivers the same event each time, to the version of the automation that makes these commands of it.
    fn deliver(&self, prices: &[(&str, u64)]) -> Invoked {
        let mut event = topic_event("OrderPlaced", &[]);
        event["detail"]["data"]["prices"] = json!(prices);
        invoke(&self.0, event)
    }

    /// Delivers the event. Returns the answer of each command.
    fn answers(&self, prices: &[(&str, u64)]) -> Vec<String> {
        let answer = self.deliver(prices).answer.unwrap();
        let said = |answer: &Value| match answer["type"].as_str() {
            Some(problem) => problem.rsplit(':').next().unwrap_or_default().to_owned(),
            None if answer["repeated"] == true => "repeated".to_owned(),
            None => format!("{} events", answer["events"].as_array().map_or(0, Vec::len)),
        };
        answer["answers"].as_array().unwrap().iter().map(said).collect()
    }

    /// The prices that were set, in order.
    fn prices(&self) -> Vec<(String, u64)> {
        let events = self.log().log.events();
        let changed = events.iter().filter(|event| event.event_type == "PriceChanged");
        let price = |event: &SequencedEvent| {
            let Value::String(product) = &event.data["productId"] else { panic!("{event:?}") };
            (product.clone(), event.data["price"]["amount"].as_u64().unwrap())
        };
        changed.map(price).collect()
    }
}

fn price(product: &str, price: u64) -> (String, u64) {
    (product.to_owned(), price)
}

#[test]
fn an_event_whose_command_is_contended_is_delivered_again() {
    let shop = Shop::with(&["desk", "lamp"]);
    shop.contend("desk");
    let Invoked { answer, lines } = shop.deliver(&[("desk", 6), ("lamp", 5)]);
    assert_eq!(answer.unwrap_err().error_type, "contention");
    let [desk, lamp] = &lines[..] else { panic!("{lines:?}") };
    assert_eq!((desk.outcome, desk.attempts), ("contention", 8));
    assert_eq!((lamp.outcome, lamp.attempts), ("accepted", 1));
    assert_eq!(desk.conflicts, ["productId:desk"]);
    let cause = desk.cause.as_deref().unwrap();
    assert!(cause.contains("gave up after 8 attempts: "), "with what it is over");
    assert_eq!(shop.prices(), [price("lamp", 5)], "the others are tried");
    shop.contend("");
    assert_eq!(shop.answers(&[("desk", 6), ("lamp", 5)]), ["1 events", "repeated"]);
    assert_eq!(shop.prices(), [price("lamp", 5), price("desk", 6)]);
}

#[test]
fn a_reaction_is_to_the_newest_version_and_one_that_is_newer_is_delivered_again() {
    let shop = Shop::with(&["lamp"]);
    let deliver = |schema: Option<u32>, field: &str| {
        let mut event = topic_event("OrderPlaced", &[]);
        event["detail"]["data"][field] = json!([["lamp", 5]]);
        event["detail"]
            .as_object_mut()
            .unwrap()
            .extend(schema.map(|it| ("schema".into(), it.into())));
        invoke(&shop.0, event).answer
    };
    assert_eq!(deliver(Some(3), "unknown").unwrap_err().error_type, "newer-version");
    assert_eq!(deliver(Some(2), "prices").unwrap_err().error_type, "malformed");
    assert_eq!(deliver(None, "changes").unwrap_err().error_type, "malformed");
    assert_eq!(shop.prices(), []);
    deliver(Some(2), "changes").unwrap();
    let repeated = deliver(None, "prices").unwrap();
    assert_eq!(repeated["answers"][0]["repeated"], true);
    assert_eq!(shop.prices(), [price("lamp", 5)]);
}

#[test]
fn a_mended_reaction_takes_effect_only_where_none_has() {
    let shop = Shop::with(&["desk", "lamp", "rug"]);
    shop.contend("desk");
    shop.deliver(&[("lamp", 5), ("desk", 6)]).answer.unwrap_err();
    shop.contend("");
    // Other commands in another order, and one more.
    let mended = [("desk", 7), ("rug", 8), ("lamp", 9)];
    assert_eq!(shop.answers(&mended), ["1 events", "1 events", "key-reused"]);
    let prices = [price("lamp", 5), price("desk", 7), price("rug", 8)];
    assert_eq!(shop.prices(), prices);
    assert_eq!(shop.answers(&mended), ["repeated", "repeated", "key-reused"]);
    assert_eq!(shop.prices(), prices);
}

#[test]
fn the_same_commands_in_another_order_are_repeats() {
    let shop = Shop::with(&["desk", "lamp"]);
    shop.answers(&[("lamp", 5), ("desk", 6)]);
    shop.answers(&[("desk", 6), ("lamp", 5)]);
    assert_eq!(shop.prices(), [price("lamp", 5), price("desk", 6)]);
}

#[test]
fn a_command_that_was_rejected_is_decided_again() {
    let shop = Shop::with(&["lamp"]);
    assert_eq!(shop.answers(&[("rug", 6)]), ["rejected"]);
    shop.add("rug");
    // The commands are the same or mended.
    assert_eq!(shop.answers(&[("rug", 100)]), ["0 events"], "the product has that price already");
    assert_eq!(shop.answers(&[("rug", 7)]), ["1 events"]);
    assert_eq!(shop.answers(&[("rug", 8)]), ["key-reused"]);
    assert_eq!(shop.prices(), [price("rug", 7)]);
}

#[test]
fn an_effect_is_not_repeated_after_others_have_changed_the_state() {
    let shop = Shop::with(&["lamp"]);
    shop.answers(&[("lamp", 5)]);
    let command = json!({ "productId": "lamp", "price": { "amount": 9, "currency": "EUR" } });
    invoke(&shop.0, command).answer.unwrap();
    assert_eq!(shop.answers(&[("lamp", 5)]), ["repeated"]);
    assert_eq!(shop.prices(), [price("lamp", 5), price("lamp", 9)]);
}

#[test]
fn two_different_commands_about_one_thing_are_refused_and_equal_ones_count_once() {
    let shop = Shop::with(&["desk", "lamp"]);
    let error = shop.deliver(&[("desk", 6), ("lamp", 5), ("lamp", 7)]).answer.unwrap_err();
    assert_eq!(error.error_type, "malformed");
    let said = r#"tell them apart in `about`, which is "productId:lamp" of both"#;
    assert!(error.error_message.contains(said), "{}", error.error_message);
    assert!(shop.prices().is_empty(), "no command has taken effect");
    assert_eq!(shop.answers(&[("lamp", 5), ("lamp", 5)]), ["1 events"]);
}

#[test]
fn the_key_of_a_command_is_bounded_whatever_the_id_of_the_event() {
    let shop = Shop::with(&["lamp"]);
    let mut event = topic_event("OrderPlaced", &[]);
    event["detail"]["id"] = format!("{}/7", "p".repeat(2_040)).into();
    event["detail"]["data"]["prices"] = json!([["lamp", 5]]);
    let invoked = invoke(&shop.0, event);
    let events = shop.log().log.events();
    let metadata = &events.last().unwrap().metadata;
    assert_eq!(metadata.text("commandId").map(str::len), Some(73));
    assert_eq!(
        metadata.text("causationId").map(str::len),
        Some(2_042),
        "the whole id of the event"
    );
    assert!(invoked.line().log().json["causation_id"].as_str().unwrap().starts_with("ppp"));
    invoked.answer.unwrap();
}
