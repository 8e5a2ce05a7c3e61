//! The three tables, a log, an indexer, and functions that look at the views.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::AttributeValue;
use futures::TryStreamExt;
use ringfence_aws::wire::{Backend, Director, Exchange, Wire};
use ringfence_aws::{Clock, Retry, from_attribute, seed_thread};
use ringfence_core::{
    Append, Appended, Catalog, CatalogError, Catalogs, Envelope, EventLog, NewEvent, SequencedEvent,
};
use ringfence_dcb_log::DcbLog;
use ringfence_feed::{Checkpoints, Index, Indexer, Until};
use ringfence_local::engine::Engine;
use ringfence_views::project_views::{Round, run_views};
use ringfence_views::{
    Content, Definition, Generation, Parked, Projector, Ran, Shown, ViewError, ViewReader, Wait,
};
use serde_json::{Value, json};

/// 2024-06-23T00:00:00Z.
pub(crate) const NOW_MS: u64 = 1_719_100_800_000;
/// Longer than anything takes.
pub(crate) const LONG: Duration = Duration::from_secs(3_600);
pub(crate) const FIRST: Generation = generation(1);
pub(crate) const SECOND: Generation = generation(2);

/// A generation in one shard.
pub(crate) const fn generation(number: u64) -> Generation {
    Generation { number, shards: 1 }
}

pub(crate) struct World {
    pub(crate) engine: Engine,
    pub(crate) wire: Wire,
    pub(crate) client: Client,
    pub(crate) clock: Clock,
    pub(crate) log: DcbLog,
    pub(crate) indexer: Indexer,
    pub(crate) index: Index,
}

impl World {
    pub(crate) fn new(seed: u64, catalog: Result<Catalog, CatalogError>) -> Self {
        seed_thread(seed);
        let engine = Engine::memory().unwrap();
        engine.create_table(&table(("id", "S"), ("position", "N")), "events").unwrap();
        engine.create_table(&table(("p", "S"), ("i", "N")), "index").unwrap();
        engine.create_table(&table(("view", "S"), ("id", "S")), "views").unwrap();
        let wire = Wire::default();
        let client = wire.client_of(store(&engine));
        let clock = Clock::running(NOW_MS);
        let log = || DcbLog::new(client.clone(), "events", catalog.clone().unwrap(), clock.clone());
        let indexer = Indexer::new([log().into()], client.clone(), "index")
            .epoch_entries(23.try_into().expect("entries of an epoch"));
        let index = Index::new(client.clone(), "index", [log().into()]);
        Self { engine, log: log(), wire, client: client.clone(), clock, indexer, index }
    }

    /// Appends from now on as a program with these types.
    pub(crate) fn program(&mut self, catalog: Result<Catalog, CatalogError>) {
        self.log = DcbLog::new(self.client.clone(), "events", catalog.unwrap(), self.clock.clone());
    }

    pub(crate) fn direct(&self, director: &Arc<impl Director + 'static>) {
        self.wire.direct(director.clone());
    }

    pub(crate) fn projector(&self) -> Projector {
        Projector::new(
            self.client.clone(),
            self.index.clone(),
            "views",
            Catalogs::default(),
            self.clock.clone(),
        )
    }

    /// How far the notification asks to go that the pages of the index bring.
    pub(crate) fn notification(&self) -> Until {
        let scan = br##"{"TableName":"index","FilterExpression":"begins_with(#p,:p)",
            "ExpressionAttributeNames":{"#p":"p"},"ExpressionAttributeValues":{":p":{"S":"$AppendsEpoch"}}}"##;
        let (_, pages) = self.engine.call("Scan", scan);
        let pages: Value = serde_json::from_slice(&pages).unwrap();
        let record = |page: &Value| json!({ "dynamodb": { "Keys": page } });
        let records: Vec<_> = pages["Items"].as_array().unwrap().iter().map(record).collect();
        Until::of_records(&json!({ "Records": records }))
    }

    pub(crate) fn checkpoints(&self) -> Checkpoints {
        Checkpoints::new(self.client.clone(), "views")
    }

    pub(crate) fn reader(&self) -> ViewReader {
        ViewReader::new(self.client.clone(), self.index.clone(), "views", &[crate::notes::view()])
    }

    pub(crate) async fn append(&self, events: Vec<NewEvent>) -> Vec<SequencedEvent> {
        let envelope = Envelope::default();
        let append = Append { events, seen: None, record: None, envelope: &envelope };
        match self.log.append(append).await {
            Ok(Appended::Committed(events)) => events,
            other => panic!("not committed: {other:?}"),
        }
    }

    /// Appends the events, each in a transaction, and indexes them.
    pub(crate) async fn publish(
        &self,
        events: impl IntoIterator<Item = NewEvent>,
    ) -> Vec<SequencedEvent> {
        let mut published = Vec::new();
        for event in events {
            published.extend(self.append(vec![event]).await);
        }
        let partitions = published.iter().map(|event| event.partition.clone());
        for (partition, outcome) in self.indexer.index(partitions, Retry::default()).await {
            outcome.unwrap_or_else(|error| panic!("{partition}: {error}"));
        }
        published
    }

    /// Applies new events to a generation.
    pub(crate) async fn run(&self, view: &Definition, of: Generation) -> Result<Ran, ViewError> {
        let registered = self.projector().register(view).await?;
        let mut ran = Ran::default();
        self.projector().run(view, of, LONG, &mut ran).await?;
        self.projector().serve(view, &registered, &ran).await?;
        Ok(ran)
    }

    /// A run of all views to the present.
    pub(crate) async fn round(&self, projector: &Projector, views: &[Definition]) -> Round {
        run_views(projector, views, Until::Present, LONG, &self.clock, "request-1").await
    }

    /// The parked rows of the notes, each with its event and the cause.
    pub(crate) async fn parked(&self) -> Vec<(String, Parked)> {
        self.projector().parked(&crate::notes::view()).await.unwrap()
    }

    /// Every event, in the order of the index.
    pub(crate) async fn events(&self) -> Vec<SequencedEvent> {
        let entries = self.index.read(Default::default(), ringfence_feed::Until::Present);
        entries.map_ok(|entry| entry.event).try_collect().await.unwrap()
    }

    /// The rows of a generation that are not parked, as they are stored.
    pub(crate) async fn rows(&self, view: &str, of: Generation) -> BTreeMap<String, Value> {
        let shard = |n| if of.shards == 1 { String::new() } else { format!("#{n}") };
        let mut rows = BTreeMap::new();
        for key in (0..of.shards).map(|n| format!("{view}#{of}{}", shard(n))) {
            let query = self.client.query().table_name("views").consistent_read(true);
            let query = query.key_condition_expression("#view = :view");
            let query = query.expression_attribute_names("#view", "view");
            let query = query.expression_attribute_values(":view", AttributeValue::S(key));
            let items = query.into_paginator().items().send();
            let items: Vec<_> = items.collect::<Result<_, _>>().await.unwrap();
            rows.extend(items.into_iter().filter_map(|mut item: ringfence_aws::Item| {
                let row = from_attribute("row", item.remove("row")?).unwrap();
                Some((item["id"].as_s().unwrap().clone(), row))
            }));
        }
        rows
    }

    /// Deletes what the store has to delete by now. Returns how many items.
    pub(crate) async fn sweep(&self) -> usize {
        let now = AttributeValue::N((self.clock.now_ms() / 1_000).to_string());
        let scan = self.client.scan().table_name("views").filter_expression("#at < :now");
        let scan = scan.expression_attribute_names("#at", "expiresAt");
        let scan = scan.expression_attribute_values(":now", now);
        let gone = scan.send().await.unwrap().items.unwrap_or_default();
        for item in &gone {
            let key = ["view", "id"].map(|name| (name.to_owned(), item[name].clone()));
            let delete = self.client.delete_item().table_name("views").set_key(Some(key.into()));
            delete.send().await.unwrap();
        }
        gone.len()
    }

    /// How often each row of the notes' first generation was noted.
    pub(crate) async fn counts(&self, of: Generation) -> BTreeMap<String, u64> {
        let rows = self.rows("notes", of).await.into_iter();
        rows.map(|(id, row)| (id, row["count"].as_u64().unwrap())).collect()
    }

    /// The operations since the last look, with the units that each consumed.
    pub(crate) fn units(&self) -> Vec<(String, f64)> {
        let units = |exchange: Exchange| {
            let consumed = &exchange.answer["ConsumedCapacity"];
            let each = match consumed {
                Value::Array(tables) => tables.iter().collect(),
                one => vec![one],
            };
            let sum = each.iter().map(|table| table["CapacityUnits"].as_f64().unwrap()).sum();
            (exchange.operation, sum)
        };
        self.wire.take().into_iter().map(units).collect()
    }
}

/// How often the row was noted.
#[track_caller]
pub(crate) fn count(shown: Option<Shown>) -> u64 {
    match shown.expect("the row is there").content {
        Content::Row(row) => row["count"].as_u64().unwrap(),
        Content::Parked(parked) => panic!("{parked:?}"),
    }
}

pub(crate) fn wait(event: &SequencedEvent, ms: u64) -> Wait {
    Wait { partition: event.partition.clone(), slot: event.slot, most: Duration::from_millis(ms) }
}

pub(crate) fn store(engine: &Engine) -> Backend {
    let engine = engine.clone();
    Arc::new(move |operation: &str, body: &[u8]| engine.call(operation, body))
}

fn table(hash: (&str, &str), range: (&str, &str)) -> Value {
    let key = |name: &str, kind: &str| json!({ "AttributeName": name, "KeyType": kind });
    let attribute =
        |(name, kind): (&str, &str)| json!({ "AttributeName": name, "AttributeType": kind });
    json!({
        "KeySchema": [key(hash.0, "HASH"), key(range.0, "RANGE")],
        "AttributeDefinitions": [attribute(hash), attribute(range)],
    })
}
