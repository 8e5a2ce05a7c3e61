//! A store with limits. It refuses requests as DynamoDB does when a key range, a table or an index has used up what it
//! may consume in a second.
//!
//! Facts of the DynamoDB Developer Guide: a key range (a partition of DynamoDB) consumes at most 1,000 write units and
//! 3,000 read units a second, in each capacity mode; a new on-demand table has four ranges; a table consumes at most
//! 40,000 units of each kind; a write whose condition fails costs as much as the item that is there; a write is refused
//! if an index of the table can't take it.
//!
//! Simplified: ranges are equal parts of the hashes of partition keys and never split. A bucket holds the units of one
//! second; no burst above a range's maximum is documented. It is empty at first. A range refuses as soon as its bucket
//! is overdrawn; DynamoDB refuses a little later and unevenly. A refused request costs nothing.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value, json};
use tokio::time::Instant;

mod request;

use super::backend::{Backend, json};
use crate::clock::monotonic;
use crate::meter::{Kind, Units};
use crate::{transact_write_units, write_units};
use request::{action, asked, item, item_bytes, leave_out, refused, table};

/// The most units of each kind that a table consumes in a second, unless AWS raises the quota.
const TABLE_UNITS_MAX: f64 = 40_000.0;

/// How many units a second a key range of a table or an index takes.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The number of ranges.
    pub ranges: u64,
    /// Write units of a range a second.
    pub write: f64,
    /// Read units of a range a second.
    pub read: f64,
}

impl Default for Limits {
    /// The limits of a new on-demand table.
    fn default() -> Self {
        Self { ranges: 4, write: 1_000.0, read: 3_000.0 }
    }
}

/// A store with limits. Clones share the buckets.
#[derive(Clone)]
pub struct Capacity(Arc<Shared>);

struct Shared {
    engine: Backend,
    limits: Limits,
    /// The buckets were empty then.
    began: Instant,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    tables: HashMap<String, Option<Layout>>,
    /// The units that are left in a bucket, and when.
    buckets: HashMap<(Scope, Kind), (f64, Instant)>,
    consumed: BTreeMap<String, Units>,
    refused: u64,
}

/// The keys of a table.
#[derive(Clone)]
struct Layout {
    arn: String,
    keys: Vec<String>,
    /// The name and the partition key of each index.
    indexes: Vec<(String, String)>,
}

/// A key range, or as a whole a table or an index, named `<table>` or `<table>/<index>`.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Scope {
    resource: String,
    range: Option<u64>,
}

/// An item that a request reads or writes, or the items of one partition key.
struct Want {
    table: String,
    /// The item that is put, or the key.
    item: Value,
    /// The range of the table or index, and the ranges of the indexes that a put reaches.
    scopes: Vec<Scope>,
    /// The units of the item that is put.
    units: f64,
}

/// Whether an operation reads or writes items; `None` for others.
fn kind(operation: &str) -> Option<Kind> {
    match operation {
        "GetItem" | "Query" | "Scan" | "BatchGetItem" | "TransactGetItems" => Some(Kind::Read),
        "PutItem" | "UpdateItem" | "DeleteItem" | "BatchWriteItem" | "TransactWriteItems" => {
            Some(Kind::Write)
        }
        _ => None,
    }
}

impl Capacity {
    /// The engine with these limits. It must also answer `DescribeTable`.
    #[must_use]
    pub fn new(engine: Backend, limits: Limits) -> Self {
        let state = Mutex::default();
        Self(Arc::new(Shared { engine, limits, began: monotonic(), state }))
    }

    /// The store for the client of a wire.
    #[must_use]
    pub fn backend(&self) -> Backend {
        let this = self.clone();
        Arc::new(move |operation: &str, body: &[u8]| this.call(operation, body))
    }

    /// Whether there are limits for an operation.
    #[must_use]
    pub fn is_limited(operation: &str) -> bool {
        kind(operation).is_some()
    }

    /// How many requests were refused. A batch counts if a part of it was refused.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.with(|state| state.refused)
    }

    /// The units of a table, or of an index by `<table>/<index>`.
    #[must_use]
    pub fn consumed(&self, resource: &str) -> Units {
        self.with(|state| state.consumed.get(resource).copied().unwrap_or_default())
    }

    /// The key range of a partition key.
    #[must_use]
    pub fn range(&self, key: &str) -> u64 {
        BuildHasherDefault::<DefaultHasher>::default().hash_one(key) % self.0.limits.ranges
    }

    /// Carries out an operation, or refuses it.
    #[must_use]
    pub fn call(&self, operation: &str, body: &[u8]) -> (u16, Vec<u8>) {
        let Some(kind) = kind(operation) else { return (self.0.engine)(operation, body) };
        let mut request = json(body);
        let wants = self.wants(operation, &request);
        let refusals: Vec<_> = wants.iter().map(|want| self.refusal(kind, want)).collect();
        let left = match refusals.iter().flatten().count() {
            0 => None,
            count => {
                self.with(|state| state.refused += 1);
                if count == wants.len() || !operation.starts_with("Batch") {
                    return refused(operation, &refusals);
                }
                Some(leave_out(&mut request, &refusals))
            }
        };
        request["ReturnConsumedCapacity"] = "INDEXES".into();
        let (status, text) = (self.0.engine)(operation, request.to_string().as_bytes());
        let mut answer = json(&text);
        let wants = wants.iter().zip(&refusals).filter(|(_, refusal)| refusal.is_none());
        let wants: Vec<_> = wants.map(|(want, _)| want).collect();
        match status {
            200 => self.charge(kind, &wants, &answer),
            _ if kind == Kind::Write => self.charge_failed(&wants, &answer),
            _ => {}
        }
        let Some(left) = left.filter(|_| status == 200) else { return (status, text) };
        let name = if kind == Kind::Read { "UnprocessedKeys" } else { "UnprocessedItems" };
        answer[name] = left.into();
        (status, answer.to_string().into_bytes())
    }

    fn wants(&self, operation: &str, request: &Value) -> Vec<Want> {
        let list = |of: &Value| of.as_array().cloned().unwrap_or_default();
        match operation {
            "Query" | "Scan" => vec![self.query(request)],
            "BatchGetItem" | "BatchWriteItem" => {
                let tables = request["RequestItems"].as_object().into_iter().flatten();
                let wants = tables.flat_map(|(table, of_table)| {
                    let of_table = match of_table.get("Keys") {
                        Some(keys) => list(keys),
                        None => list(of_table).iter().map(|write| item(action(write))).collect(),
                    };
                    of_table.into_iter().map(|item| self.want(table, item, operation))
                });
                wants.collect()
            }
            "TransactGetItems" | "TransactWriteItems" => {
                let of = |part: &Value| {
                    let action = action(part);
                    self.want(table(action), item(action), operation)
                };
                list(&request["TransactItems"]).iter().map(of).collect()
            }
            _ => vec![self.want(table(request), item(request), operation)],
        }
    }

    fn want(&self, table: &str, item: Value, operation: &str) -> Want {
        let mut scopes = Vec::new();
        if let Some(Layout { keys, indexes, .. }) = self.layout(table) {
            scopes.extend(keys.first().map(|hash| self.scope(table.to_owned(), item.get(hash))));
            if kind(operation) == Some(Kind::Write) {
                let reached = indexes.iter().filter(|(_, hash)| item.get(hash).is_some());
                scopes.extend(
                    reached.map(|(index, hash)| {
                        self.scope(format!("{table}/{index}"), item.get(hash))
                    }),
                );
            }
        }
        let units = write_units(item.as_object().map_or(0, item_bytes));
        Want { table: table.to_owned(), item, scopes, units }
    }

    /// A scan reads ranges in turn; it counts for the table alone.
    fn query(&self, request: &Value) -> Want {
        let table = table(request);
        let layout = self.layout(table);
        let (resource, hash) = match request["IndexName"].as_str() {
            None => (table.to_owned(), layout.and_then(|layout| layout.keys.first().cloned())),
            Some(index) => {
                let indexes = layout.map(|layout| layout.indexes).unwrap_or_default();
                let hash = indexes.into_iter().find(|(name, _)| name == index);
                (format!("{table}/{index}"), hash.map(|(_, hash)| hash))
            }
        };
        let key = hash.and_then(|hash| asked(request, &hash));
        let scopes = vec![self.scope(resource, key)];
        Want { table: table.to_owned(), item: Value::Null, scopes, units: 1.0 }
    }

    fn scope(&self, resource: String, key: Option<&Value>) -> Scope {
        let text = key.and_then(Value::as_object).and_then(|key| key.values().next());
        Scope { resource, range: text.and_then(Value::as_str).map(|text| self.range(text)) }
    }

    fn layout(&self, table: &str) -> Option<Layout> {
        if let Some(known) = self.with(|state| state.tables.get(table).cloned()) {
            return known;
        }
        let request = json!({ "TableName": table }).to_string();
        let (_, described) = (self.0.engine)("DescribeTable", request.as_bytes());
        let described = &json(&described)["Table"];
        let keys = |of: &Value| -> Vec<String> {
            let keys = of["KeySchema"].as_array().into_iter().flatten();
            keys.filter_map(|key| key["AttributeName"].as_str().map(str::to_owned)).collect()
        };
        let indexes = described["GlobalSecondaryIndexes"].as_array().into_iter().flatten();
        let indexes = indexes.filter_map(|index| {
            Some((index["IndexName"].as_str()?.to_owned(), keys(index).into_iter().next()?))
        });
        let layout = described["TableArn"].as_str().map(|arn| Layout {
            arn: arn.to_owned(),
            keys: keys(described),
            indexes: indexes.collect(),
        });
        self.with(|state| state.tables.insert(table.to_owned(), layout.clone()));
        layout
    }

    /// Why the item can't be read or written now, in the form of DynamoDB's `ThrottlingReasons`.
    fn refusal(&self, kind: Kind, want: &Want) -> Option<Value> {
        let overdrawn = |scope: &Scope| self.with(|state| self.bucket(state, scope, kind).0 < 0.0);
        let (scope, limit) = want.scopes.iter().find_map(|scope| {
            let whole = Scope { range: None, ..scope.clone() };
            match scope.range {
                Some(_) if overdrawn(scope) => Some((scope, "KeyRangeThroughputExceeded")),
                _ if overdrawn(&whole) => Some((scope, "AccountLimitExceeded")),
                _ => None,
            }
        })?;
        let arn = self.layout(&want.table)?.arn;
        let (of, resource) = match scope.resource.split_once('/') {
            None => ("Table", arn),
            Some((_, index)) => ("Index", format!("{arn}/index/{index}")),
        };
        Some(json!({ "reason": format!("{of}{kind:?}{limit}"), "resource": resource }))
    }

    /// The bucket as it is now.
    fn bucket<'s>(
        &self,
        state: &'s mut State,
        scope: &Scope,
        kind: Kind,
    ) -> &'s mut (f64, Instant) {
        let Limits { ranges, write, read } = self.0.limits;
        let of_range = if kind == Kind::Read { read } else { write };
        let whole = (of_range * ranges as f64).min(TABLE_UNITS_MAX);
        let rate = if scope.range.is_some() { of_range } else { whole };
        let bucket = state.buckets.entry((scope.clone(), kind)).or_insert((0.0, self.0.began));
        let now = monotonic();
        let passed = now.saturating_duration_since(bucket.1).as_secs_f64();
        *bucket = ((bucket.0 + passed * rate).min(rate), now);
        bucket
    }

    /// Charges the units that the answer reports.
    fn charge(&self, kind: Kind, wants: &[&Want], answer: &Value) {
        let consumed = &answer["ConsumedCapacity"];
        let tables = consumed.as_array().map_or(std::slice::from_ref(consumed), Vec::as_slice);
        for of_table in tables {
            let table = table(of_table).to_owned();
            let base = of_table.get("Table").unwrap_or(of_table);
            let indexes = of_table["GlobalSecondaryIndexes"].as_object().into_iter().flatten();
            let indexes = indexes.map(|(index, units)| (format!("{table}/{index}"), units));
            for (resource, units) in indexes.chain([(table.clone(), base)]) {
                // A transaction that is sent again reads.
                let is_read = units.get("ReadCapacityUnits").is_some();
                let kind = if is_read { Kind::Read } else { kind };
                let units = units["CapacityUnits"].as_f64().unwrap_or_default();
                let scopes = |want: &&Want| -> Vec<(Scope, f64)> {
                    let of = want.scopes.iter().filter(|scope| scope.resource == resource);
                    of.map(|scope| (scope.clone(), want.units)).collect()
                };
                let mut parts: Vec<_> = wants.iter().flat_map(scopes).collect();
                if parts.is_empty() {
                    parts.push((Scope { resource, range: None }, 1.0));
                }
                let sum: f64 = parts.iter().map(|(_, weight)| weight).sum();
                for (scope, weight) in parts {
                    self.spend(&scope, kind, units * weight / sum);
                }
            }
        }
    }

    /// Charges a write that failed: as the item that is there, and in a transaction each of the others as if it had been
    /// written.
    fn charge_failed(&self, wants: &[&Want], answer: &Value) {
        let failed = |code: &Value| {
            code.as_str().is_some_and(|code| code.contains("ConditionalCheckFailed"))
        };
        let there = |want: &Want| {
            let keys = self.layout(&want.table).map(|layout| layout.keys).unwrap_or_default();
            let key: Map<_, _> =
                keys.into_iter().map(|key| (key.clone(), want.item[&key].clone())).collect();
            let get = json!({ "TableName": want.table, "Key": key, "ConsistentRead": true });
            let (_, found) = (self.0.engine)("GetItem", get.to_string().as_bytes());
            json(&found)["Item"].as_object().map_or(0, item_bytes)
        };
        let of_table = |want: &Want| want.scopes.first().cloned();
        match (answer["CancellationReasons"].as_array(), wants) {
            (Some(reasons), _) => {
                for (want, reason) in wants.iter().zip(reasons) {
                    let there = if failed(&reason["Code"]) { there(want) } else { 0 };
                    let units = transact_write_units(there).max(2.0 * want.units);
                    of_table(want)
                        .into_iter()
                        .for_each(|scope| self.spend(&scope, Kind::Write, units));
                }
            }
            (None, [want]) if failed(&answer["__type"]) => {
                let units = write_units(there(want));
                of_table(want).into_iter().for_each(|scope| self.spend(&scope, Kind::Write, units));
            }
            _ => {}
        }
    }

    fn spend(&self, scope: &Scope, kind: Kind, units: f64) {
        self.with(|state| {
            if scope.range.is_some() {
                self.bucket(state, scope, kind).0 -= units;
            }
            let whole = Scope { range: None, ..scope.clone() };
            self.bucket(state, &whole, kind).0 -= units;
            let consumed = state.consumed.entry(whole.resource).or_default();
            match kind {
                Kind::Read => consumed.read += units,
                Kind::Write => consumed.write += units,
            }
        });
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.0.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests;
