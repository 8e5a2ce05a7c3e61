//! Contexts on the aggregate log: the events of one kind of aggregate, typed.

use futures::stream::{BoxStream, StreamExt, TryStreamExt};
use ringfence::{StreamContext, variants};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{
    AggregateError, AggregateKey, CommandError, GetEvents, List, ListAggregateIds, Listed,
    NewEvent, Place, Push, PushEvent, PushEventGroup, Range, StoredEvent, Version,
};

/// Names the aggregate log as the log of a context.
pub enum Aggregates {}

/// A context on the aggregate log. Its name is that of its event store, and holds no `#`.
///
/// `Event` is an enum that serde tags adjacently, which is the layout of the table:
/// `#[serde(tag = "type", content = "payload")]`.
pub trait AggregateContext: StreamContext<Log = Aggregates> + Sized {
    /// The state after one more event. The default is [`StreamContext::evolve`]. A fold that needs what
    /// stands beside an event, such as its timestamp, is written here instead, and `evolve` is not called.
    fn apply(state: Self::State, event: &Recorded<Self::Event>) -> Self::State {
        Self::evolve(state, event.event.clone())
    }

    /// Names an aggregate of this store.
    ///
    /// # Errors
    /// [`AggregateError::Key`] for an id that can't name an aggregate.
    fn key(id: &str) -> Result<AggregateKey, AggregateError> {
        Ok(AggregateKey::new(Self::NAME, id)?)
    }

    /// The events of `key` in `range`. Fails as [`GetEvents::get_events`], and with an event of another
    /// store.
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
    /// As [`AggregateContext::get_events`].
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

    /// The aggregate `id`, which must exist.
    ///
    /// # Errors
    /// [`AggregateError::NotFound`], or as [`AggregateContext::get_events`].
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

    /// Pushes one event onto the aggregate as it was read, and returns the aggregate with it.
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

    /// Reads the aggregate `id`, decides, and pushes the decision's events after what was read: one event
    /// in a put, several in a transaction. Without events there is nothing to push.
    ///
    /// # Errors
    /// The decision's rejection, or as the read and the push.
    fn decide<L: GetEvents + PushEventGroup, R: Send>(
        log: &L,
        id: &str,
        decide: impl FnOnce(&Self::State) -> Result<Vec<Self::Event>, R> + Send,
    ) -> impl Future<Output = Result<Aggregate<Self>, CommandError<R>>> + Send {
        async move {
            let aggregate = Self::get_aggregate(log, id, None).await?;
            let events = decide(&aggregate.state).map_err(CommandError::Rejected)?;
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
        log.list_aggregate_ids(Self::NAME, list)
    }
}

/// An aggregate, folded from its events up to some version.
pub struct Aggregate<C: AggregateContext> {
    /// Its name.
    pub key: AggregateKey,
    /// The version of the last event that was folded.
    pub version: Version,
    /// The state after it.
    pub state: C::State,
}

impl<C: AggregateContext> Aggregate<C> {
    /// An aggregate without events: a new id, which needs no read.
    #[must_use]
    pub fn new(key: AggregateKey) -> Self {
        Self { key, version: Version::NONE, state: C::State::default() }
    }

    /// The aggregate after one more of its events.
    #[must_use]
    pub fn apply(self, event: &Recorded<C::Event>) -> Self {
        let state = C::apply(self.state, event);
        Self { key: self.key, version: event.version, state }
    }

    /// Events that follow on the aggregate as it was read, as one push of a group.
    ///
    /// # Errors
    /// As [`Draft::encode`].
    pub fn push<D: Into<Draft<C::Event>>>(
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
    /// When it happened, in milliseconds since 1970; if absent, the time of the log's clock.
    pub timestamp_ms: Option<u64>,
}

impl<E> From<E> for Draft<E> {
    fn from(event: E) -> Self {
        Self { event, metadata: None, timestamp_ms: None }
    }
}

impl<E: Serialize + DeserializeOwned> Draft<E> {
    /// The event as a log takes it. Its JSON is read back first: JSON can't hold every value (NaN becomes null), and a
    /// log keeps its events for ever.
    ///
    /// # Errors
    /// [`AggregateError::Invalid`] for an event that serde does not tag adjacently, or that can't be read back.
    pub fn encode(self) -> Result<NewEvent, AggregateError> {
        let invalid = |why: String| {
            AggregateError::Invalid(format!(
                "an event must serialize as {{type, payload}} (#[serde(tag = \"type\", content = \"payload\")]): {why}"
            ))
        };
        let json = serde_json::to_value(&self.event).map_err(|error| invalid(error.to_string()))?;
        E::deserialize(&json).map_err(|error| {
            AggregateError::Invalid(format!("an event can't be read back from its JSON: {error}"))
        })?;
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
    /// The event as the context types it.
    ///
    /// # Errors
    /// [`AggregateError::UnknownType`] for an event of a type that the context does not have, and
    /// [`AggregateError::Undecodable`] for an event of another context or of another shape: an event is never dropped.
    pub fn of<C: AggregateContext<Event = E>>(stored: StoredEvent) -> Result<Self, AggregateError> {
        let StoredEvent { key, version, event_type, timestamp, payload, metadata } = stored;
        let what = || format!("{event_type} of {key} {}", version.number());
        if key.store() != C::NAME {
            let why = format!("its store is not {}", C::NAME);
            return Err(AggregateError::undecodable(what(), why));
        }
        let mut json = json!({ "type": event_type });
        if let Some(payload) = payload {
            json["payload"] = payload;
        }
        match serde_json::from_value(json) {
            Ok(event) => Ok(Self { key, version, timestamp, event, metadata }),
            Err(error) => {
                let types = variants::<E>();
                if types.is_empty() || types.contains(&&*event_type) {
                    return Err(AggregateError::undecodable(what(), error));
                }
                let context = C::NAME;
                Err(AggregateError::UnknownType { key, version, event_type, context })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ringfence::Context;
    use ringfence_dynamo::Clock;
    use serde::Deserialize;

    use super::*;
    use crate::Memory;

    /// Lamps, whose state is the time since which they are on.
    struct Lamps;

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(tag = "type", content = "payload")]
    enum Switched {
        On,
        Off,
    }

    impl Context for Lamps {
        const NAME: &'static str = "lamps";
        type Log = Aggregates;
        type Event = Switched;
    }

    impl StreamContext for Lamps {
        type State = Option<String>;

        fn evolve(_: Option<String>, event: Switched) -> Option<String> {
            unreachable!("{event:?} is folded with its time")
        }
    }

    impl AggregateContext for Lamps {
        fn apply(since: Option<String>, event: &Recorded<Switched>) -> Option<String> {
            match event.event {
                Switched::On => since.or_else(|| Some(event.timestamp.clone())),
                Switched::Off => None,
            }
        }
    }

    #[derive(Debug, Serialize, Deserialize)]
    #[serde(tag = "type", content = "payload")]
    enum Measured {
        Metres(f64),
    }

    #[test]
    fn an_event_that_cannot_be_read_back_is_refused() {
        assert!(Draft::from(Measured::Metres(0.01 + 0.2)).encode().is_ok());
        for number in [f64::NAN, f64::INFINITY] {
            let refused = Draft::from(Measured::Metres(number)).encode();
            let Err(AggregateError::Invalid(why)) = refused else { panic!("{refused:?}") };
            assert!(why.contains("can't be read back"), "{why}");
        }
    }

    #[tokio::test]
    async fn a_fold_of_recorded_events_has_their_times() {
        let clock = Clock::fixed(0);
        let log = Memory::new(clock.clone());
        let mut folded = Vec::new();
        for (second, event) in (0..).zip([Switched::On, Switched::Off, Switched::On, Switched::On])
        {
            clock.set(second * 1_000);
            let decided = Lamps::decide(&log, "desk", |_| Ok::<_, ()>(vec![event])).await;
            let decided = decided.expect("pushed").state;
            let read = Lamps::get_aggregate(&log, "desk", None).await.expect("the lamp").state;
            assert_eq!(decided, read);
            folded.push(read);
        }
        let since = |second| Some(format!("1970-01-01T00:00:0{second}.000Z"));
        assert_eq!(folded, [since(0), None, since(2), since(2)]);
    }
}
