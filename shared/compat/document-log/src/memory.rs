//! The log in memory: for tests, with the rules of the table.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;
use ringfence_aws::{Failure, Item};
use ringfence_core::Consistency;

use crate::batch::TIP_KEY;
use crate::{
    Batch, Direction, Head, ItemPage, ItemQuery, Store, StreamName, Streams, TipChange, Write,
};

/// The key of an item: its stream, and its place in it.
type Key = (StreamName, i64);

/// Items that last as long as the process; clones share them.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore(Arc<Mutex<BTreeMap<Key, Batch>>>);

impl MemoryStore {
    fn with<T>(&self, act: impl FnOnce(&mut BTreeMap<Key, Batch>) -> T) -> T {
        // Every change is one insertion, or two with a calf, and can't panic half-way.
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Store for MemoryStore {
    fn tip<'a>(
        &'a self,
        stream: &'a StreamName,
        _: Consistency,
    ) -> BoxFuture<'a, Result<Option<Batch>, Failure>> {
        Box::pin(
            async move { Ok(self.with(|items| items.get(&(stream.clone(), TIP_KEY)).cloned())) },
        )
    }

    fn query<'a>(&'a self, query: ItemQuery<'a>) -> BoxFuture<'a, Result<ItemPage, Failure>> {
        Box::pin(async move {
            let key = |key: i64| (query.stream.clone(), key);
            let (first, last) = (Bound::Included(key(0)), Bound::Included(key(TIP_KEY)));
            let range = match (query.direction, query.beyond) {
                (_, None) => (first, last),
                (Direction::Forward, Some(TIP_KEY..)) | (Direction::Backward, Some(..=0)) => {
                    return Ok(ItemPage::default());
                }
                (Direction::Forward, Some(beyond)) => (Bound::Excluded(key(beyond)), last),
                (Direction::Backward, Some(beyond)) => (first, Bound::Excluded(key(beyond))),
            };
            let most = query.items_max.and_then(|most| usize::try_from(most).ok());
            let most = most.unwrap_or(usize::MAX);
            Ok(self.with(|items| {
                let range = items.range(range).map(|(_, batch)| batch.clone());
                let batches: Vec<_> = match query.direction {
                    Direction::Forward => range.take(most).collect(),
                    Direction::Backward => range.rev().take(most).collect(),
                };
                ItemPage { more: batches.len() == most, batches }
            }))
        })
    }

    fn write<'a>(&'a self, write: &'a Write) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            self.with(|items| {
                let stream = &write.tip.stream;
                let found = items.get(&(stream.clone(), TIP_KEY)).cloned();
                let calved = |calf: &Batch| items.contains_key(&(stream.clone(), calf.key));
                if !write.fits(found.as_ref()) || write.calf.as_ref().is_some_and(calved) {
                    return Err(Failure::Condition(found.map(|found| found.to_item())));
                }
                let held = found.map(|found| found.events).unwrap_or_default();
                let mut tip = write.tip.clone();
                if let TipChange::Extend(added) = write.change {
                    let new = tip.events.split_off(tip.events.len() - added);
                    tip.events = held.into_iter().chain(new).collect();
                }
                for batch in write.calf.iter().chain([&tip]) {
                    items.insert((stream.clone(), batch.key), batch.clone());
                }
                Ok(())
            })
        })
    }

    fn delete<'a>(
        &'a self,
        stream: &'a StreamName,
        key: i64,
    ) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            self.with(|items| items.remove(&(stream.clone(), key)));
            Ok(())
        })
    }

    fn streams(&self, _: Option<Item>) -> BoxFuture<'_, Result<Streams, Failure>> {
        Box::pin(async move {
            let heads = |items: &mut BTreeMap<Key, Batch>| {
                let head = |item: &Batch| {
                    let (stream, version) = (item.stream.clone(), item.version);
                    Ok(Head { stream, first: item.base(), version })
                };
                items.values().map(head).collect()
            };
            Ok(Streams { heads: self.with(heads), next: None })
        })
    }
}
