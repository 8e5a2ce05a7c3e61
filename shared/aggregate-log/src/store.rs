//! Event stores: the events of one kind of aggregate and their fold, typed.

use futures::stream::{BoxStream, StreamExt, TryStreamExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{
    AggregateError, AggregateKey, CommandError, GetEvents, List, ListAggregateIds, Listed,
    NewEvent, Place, Push, PushEvent, PushEventGroup, Range, StoredEvent, Version,
};

/// The events of one kind of aggregate.
///
/// `Event` is an enum that serde tags adjacently, which is the layout of the table:
/// `#[serde(tag = "type", content = "payload")]`.
pub trait EventStore {
    /// Names the store; no `#`.
    const ID: &'static str;
    /// Its events.
    type Event: Serialize + DeserializeOwned + Send + 'static;
    /// What its events fold to.
    type Aggregate: Send;

    /// The aggregate after one more event; `None` is the one before its first.
    fn reduce(aggregate: Option<Self::Aggregate>, event: &Recorded<Self::Event>)
    -> Self::Aggregate;

    /// Names an aggregate of this store.
    ///
    /// # Errors
    /// [`AggregateError::Key`] for an id that names none.
    fn key(id: &str) -> Result<AggregateKey, AggregateError> {
        Ok(AggregateKey::new(Self::ID, id)?)
    }

    /// The events of `key` in `range`. Fails as [`GetEvents::get_events`], and with an event that
    /// is none of this store's.
    fn get_events<'a, L: GetEvents>(
        log: &'a L,
        key: &'a AggregateKey,
        range: Range,
    ) -> BoxStream<'a, Result<Recorded<Self::Event>, AggregateError>> {
        log.get_events(key, range).map(|event| event.and_then(Recorded::of::<Self>)).boxed()
    }

    /// The aggregate `id`, up to `max_version` if there is one.
    ///
    /// # Errors
    /// As [`EventStore::get_events`].
    fn get_aggregate<L: GetEvents>(
        log: &L,
        id: &str,
        max_version: Option<u64>,
    ) -> impl Future<Output = Result<Aggregate<Self>, AggregateError>> + Send {
        async move {
            let key = Self::key(id)?;
            let range = Range { max_version, ..Range::default() };
            let events = Self::get_events(log, &key, range);
            let empty = Aggregate::new(key.clone());
            events.try_fold(empty, async |aggregate, event| Ok(aggregate.apply(&event))).await
        }
    }

    /// The aggregate `id`, which there has to be.
    ///
    /// # Errors
    /// [`AggregateError::NotFound`], or as [`EventStore::get_events`].
    fn get_existing_aggregate<L: GetEvents>(
        log: &L,
        id: &str,
        max_version: Option<u64>,
    ) -> impl Future<Output = Result<Aggregate<Self>, AggregateError>> + Send {
        async move {
            let aggregate = Self::get_aggregate(log, id, max_version).await?;
            match aggregate.version {
                Version::NONE => Err(AggregateError::NotFound(aggregate.key)),
                _ => Ok(aggregate),
            }
        }
    }

    /// Pushes one event behind the aggregate as it was read, and returns the aggregate after it.
    ///
    /// # Errors
    /// As [`PushEvent::push_event`].
    fn push_event<L: PushEvent>(
        log: &L,
        aggregate: Aggregate<Self>,
        event: impl Into<Draft<Self::Event>>,
    ) -> impl Future<Output = Result<Aggregate<Self>, AggregateError>> + Send {
        let event = event.into().encode();
        async move {
            let place = Place::After(aggregate.version);
            let pushed = log.push_event(&aggregate.key, place, event?).await?;
            Ok(aggregate.apply(&Recorded::of::<Self>(pushed)?))
        }
    }

    /// Reads the aggregate `id`, decides, and pushes the decision's events behind what was read:
    /// one in one put, several in one transaction, none without a request.
    ///
    /// # Errors
    /// The decision's rejection, or as the read and the push.
    fn decide<L: GetEvents + PushEventGroup, R: Send>(
        log: &L,
        id: &str,
        decide: impl FnOnce(Option<&Self::Aggregate>) -> Result<Vec<Self::Event>, R> + Send,
    ) -> impl Future<Output = Result<Aggregate<Self>, CommandError<R>>> + Send {
        async move {
            let aggregate = Self::get_aggregate(log, id, None).await?;
            let events = decide(aggregate.state.as_ref()).map_err(CommandError::Rejected)?;
            if events.is_empty() {
                return Ok(aggregate);
            }
            let pushed = log.push_event_group(vec![aggregate.push(events)?]).await?;
            let apply = |aggregate: Aggregate<Self>, event| {
                Ok::<_, AggregateError>(aggregate.apply(&Recorded::of::<Self>(event)?))
            };
            Ok(pushed.into_iter().try_fold(aggregate, apply)?)
        }
    }

    /// One page of this store's aggregates.
    ///
    /// # Errors
    /// As [`ListAggregateIds::list_aggregate_ids`].
    fn list_aggregate_ids<L: ListAggregateIds>(
        log: &L,
        list: &List,
    ) -> impl Future<Output = Result<Listed, AggregateError>> + Send {
        log.list_aggregate_ids(Self::ID, list)
    }
}

/// An aggregate as its events up to some version make it.
pub struct Aggregate<S: EventStore + ?Sized> {
    /// Its name.
    pub key: AggregateKey,
    /// What was folded.
    pub version: Version,
    /// What came of it; `None` before the first event.
    pub state: Option<S::Aggregate>,
}

impl<S: EventStore + ?Sized> Aggregate<S> {
    /// One without events, which takes no read to know of a new id.
    #[must_use]
    pub fn new(key: AggregateKey) -> Self {
        Self { key, version: Version::NONE, state: None }
    }

    /// The aggregate after one more of its events.
    #[must_use]
    pub fn apply(self, event: &Recorded<S::Event>) -> Self {
        let state = Some(S::reduce(self.state, event));
        Self { key: self.key, version: event.version, state }
    }

    /// Events behind the aggregate as it was read, as a part of a group.
    ///
    /// # Errors
    /// [`AggregateError::Invalid`] for an event that serde does not tag adjacently.
    pub fn push<D: Into<Draft<S::Event>>>(
        &self,
        events: impl IntoIterator<Item = D>,
    ) -> Result<Push, AggregateError> {
        let events = events.into_iter().map(|event| event.into().encode());
        let events = events.collect::<Result<_, _>>()?;
        Ok(Push { key: self.key.clone(), place: Place::After(self.version), events })
    }
}

/// An event to push, with what may stand beside it.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft<E> {
    /// The event.
    pub event: E,
    /// What travels beside its payload.
    pub metadata: Option<Value>,
    /// When it happened, in milliseconds since 1970; the log's clock says so otherwise.
    pub timestamp_ms: Option<u64>,
}

impl<E> From<E> for Draft<E> {
    fn from(event: E) -> Self {
        Self { event, metadata: None, timestamp_ms: None }
    }
}

impl<E: Serialize> Draft<E> {
    /// The event as a log takes it.
    ///
    /// # Errors
    /// [`AggregateError::Invalid`] for an event that serde does not tag adjacently.
    pub fn encode(self) -> Result<NewEvent, AggregateError> {
        let invalid = |why: String| AggregateError::Invalid(format!("an event is none: {why}"));
        let json = serde_json::to_value(&self.event).map_err(|error| invalid(error.to_string()))?;
        let Value::Object(mut fields) = json else {
            return Err(invalid("it has no type".to_owned()));
        };
        let (event_type, payload) = (fields.remove("type"), fields.remove("payload"));
        match event_type {
            Some(Value::String(event_type)) if fields.is_empty() => {
                let Self { metadata, timestamp_ms, .. } = self;
                Ok(NewEvent { event_type, payload, metadata, timestamp_ms })
            }
            _ => Err(invalid("it has other fields than type and payload".to_owned())),
        }
    }
}

/// A typed event with its place in its aggregate.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded<E> {
    /// The aggregate.
    pub key: AggregateKey,
    /// Its place among the aggregate's events, from 1.
    pub version: Version,
    /// When it happened.
    pub timestamp: String,
    /// The event.
    pub event: E,
    /// What travels beside its payload, if anything.
    pub metadata: Option<Value>,
}

impl<E: DeserializeOwned> Recorded<E> {
    /// The event as the store `S` types it.
    ///
    /// # Errors
    /// [`AggregateError::Undecodable`] for an event of another store, or of a type or a shape that
    /// the store does not have: an event is never dropped.
    pub fn of<S: EventStore<Event = E> + ?Sized>(
        stored: StoredEvent,
    ) -> Result<Self, AggregateError> {
        let StoredEvent { key, version, event_type, timestamp, payload, metadata } = stored;
        let what = || format!("{event_type} of {key} {}", version.number());
        if key.store() != S::ID {
            let why = format!("its store is not {}", S::ID);
            return Err(AggregateError::undecodable(what(), why));
        }
        let mut json = json!({ "type": event_type });
        if let Some(payload) = payload {
            json["payload"] = payload;
        }
        let event = serde_json::from_value(json)
            .map_err(|error| AggregateError::undecodable(what(), error))?;
        Ok(Self { key, version, timestamp, event, metadata })
    }
}
