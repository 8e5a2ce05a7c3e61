//! A log as its followers see it: the index, the EventTopic, and the template of a stack.

use std::collections::BTreeMap;
use std::fmt;

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use ringfence_aws::{Item, Meter, Retry, TableLayout};
use ringfence_core::{BoundaryId, Catalog, LogKind, LogName, SequencedEvent};

use crate::news::{Found, Run, Single, StreamError, slot_of};
use crate::{BoxError, InTable};

/// A log by its name, whose events others can follow.
pub trait Sourced: LogName {
    /// How others follow its events.
    const SOURCE: &'static dyn Source;
}

/// Facts that are the same for all tables of a log.
#[derive(Debug)]
pub struct SourceFacts {
    /// The log.
    pub kind: LogKind,
    /// Its name for people.
    pub name: &'static str,
    /// The logical id of its table in templates.
    pub table: &'static str,
    /// The environment variable of a function that names the log's table.
    pub variable: &'static str,
    /// The attributes of an item for its partition key, its sort key, and the type of its event.
    pub attributes: [&'static str; 3],
}

/// A partition, and the items of its new events, by slot.
pub type NewEvents = (BoundaryId, BTreeMap<u64, Item>);

/// A log as its followers see it.
pub trait Source: Send + Sync {
    /// Facts that are the same for all of its tables.
    fn facts(&self) -> &'static SourceFacts;

    /// The table for the events of a catalog.
    fn layout(&self, catalog: &Catalog) -> TableLayout;

    /// The log in a table, with the events of a catalog.
    fn open(&self, table: InTable, catalog: Catalog) -> OpenSource;

    /// The events that a NEW_IMAGE of its stream shows. An event that can't be unpacked fails alone.
    ///
    /// # Errors
    /// The image should contain events and can't be read.
    fn events(&self, image: Item) -> Result<Vec<Result<SequencedEvent, BoxError>>, BoxError>;

    /// The event of an item.
    ///
    /// # Errors
    /// The item can't be read.
    fn event(&self, item: Item) -> Result<SequencedEvent, BoxError>;

    /// Whether an event stays in the table as one item. Otherwise the index keeps its body.
    fn keeps_events(&self) -> bool {
        true
    }

    /// Whether an attribute of an item is only for an index of the table, and no part of the event.
    fn is_of_index(&self, _: &str) -> bool {
        false
    }

    /// The partition with this key in the table; `None` if the key can't be one.
    fn partition(&self, key: &str) -> Option<BoundaryId> {
        Some(BoundaryId::stored(key))
    }

    /// The place of an item's event, from the item's key alone.
    fn place(&self, item: &Item) -> Option<(BoundaryId, u64)> {
        let [key, slot, _] = self.facts().attributes;
        Some((self.partition(item.get(key)?.as_s().ok()?)?, slot_of(item, slot)?))
    }

    /// The partition of a NEW_IMAGE of its stream, and the items of its new events, by slot. `None` if the image shows
    /// no new event.
    ///
    /// # Errors
    /// The key in the image is not the key of an event.
    fn news(&self, image: Item) -> Result<Option<NewEvents>, BoxError> {
        let (partition, slot) = self.place(&image).ok_or("its key is not that of an event")?;
        Ok(Some((partition, [(slot, image)].into())))
    }

    /// Whether a system keeps its own state in a partition. The index does not take such events.
    fn is_internal(&self, _: &BoundaryId) -> bool {
        false
    }

    /// The append that put an event, if its item names one and is never changed. It differs between an event before a
    /// restore and another event in the same slot after it.
    fn append_id<'i>(&self, _: &'i Item) -> Option<&'i String> {
        None
    }
}

impl dyn Source + '_ {
    /// The name of an item for a person, even if the item can't be read.
    pub fn name(&self, item: &Item) -> String {
        let [key, slot, _] = self.facts().attributes;
        let key = item.get(key).and_then(|key| key.as_s().ok()).map_or("?", String::as_str);
        let slot = item.get(slot).and_then(|slot| slot.as_n().ok()).map_or("", String::as_str);
        format!("item {key} {slot}")
    }
}

impl fmt::Debug for dyn Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.facts().fmt(f)
    }
}

/// A log in its table.
pub struct OpenSource {
    /// The log.
    pub source: &'static dyn Source,
    /// Its table.
    pub table: Box<dyn SourceTable>,
}

impl fmt::Debug for OpenSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.fmt(f)
    }
}

/// The table of a log, as the index reads it.
pub trait SourceTable: Send + Sync {
    /// The events of a partition after slot `after`: all of them, or some and that there may be more. They are read
    /// strongly and have no gaps. `known` are events that the partition has, even if a read does not show them yet.
    fn news<'a>(
        &'a self,
        partition: &'a BoundaryId,
        after: Option<u64>,
        known: &'a BTreeMap<u64, Item>,
        retry: Retry,
    ) -> BoxFuture<'a, Result<Found, StreamError>>;

    /// The items of single events, in no order; those that are missing are left out. Only for logs that
    /// [keep events](Source::keeps_events), as [`SourceTable::run`].
    fn singles<'a>(
        &'a self,
        places: Vec<Single<'a>>,
        strong: bool,
    ) -> BoxFuture<'a, Result<Vec<Item>, StreamError>>;

    /// The items of events that follow one another in a partition.
    fn run<'a>(
        &'a self,
        run: Run<'a>,
        strong: bool,
    ) -> BoxFuture<'a, Result<Vec<Item>, StreamError>>;

    /// What its requests cost so far.
    fn meter(&self) -> &Meter;

    /// Everything that is committed, in no order. Reads the whole table.
    fn stored(&self) -> BoxStream<'_, Result<StoredEvents, StreamError>>;
}

/// An entry of a table.
pub enum StoredEvents {
    /// The item of an event.
    Event(Item),
    /// A stream whose events are parts of items: the events from `first` up to, but without, `end`.
    Stream {
        /// Its partition.
        partition: BoundaryId,
        /// The first remaining event.
        first: u64,
        /// The number after the last event.
        end: u64,
    },
    /// An item that belongs to no stream. The text names the item and the reason.
    Wrong(String),
}

/// An item that should be an event and can't be read.
#[derive(Debug, thiserror::Error)]
#[error("the item is not a complete event")]
pub struct EntryError(#[from] pub BoxError);

fn of_no_table() -> EntryError {
    EntryError("it has the key of no table of events".into())
}

/// The logs of a stack, each once. The key of an item shows to which log it belongs.
#[derive(Clone, Debug, Default)]
pub struct Sources(Vec<&'static dyn Source>);

impl<const N: usize> From<[&'static dyn Source; N]> for Sources {
    fn from(sources: [&'static dyn Source; N]) -> Self {
        let mut all = Self::default();
        sources.into_iter().for_each(|source| all.add(source));
        all
    }
}

impl Sources {
    /// Adds a log, unless it is there already. The order is the order of [`LogKind`].
    pub fn add(&mut self, source: &'static dyn Source) {
        let place = self.0.binary_search_by_key(&source.facts().kind, |it| it.facts().kind);
        if let Err(place) = place {
            self.0.insert(place, source);
        }
    }

    /// Each log.
    pub fn iter(&self) -> impl Iterator<Item = &'static dyn Source> {
        self.0.iter().copied()
    }

    /// The log of an item, from its key.
    #[must_use]
    pub fn of(&self, item: &Item) -> Option<&'static dyn Source> {
        self.iter().find(|source| item.contains_key(source.facts().attributes[0]))
    }

    /// The events that a NEW_IMAGE of one of the tables' streams shows: one event if the item is an event, the events
    /// of the append if the item is a document, otherwise nothing.
    ///
    /// # Errors
    /// The image should contain events and can't be read. An event of a document that can't be unpacked fails alone.
    pub fn events(
        &self,
        image: Item,
    ) -> Result<Vec<Result<SequencedEvent, EntryError>>, EntryError> {
        let events = self.of(&image).ok_or_else(of_no_table)?.events(image)?;
        Ok(events.into_iter().map(|event| event.map_err(EntryError)).collect())
    }

    /// The log and the partition of a NEW_IMAGE of one of the tables' streams, and the items of its new events, by
    /// slot. `None` if the image shows no new event.
    ///
    /// # Errors
    /// The image belongs to none of the tables.
    pub fn news(&self, image: Item) -> Result<Option<(LogKind, NewEvents)>, EntryError> {
        let source = self.of(&image).ok_or_else(of_no_table)?;
        let news = source.news(image)?;
        Ok(news.map(|news| (source.facts().kind, news)))
    }

    /// The event of an item.
    ///
    /// # Errors
    /// The item can't be read, or belongs to none of the logs.
    pub fn event(&self, item: Item) -> Result<SequencedEvent, EntryError> {
        Ok(self.of(&item).ok_or_else(of_no_table)?.event(item)?)
    }
}
