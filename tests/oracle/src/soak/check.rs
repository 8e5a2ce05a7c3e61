//! The checks at the end of a soak.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::AttributeValue;
use futures::TryStreamExt;
use ringfence_aws::{Clock, client_of, sdk_config_of};
use ringfence_core::SequencedEvent;
use ringfence_feed::{Checkpoint, Index, Until};
use ringfence_local::stack::RunningStack;
use ringfence_log::StackLogs;
use ringfence_reactors::ReactorTable;
use ringfence_stack::Stack;
use ringfence_views::{Content, ListPage, ViewRead, ViewReader, attributes};
use serde_json::Value;
use tokio::process::Command;
use tokio::time::{Instant, sleep};

/// The functions that read the index lane by lane.
pub(super) const LANES: [&str; 3] = ["react-in-order", "confirm-order", "notify-partner"];
/// Their readers.
const READERS: [&str; 3] = ["record-product-demand", "confirm-order", "notify-partner"];
/// How long everything may take to catch up. A killed run of a reactor keeps its lease for a minute.
const CAUGHT_UP: Duration = Duration::from_secs(900);
/// Looks at which nothing has changed, and the pause between them.
const LOOKS: u32 = 4;
const PAUSE: Duration = Duration::from_secs(3);

/// What the stack has, read without its functions.
pub(super) struct Tables {
    client: Client,
    index: Index,
    view_table: String,
    views: ViewReader,
    reactors: ReactorTable,
    shop: Stack,
}

impl Tables {
    pub(super) fn of(stack: &RunningStack) -> Result<Self> {
        let variables = stack.variables();
        let name = |name: &str| variables.get(name).cloned().with_context(|| format!("no {name}"));
        let (index_table, view_table) = (name("INDEX_TABLE")?, name("VIEW_TABLE")?);
        let shop = stack::stack();
        let facts = shop.sources.iter().map(|source| source.facts());
        let tables = facts.map(|it| Ok((it.kind, name(it.variable)?))).collect::<Result<_>>()?;
        let client = client_of(&sdk_config_of(variables)?);
        let logs =
            StackLogs { client: client.clone(), clock: Clock::system(), tables, vault: None };
        let index = Index::new(client.clone(), index_table, logs.bodies(&shop.sources));
        let views = ViewReader::new(client.clone(), index.clone(), &view_table, &shop.rows());
        let reactors = ReactorTable::new(client.clone(), &view_table, Clock::system());
        Ok(Self { client, index, view_table, views, reactors, shop })
    }

    /// Waits until every reader is at the end of the index, and the index and the queues do not change.
    pub(super) async fn wait(&self, stack: &RunningStack) -> Result<()> {
        let (until, mut looks, mut last) = (Instant::now() + CAUGHT_UP, 0, None);
        while looks < LOOKS {
            let end = self.index.end().await?;
            let late = self.late(stack, end).await?;
            looks = if late.is_empty() && last == Some(end) { looks + 1 } else { 0 };
            last = Some(end);
            if Instant::now() > until {
                bail!("not caught up after {CAUGHT_UP:?}: {}", late.join("; "));
            }
            sleep(PAUSE).await;
        }
        Ok(())
    }

    /// The readers that are not at the end of the index, and the queues with messages.
    async fn late(&self, stack: &RunningStack, end: Checkpoint) -> Result<Vec<String>> {
        let mut late = Vec::new();
        let views: Vec<_> = self.shop.rows().iter().map(|view| view.name).collect();
        for (view, standing) in views.iter().zip(self.views.standing(&views, end).await?) {
            let served = standing.map(|standing| standing.served);
            if served < Some(end) {
                late.push(format!("view {view} at {served:?} of {end}"));
            }
        }
        for reader in READERS {
            let at = self.reactors.standing(reader).await?.checkpoint;
            if at < Some(end) {
                late.push(format!("reactor {reader} at {at:?} of {end}"));
            }
        }
        let queues = stack.queues().into_iter().filter(|(_, messages)| !messages.is_empty());
        late.extend(queues.map(|(queue, messages)| format!("{} in {queue}", messages.len())));
        Ok(late)
    }

    /// Compares everything that follows the log with the events. Returns how many events there are.
    pub(super) async fn check(&self, stack: &RunningStack, placed: &[String]) -> Result<usize> {
        for name in stack.buckets().names() {
            let kept = stack.buckets().list(name)?;
            ensure!(kept.is_empty(), "the bucket {name} has {} batches", kept.len());
        }
        let events: Vec<SequencedEvent> = self.events().await?;
        let ids: BTreeSet<_> = events.iter().map(SequencedEvent::id).collect();
        ensure!(ids.len() == events.len(), "the index has an event twice");
        check_orders(&events, placed)?;
        check_demand(&events)?;
        check_messages(stack, &events)?;
        self.check_rows(&events).await?;
        for reader in READERS {
            if let Some(lane) = self.reactors.parked(reader).await?.first() {
                bail!("{reader} has parked {}: {}", lane.lane, lane.cause);
            }
        }
        Ok(events.len())
    }

    async fn events(&self) -> Result<Vec<SequencedEvent>> {
        let entries = self.index.read(Checkpoint::START, Until::Present);
        Ok(entries.map_ok(|entry| entry.event).try_collect().await?)
    }

    /// The rows of each view are those that a serial fold of the events makes.
    async fn check_rows(&self, events: &[SequencedEvent]) -> Result<()> {
        for view in self.shop.rows() {
            let mut expected = BTreeMap::new();
            for event in events.iter().filter(|event| view.reads(event)) {
                let event = self.shop.catalogs.current(event.clone())?;
                view.fold(&mut expected, &event)?;
            }
            let found = self.rows(view.name).await?;
            for id in expected.keys().chain(found.keys()) {
                let (found, expected) = (found.get(id), expected.get(id));
                ensure!(
                    found == expected,
                    "view {}, row {id}: it is {found:?}, and the events make {expected:?}",
                    view.name
                );
            }
        }
        Ok(())
    }

    async fn rows(&self, view: &str) -> Result<BTreeMap<String, Value>> {
        let (mut rows, mut page) =
            (BTreeMap::new(), ListPage { limit: 100, ..ListPage::default() });
        loop {
            let ViewRead::Found(listed) = self.views.list(view, &page, None).await? else {
                bail!("view {view} is not served");
            };
            for row in listed.rows {
                match row.content {
                    Content::Row(content) => drop(rows.insert(row.id, content)),
                    Content::Parked(parked) => bail!("view {view}, row {}: {parked:?}", row.id),
                }
            }
            if listed.next.is_none() {
                return Ok(rows);
            }
            page.after = listed.next;
        }
    }

    /// Makes mistakes by hand, which the checks must notice: a row that is another one, and a message that is lost.
    pub(super) async fn check_mistakes(
        &self,
        stack: &RunningStack,
        placed: &[String],
    ) -> Result<()> {
        let found = self.client.scan().table_name(&self.view_table);
        let found = found.filter_expression("attribute_exists(#row)");
        let found = found.expression_attribute_names("#row", attributes::ROW);
        let found = found.into_paginator().items().send().try_next().await?;
        let mut item = found.context("the view table has no row")?;
        item.insert(attributes::ROW.to_owned(), AttributeValue::S("changed".to_owned()));
        self.client.put_item().table_name(&self.view_table).set_item(Some(item)).send().await?;
        let rows = self.check_rows(&self.events().await?).await;
        ensure!(rows.is_err(), "nobody notices a row that was changed by hand");
        let mut messages = std::fs::read_dir(stack.inbox().webhooks())?;
        std::fs::remove_file(messages.next().context("no webhook was sent")??.path())?;
        let sent = check_messages(stack, &self.events().await?);
        ensure!(sent.is_err() || placed.is_empty(), "nobody notices a message that is lost");
        Ok(())
    }
}

/// The orders of events of a type, with their data.
fn of_orders<'e>(events: &'e [SequencedEvent], event_type: &str) -> Vec<(&'e str, &'e Value)> {
    let of = events.iter().filter(|event| event.event_type == event_type);
    of.filter_map(|event| Some((event.data["orderId"].as_str()?, &event.data))).collect()
}

/// Each order that a client has placed is there once.
fn check_orders(events: &[SequencedEvent], placed: &[String]) -> Result<()> {
    let mut times = BTreeMap::<&str, u32>::new();
    for (order, _) in of_orders(events, "OrderPlaced") {
        *times.entry(order).or_default() += 1;
    }
    for order in placed {
        let times = times.get(&**order).copied().unwrap_or_default();
        ensure!(times == 1, "the order {order} was placed {times} times");
    }
    Ok(())
}

/// The ordered automation has recorded the demand of each order once, and revoked it once if the order was cancelled.
fn check_demand(events: &[SequencedEvent]) -> Result<()> {
    let placed: BTreeMap<_, _> = of_orders(events, "OrderPlaced").into_iter().collect();
    let products = |order: &str| {
        let data = placed.get(order);
        let products = data.and_then(|data| data["productIds"].as_array()).into_iter().flatten();
        products.filter_map(Value::as_str).collect::<Vec<_>>()
    };
    for (cause, effect) in
        [("OrderPlaced", "ProductDemandRecorded"), ("OrderCancelled", "ProductDemandRevoked")]
    {
        let mut expected = BTreeMap::<(&str, &str), u32>::new();
        for (order, _) in of_orders(events, cause) {
            for product in products(order) {
                expected.insert((order, product), 1);
            }
        }
        let mut found = BTreeMap::<(&str, &str), u32>::new();
        for (order, data) in of_orders(events, effect) {
            *found.entry((order, data["productId"].as_str().unwrap_or_default())).or_default() += 1;
        }
        for pair in expected.keys().chain(found.keys()) {
            let (found, expected) = (found.get(pair), expected.get(pair));
            ensure!(found == expected, "{effect} of {pair:?}: {found:?}, not {expected:?}");
        }
    }
    Ok(())
}

/// Each order's mail and webhook were sent, and again only under the same id.
fn check_messages(stack: &RunningStack, events: &[SequencedEvent]) -> Result<()> {
    let inbox = stack.inbox();
    for (reactor, folder, field) in [
        ("confirm-order", inbox.mails(), "message-id:"),
        ("notify-partner", inbox.webhooks(), "webhook-id:"),
    ] {
        let causes = ["OrderPlaced", "OrderCancelled"];
        let causes = events.iter().filter(|event| causes.contains(&&*event.event_type)).count();
        let mut found = BTreeSet::new();
        for file in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
            let text = std::fs::read_to_string(file?.path())?;
            let id = text.lines().find_map(|line| {
                let (name, id) = line.split_at_checked(field.len())?;
                name.eq_ignore_ascii_case(field).then(|| id.trim().to_owned())
            });
            found.insert(id.with_context(|| format!("{reactor}: {text}"))?);
        }
        ensure!(
            found.len() == causes,
            "{reactor} has sent {} messages for {causes} events",
            found.len()
        );
    }
    Ok(())
}

/// `ringfence verify` and `ringfence index verify` find nothing.
pub(super) async fn verify(command_line: &Path, stack: &RunningStack) -> Result<()> {
    for arguments in [&["verify"][..], &["index", "verify"]] {
        let mut program = Command::new(command_line);
        let output = program.args(arguments).envs(stack.variables()).output().await?;
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        ensure!(output.status.success(), "ringfence {}: {said}", arguments.join(" "));
    }
    Ok(())
}
