//! The log in memory: the same items, the same rules, no table.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::StreamExt;
use futures::stream::{BoxStream, iter};
use ringfence_dynamo::{Clock, Item};

use crate::item::{EVENT_STORE_ID, decode_named};
use crate::key::check_store;
use crate::list::{Key, applied, listed, token};
use crate::push::{Prepared, check};
use crate::{
    AggregateError, AggregateKey, GetEvents, List, ListAggregateIds, Listed, NewEvent, Place, Push,
    PushEvent, PushEventGroup, Range, StoredEvent, Version,
};

type Items = BTreeMap<AggregateKey, BTreeMap<u64, Item>>;

/// Event stores in memory; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    items: Arc<Mutex<Items>>,
    clock: Clock,
}

impl Memory {
    /// A log without events, with the time of `clock`.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self { items: Arc::default(), clock }
    }

    fn items(&self) -> MutexGuard<'_, Items> {
        // A push changes the items only after its last check.
        self.items.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, group: &[Push]) -> Result<Vec<StoredEvent>, AggregateError> {
        check(group)?;
        let mut items = self.items();
        let newest = |key| {
            let newest = items.get(key).and_then(|events| events.last_key_value());
            newest.map_or(Version::NONE, |(version, _)| Version(*version))
        };
        let firsts = group.iter().map(|push| push.place.first(&push.key, newest(&push.key)));
        let firsts = firsts.collect::<Result<Vec<_>, _>>()?;
        let push_id = self.clock.uuid().simple().to_string();
        let prepared = Prepared::new(group, &firsts, self.clock.now_ms(), push_id)?;
        let is_taken = |key, version| {
            items.get(key).is_some_and(|events: &BTreeMap<u64, Item>| events.contains_key(version))
        };
        let taken = prepared.entries.iter().find(|e| !e.forced && is_taken(&e.key, &e.version));
        if let Some(taken) = taken {
            return Err(taken.conflict());
        }
        for entry in prepared.entries {
            items.entry(entry.key).or_default().insert(entry.version, entry.item);
        }
        Ok(prepared.events)
    }
}

impl GetEvents for Memory {
    fn get_events<'a>(
        &'a self,
        key: &'a AggregateKey,
        range: Range,
    ) -> BoxStream<'a, Result<StoredEvent, AggregateError>> {
        let items = self.items();
        let mut found: Vec<_> = match items.get(key) {
            Some(events) if !range.is_empty() => {
                let (min, max) = (range.min_version, range.max_version);
                let within = events.range(min.unwrap_or(0)..=max.unwrap_or(u64::MAX));
                within.map(|(_, item)| decode_named(item.clone())).collect()
            }
            _ => Vec::new(),
        };
        if range.reverse {
            found.reverse();
        }
        found.truncate(range.limit.map_or(usize::MAX, |limit| limit as usize));
        iter(found).boxed()
    }
}

impl PushEvent for Memory {
    async fn push_event(
        &self,
        key: &AggregateKey,
        place: Place,
        event: NewEvent,
    ) -> Result<StoredEvent, AggregateError> {
        let pushed = self.push(&[Push { key: key.clone(), place, events: vec![event] }])?;
        Ok(pushed.into_iter().next().expect("one event was pushed"))
    }
}

impl PushEventGroup for Memory {
    async fn push_event_group(&self, group: Vec<Push>) -> Result<Vec<StoredEvent>, AggregateError> {
        self.push(&group)
    }
}

impl ListAggregateIds for Memory {
    async fn list_aggregate_ids(&self, store: &str, list: &List) -> Result<Listed, AggregateError> {
        check_store(store)?;
        let (list, start) = applied(list)?;
        let items = self.items();
        let initial = items.values().filter_map(|events| events.get(&1));
        let of_store = |item: &&Item| {
            item.get(EVENT_STORE_ID).and_then(|id| id.as_s().ok()).is_some_and(|id| id == store)
        };
        let place =
            |key: &Key| (key.timestamp.text().to_owned(), key.aggregate_id.text().to_owned());
        let mut found: Vec<_> = initial
            .filter(of_store)
            .filter_map(|item| Some((Key::of(item)?, item)))
            .filter(|(key, _)| {
                let timestamp = key.timestamp.text();
                let after = list.initial_event_after.as_deref().is_none_or(|a| timestamp >= a);
                after && list.initial_event_before.as_deref().is_none_or(|b| timestamp <= b)
            })
            .collect();
        found.sort_by_key(|(key, _)| place(key));
        if list.reverse.unwrap_or(false) {
            found.reverse();
        }
        let start = start.map(|key| place(&key));
        let begin = start.and_then(|start| found.iter().position(|(key, _)| place(key) == start));
        found.drain(..begin.map_or(0, |begin| begin + 1));
        let limit = list.limit.map_or(usize::MAX, |limit| limit.get() as usize);
        // As in DynamoDB, another page follows a full one, even if it is empty.
        let last = found.get(limit - 1).map(|(key, _)| key.clone());
        found.truncate(limit);
        let aggregates = found.iter().map(|(_, item)| listed(item)).collect::<Result<_, _>>()?;
        Ok(Listed { aggregates, next_page_token: last.map(|key| token(list, key)) })
    }
}
