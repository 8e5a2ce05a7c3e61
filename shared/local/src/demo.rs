//! A walk through the shop: each request, its answer, each event on the topic, events of all three
//! logs in the index, and orders in the views; ends with an error as soon as something is not as it
//! should be.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tokio::{
    sync::broadcast::{Receiver, error::RecvError},
    time::{Instant, sleep, timeout_at},
};

use crate::{notices::Notice, stack::Stack};

/// Longest wait for the events that a step causes.
const EVENTS_WAIT_MAX: Duration = Duration::from_secs(20);

/// Pause before the index is looked at again.
const INDEX_PAUSE: Duration = Duration::from_millis(20);

/// How long the topic is watched at the end for events that nobody asked for.
const QUIET_MAX: Duration = Duration::from_millis(500);

/// How long a view is asked to wait for an event, in milliseconds; the most it takes.
const VIEW_WAIT_MS: u64 = 10_000;

/// Longest wait for one answer.
const ANSWER_WAIT_MAX: Duration = Duration::from_secs(30);

struct Demo<'a> {
    stack: &'a Stack,
    client: reqwest::Client,
    topic: Receiver<Notice>,
    /// Ids of the events seen: the bus promises each at least once.
    seen: BTreeSet<String>,
    /// Events seen and not yet asked for, by type.
    open: BTreeMap<String, usize>,
    /// The latest event of each type, as the topic has it.
    latest: BTreeMap<String, Value>,
}

/// Walks the shop on a stack that nobody else uses.
///
/// # Errors
/// When an answer or an event is not as it should be, or does not come.
pub async fn walk(stack: &Stack) -> Result<()> {
    let client = reqwest::Client::builder().no_proxy().timeout(ANSWER_WAIT_MAX).build()?;
    let topic = stack.watch();
    let (seen, open, latest) = (BTreeSet::new(), BTreeMap::new(), BTreeMap::new());
    let mut demo = Demo { stack, client, topic, seen, open, latest };
    demo.sync_products().await?;
    demo.place_order().await?;
    demo.read_order().await?;
    demo.place_order_again().await?;
    demo.order_unknown_product().await?;
    demo.invoke_directly().await?;
    demo.race().await?;
    demo.register_customer().await?;
    demo.fill_cart().await?;
    demo.check_out().await?;
    demo.expect_quiet().await?;
    for (queue, messages) in stack.queues() {
        ensure!(messages.is_empty(), "queue {queue} has {} messages", messages.len());
    }
    Ok(())
}

impl Demo<'_> {
    async fn sync_products(&mut self) -> Result<()> {
        title("Two products become known to ordering");
        for (id, name, amount) in [("p-1", "Lamp", 1250), ("p-2", "Chair", 8900)] {
            let price = json!({ "amount": amount, "currency": "EUR" });
            let command = json!({ "productId": id, "name": name, "price": price });
            let answer = self.post("/ordering/sync-catalog-product", &command).await?;
            expect_accepted(&answer, "CatalogProductSynced")?;
        }
        self.expect_events(&[("CatalogProductSynced", 2)]).await
    }

    async fn place_order(&mut self) -> Result<()> {
        title("An order; catalog records the demand for its products by itself");
        let answer = self.post("/ordering/place-order", &order("ord-1", &["p-1", "p-2"])).await?;
        expect_accepted(&answer, "OrderPlaced")?;
        self.expect_events(&[("OrderPlaced", 1), ("ProductDemandRecorded", 2)]).await
    }

    async fn read_order(&mut self) -> Result<()> {
        title("The order in the index, and in the views, each of which waits until it has it");
        let placed = self.latest["OrderPlaced"].clone();
        let demand = self.latest["ProductDemandRecorded"].clone();
        let product = demand["data"]["productId"].as_str().context("demand without a product")?;
        let product = format!("/product-demand/{product}");
        for (path, event, field, expected) in [
            ("/orders/ord-1", &placed, "/row/customerId", json!("c-1")),
            ("/customer-order-counts/c-1", &placed, "/row/orders", json!(1)),
            (&*product, &demand, "/row/open", json!(1)),
        ] {
            let answer = self.get(path, event).await?;
            let found = answer.pointer(field).unwrap_or(&Value::Null);
            ensure!(*found == expected, "{path}: {field} is {found}, not {expected}");
        }
        let key = json!({ "position": { "S": placed["position"] } });
        self.expect_indexed("OrderPlaced", &key).await
    }

    async fn place_order_again(&mut self) -> Result<()> {
        title("The same order again");
        let answer = self.post("/ordering/place-order", &order("ord-1", &["p-1", "p-2"])).await?;
        expect_rejected(&answer, "OrderAlreadyPlaced")
    }

    async fn order_unknown_product(&mut self) -> Result<()> {
        title("An order with a product that is not there");
        let answer = self.post("/ordering/place-order", &order("ord-2", &["p-1", "p-9"])).await?;
        expect_rejected(&answer, "ProductsNotAvailable")?;
        let missing = &answer.1["missing"];
        ensure!(*missing == json!(["p-9"]), "the answer names {missing} as missing, not p-9");
        Ok(())
    }

    async fn invoke_directly(&mut self) -> Result<()> {
        title("A slice invoked directly; ordering learns of the product by itself");
        let command = json!({
            "productId": "p-3", "name": "Desk", "description": "Oak, 160 cm",
            "price": { "amount": 24900, "currency": "EUR" },
        });
        println!("→ invoke add-product {command}");
        let answer = self.stack.invoke("add-product", &command).await?;
        println!("← {answer}");
        ensure!(answer["accepted"] == true, "add-product was not accepted");
        self.expect_events(&[("ProductAdded", 1), ("CatalogProductSynced", 1)]).await
    }

    async fn race(&mut self) -> Result<()> {
        title("Two orders at once for one id");
        let (lamp, desk) = (order("ord-3", &["p-1"]), order("ord-3", &["p-3"]));
        let path = "/ordering/place-order";
        let (one, two) = tokio::join!(self.post(path, &lamp), self.post(path, &desk));
        let (one, two) = (one?, two?);
        let (winner, loser) = if one.0 == 200 { (one, two) } else { (two, one) };
        expect_accepted(&winner, "OrderPlaced").context("exactly one has to win")?;
        expect_rejected(&loser, "OrderAlreadyPlaced").context("exactly one has to win")?;
        self.expect_events(&[("OrderPlaced", 1), ("ProductDemandRecorded", 1)]).await
    }

    async fn register_customer(&mut self) -> Result<()> {
        title(
            "A customer registers: a stream of the aggregate log, on the topic and in the index too",
        );
        let command = json!({ "customerId": "ada", "name": "Ada", "email": "ada@example.com" });
        let answer = self.post("/customers/register-customer", &command).await?;
        expect_accepted(&answer, "CustomerRegistered")?;
        self.expect_events(&[("CustomerRegistered", 1)]).await?;
        let key = json!({ "aggregateId": { "S": "customers#ada" }, "version": { "N": "1" } });
        self.expect_indexed("CustomerRegistered", &key).await
    }

    async fn fill_cart(&mut self) -> Result<()> {
        title("Her cart: a document");
        for (product, quantity) in [("p-1", 2), ("p-3", 1)] {
            let command = json!({ "cartId": "cart-1", "productId": product, "quantity": quantity });
            expect_accepted(&self.post("/carts/add-to-cart", &command).await?, "ItemAdded")?;
        }
        self.expect_events(&[("ItemAdded", 2)]).await
    }

    async fn check_out(&mut self) -> Result<()> {
        title(
            "She checks out; ordering places the order by itself, and catalog records the demand",
        );
        let command = json!({ "cartId": "cart-1", "customerId": "ada" });
        let answer = self.post("/carts/check-out", &command).await?;
        expect_accepted(&answer, "CheckedOut")?;
        let caused = [("CheckedOut", 1), ("OrderPlaced", 1), ("ProductDemandRecorded", 2)];
        self.expect_events(&caused).await?;
        let key = json!({ "p": { "S": "carts-cart-1" }, "i": { "N": "2" } });
        self.expect_indexed("CheckedOut", &key).await?;
        let placed = self.latest["OrderPlaced"].clone();
        let order = self.get("/orders/cart-1", &placed).await?;
        let found = &order["row"]["customerId"];
        ensure!(*found == "ada", "the order of the cart is of {found}");
        Ok(())
    }

    async fn post(&self, path: &str, command: &Value) -> Result<(u16, Value)> {
        println!("→ POST {path} {command}");
        let url = format!("{}{path}", self.stack.api());
        let answer = self.client.post(url).json(command).send().await?;
        let status = answer.status().as_u16();
        let body: Value = answer.json().await.context("the answer is not JSON")?;
        println!("← {status} {body}");
        Ok((status, body))
    }

    /// A row of a view that has this event.
    async fn get(&self, path: &str, event: &Value) -> Result<Value> {
        let text = |name: &str| event[name].as_str().unwrap_or_default();
        let (partition, position) = (text("partition"), text("position"));
        let query = format!("partition={partition}&position={position}&wait={VIEW_WAIT_MS}");
        println!("→ GET {path}");
        let url = format!("{}{path}?{query}", self.stack.api());
        let answer = self.client.get(url).send().await?;
        let status = answer.status().as_u16();
        let body: Value = answer.json().await.context("the answer is not JSON")?;
        println!("← {status} {body}");
        ensure!(status == 200, "{path} has no row");
        Ok(body)
    }

    /// Waits until the index has the event whose entry has these attributes.
    async fn expect_indexed(&self, event: &str, key: &Value) -> Result<()> {
        let deadline = Instant::now() + EVENTS_WAIT_MAX;
        let page = loop {
            let mut pages = self.pages_with(key)?;
            match pages.pop() {
                Some(page) if pages.is_empty() => break page,
                Some(_) => bail!("the index has {event} {} times", pages.len() + 1),
                None if Instant::now() > deadline => bail!("{event} did not come to the index"),
                None => sleep(INDEX_PAUSE).await,
            }
        };
        println!("  index: {event} on {page}");
        Ok(())
    }

    /// The pages of the index, one for each entry that has these attributes.
    fn pages_with(&self, key: &Value) -> Result<Vec<String>> {
        let key = key.as_object().context("attributes")?;
        let mut found = Vec::new();
        for page in self.stack.items("IndexTable")? {
            let entries = page["e"]["L"].as_array().into_iter().flatten();
            let fits = |entry: &&Value| key.iter().all(|(name, value)| entry["M"][name] == *value);
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let page = format!("page {} of {}", text(&page["i"]["N"]), text(&page["p"]["S"]));
            found.extend(entries.filter(fits).map(|_| page.clone()));
        }
        Ok(found)
    }

    /// Waits until each type has come as often as given, and takes these events.
    async fn expect_events(&mut self, expected: &[(&str, usize)]) -> Result<()> {
        let deadline = Instant::now() + EVENTS_WAIT_MAX;
        let missing = |open: &BTreeMap<String, usize>| {
            let come = |kind: &str| open.get(kind).copied().unwrap_or(0);
            expected.iter().find(|(kind, count)| come(kind) < *count).map(|(kind, _)| *kind)
        };
        while let Some(kind) = missing(&self.open) {
            let Ok(notice) = timeout_at(deadline, self.topic.recv()).await else {
                bail!("{kind} did not come on the topic");
            };
            self.note(notice)?;
        }
        for (kind, count) in expected {
            if let Some(open) = self.open.get_mut(*kind) {
                *open -= count;
            }
        }
        Ok(())
    }

    async fn expect_quiet(&mut self) -> Result<()> {
        sleep(QUIET_MAX).await;
        while !self.topic.is_empty() {
            let notice = self.topic.recv().await;
            self.note(notice)?;
        }
        match self.open.iter().find(|(_, count)| **count > 0) {
            Some((kind, count)) => bail!("{count} {kind} too many on the topic"),
            None => Ok(()),
        }
    }

    fn note(&mut self, notice: Result<Notice, RecvError>) -> Result<()> {
        match notice.context("the topic cannot be watched")? {
            Notice::Trouble(text) => bail!("{text}"),
            Notice::Event(event) => {
                let (kind, detail) = (&event["detail-type"], &event["detail"]);
                let kind = kind.as_str().context("an event without a type")?;
                let id = detail["id"].as_str().context("an event without an id")?;
                if self.seen.insert(id.to_owned()) {
                    println!("  topic: {kind} {}", detail["data"]);
                    *self.open.entry(kind.to_owned()).or_default() += 1;
                    self.latest.insert(kind.to_owned(), detail.clone());
                }
                Ok(())
            }
        }
    }
}

fn title(text: &str) {
    println!("\n{text}");
}

fn order(id: &str, products: &[&str]) -> Value {
    json!({ "orderId": id, "customerId": "c-1", "productIds": products })
}

fn expect_accepted((status, body): &(u16, Value), event: &str) -> Result<()> {
    ensure!(*status == 200 && body["accepted"] == true, "not accepted: {status} {body}");
    let found = &body["events"][0]["type"];
    ensure!(found == event, "the answer names {found}, not {event}");
    Ok(())
}

fn expect_rejected((status, body): &(u16, Value), code: &str) -> Result<()> {
    ensure!(*status == 422 && body["code"] == code, "not rejected as {code}: {status} {body}");
    Ok(())
}
