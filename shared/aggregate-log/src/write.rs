//! What a slice writes, as a group of pushes.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ringfence::{CommandRecord, Metadata};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use crate::once::{Reader, marks};
use crate::{
    Aggregate, AggregateContext, AggregateError, AggregateKey, Draft, GetEvents, NewEvent, Place,
    Push, Version,
};

/// An event and the aggregate that it is written to.
#[derive(Clone, Debug, PartialEq)]
pub struct To<E> {
    /// The aggregate's id; `None` is the command's own aggregate.
    pub aggregate_id: Option<String>,
    /// The event.
    pub event: Draft<E>,
}

impl<E> To<E> {
    /// An event of another aggregate than the command's own.
    pub fn other(aggregate_id: impl ToString, event: impl Into<Draft<E>>) -> Self {
        Self { aggregate_id: Some(aggregate_id.to_string()), event: event.into() }
    }
}

impl<E> From<E> for To<E> {
    fn from(event: E) -> Self {
        Draft::from(event).into()
    }
}

impl<E> From<Draft<E>> for To<E> {
    fn from(event: Draft<E>) -> Self {
        Self { aggregate_id: None, event }
    }
}

/// The other aggregates of a command's context, as one attempt of the command reads them.
pub struct Others<'a, L, C> {
    log: &'a Reader<'a, L>,
    versions: Mutex<BTreeMap<AggregateKey, Version>>,
    context: PhantomData<fn() -> C>,
}

impl<'a, L: GetEvents, C: AggregateContext> Others<'a, L, C> {
    pub(crate) fn new(log: &'a Reader<'a, L>, own: &Aggregate<C>) -> Self {
        let versions = Mutex::new([(own.key.clone(), own.version)].into());
        Self { log, versions, context: PhantomData }
    }

    /// The state of the aggregate with this id. What the decision writes to it takes effect only if
    /// nobody has written to it since this read, or since the first of several reads.
    ///
    /// # Errors
    /// The id names no aggregate, or the read fails.
    pub fn get(
        &self,
        id: impl ToString,
    ) -> impl Future<Output = Result<C::State, AggregateError>> + Send {
        let id = id.to_string();
        async move {
            let Aggregate { key, version, state } = C::get_aggregate(self.log, &id, None).await?;
            self.lock().entry(key).and_modify(|of| *of = version.min(*of)).or_insert(version);
            Ok(state)
        }
    }

    /// The versions of the aggregates that were read.
    pub(crate) fn versions(&self) -> BTreeMap<AggregateKey, Version> {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<AggregateKey, Version>> {
        self.versions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Drafts by aggregate, in the order in which they are pushed.
type Drafts<E> = Vec<(AggregateKey, Vec<Draft<E>>)>;

/// The drafts of `writes`, those of `own` first.
pub(crate) fn by_aggregate<E>(
    writes: impl IntoIterator<Item = impl Into<To<E>>>,
    own: &AggregateKey,
) -> Result<Drafts<E>, AggregateError> {
    let mut groups = vec![(own.clone(), Vec::new())];
    for To { aggregate_id, event } in writes.into_iter().map(Into::into) {
        let key = match aggregate_id {
            None => own.clone(),
            Some(id) => AggregateKey::new(own.store(), &id)?,
        };
        match groups.iter_mut().find(|(there, _)| *there == key) {
            Some((_, drafts)) => drafts.push(event),
            None => groups.push((key, vec![event])),
        }
    }
    Ok(groups)
}

/// The group to push, the command's own aggregate first; empty if nothing is written. Each event gets
/// `metadata`, but keeps its own where both have a key, and the marks of `record`.
///
/// # Errors
/// [`AggregateError::Invalid`] for events of other aggregates alone, for an event of an aggregate that
/// was not read, and for an event that serde does not tag adjacently.
pub(crate) fn group<E: Serialize + DeserializeOwned>(
    writes: Vec<impl Into<To<E>>>,
    own: &AggregateKey,
    versions: &BTreeMap<AggregateKey, Version>,
    metadata: &Metadata,
    record: Option<&CommandRecord>,
) -> Result<Vec<Push>, AggregateError> {
    let groups = by_aggregate(writes, own)?;
    if groups[0].1.is_empty() {
        return match groups.get(1) {
            None => Ok(Vec::new()),
            Some((key, _)) => Err(AggregateError::Invalid(format!(
                "a command that writes to {key} must also write to its own aggregate {own}, where a repeat \
                 is known"
            ))),
        };
    }
    let push = |(key, drafts): (AggregateKey, Vec<Draft<E>>)| {
        let Some(version) = versions.get(&key) else {
            return Err(AggregateError::Invalid(format!(
                "the command writes to {key}, which it has not read: read it in `load`"
            )));
        };
        let marks: Vec<_> = record.into_iter().flat_map(|r| marks(r, own, &key)).collect();
        let events = drafts.into_iter().map(|draft| {
            let mut event = draft.encode()?;
            mark(&mut event, metadata, &marks).map(|()| event)
        });
        let events = events.collect::<Result<_, _>>()?;
        Ok(Push { place: Place::After(*version), key, events })
    };
    groups.into_iter().map(push).collect()
}

fn mark(
    event: &mut NewEvent,
    metadata: &Metadata,
    marks: &[(&str, Option<String>)],
) -> Result<(), AggregateError> {
    if marks.is_empty() && metadata.iter().next().is_none() {
        return Ok(());
    }
    let own = event.metadata.take().unwrap_or_else(|| Map::new().into());
    let Value::Object(mut marked) = own else {
        let why = format!("the metadata of {} is not an object", event.event_type);
        return Err(AggregateError::Invalid(why));
    };
    for (key, value) in metadata.iter() {
        marked.entry(key).or_insert_with(|| value.clone());
    }
    for (mark, value) in marks {
        match value {
            Some(value) => marked.insert((*mark).to_owned(), value.as_str().into()),
            None => marked.remove(*mark),
        };
    }
    event.metadata = Some(marked.into());
    Ok(())
}

#[cfg(test)]
mod tests {
    use ringfence::{Context, StreamContext};
    use ringfence_dynamo::Clock;
    use serde::Deserialize;

    use super::*;
    use crate::{Aggregates, Memory, PushEvent};

    struct Counters;

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(tag = "type", content = "payload")]
    enum Counted {
        Up(u32),
    }

    impl Context for Counters {
        const NAME: &'static str = "counters";
        type Log = Aggregates;
        type Event = Counted;
    }

    impl StreamContext for Counters {
        type State = u32;

        fn evolve(count: u32, Counted::Up(by): Counted) -> u32 {
            count + by
        }
    }

    impl AggregateContext for Counters {}

    fn key(id: &str) -> AggregateKey {
        Counters::key(id).expect("an id")
    }

    /// The pushes for these writes by a command of `own`, which has read the aggregates at these versions:
    /// the aggregates, the versions after which events are pushed, and the payloads.
    fn pushed(
        writes: Vec<To<Counted>>,
        versions: &[(&str, u64)],
    ) -> Result<Vec<(String, Place, Vec<Value>)>, String> {
        let versions = versions.iter().map(|(id, version)| (key(id), Version(*version))).collect();
        let group = group::<Counted>(writes, &key("own"), &versions, &Metadata::default(), None);
        let part = |Push { key, place, events }: Push| {
            let payloads = events.into_iter().filter_map(|event| event.payload).collect();
            (key.id().to_owned(), place, payloads)
        };
        let group = group.map_err(|error| error.to_string())?;
        Ok(group.into_iter().map(part).collect())
    }

    fn part(id: &str, version: u64, payloads: &[u32]) -> (String, Place, Vec<Value>) {
        let payloads = payloads.iter().map(|payload| (*payload).into()).collect();
        (id.to_owned(), Place::After(Version(version)), payloads)
    }

    #[test]
    fn the_own_aggregate_is_first_in_the_group_and_the_others_are_in_the_order_of_the_writes() {
        let writes = vec![
            To::other("z", Counted::Up(1)),
            To::other("a", Counted::Up(2)),
            Counted::Up(3).into(),
            To::other("z", Counted::Up(4)),
            To::other("own", Counted::Up(5)),
        ];
        let group = pushed(writes, &[("a", 7), ("own", 8), ("unwritten", 9), ("z", 0)]);
        let expected = vec![part("own", 8, &[3, 5]), part("z", 0, &[1, 4]), part("a", 7, &[2])];
        assert_eq!(group, Ok(expected));
        assert_eq!(pushed(vec![], &[("own", 8)]), Ok(vec![]));
    }

    #[test]
    fn an_event_of_an_aggregate_that_was_not_read_is_refused() {
        let writes = vec![Counted::Up(1).into(), To::other("unread", Counted::Up(2))];
        let refused = pushed(writes, &[("own", 1)]).expect_err("it was not read");
        let why = "refused: the command writes to counters#unread, which it has not read: read it in \
                   `load`";
        assert_eq!(refused, why);
    }

    #[test]
    fn events_of_other_aggregates_alone_are_refused() {
        let writes = vec![To::other("a", Counted::Up(1))];
        let refused = pushed(writes, &[("a", 0), ("own", 0)]).expect_err("it has no own event");
        let why = "refused: a command that writes to counters#a must also write to its own aggregate \
                   counters#own, where a repeat is known";
        assert_eq!(refused, why);
    }

    #[tokio::test]
    async fn of_two_reads_of_an_aggregate_the_earlier_one_counts() {
        let log = Memory::new(Clock::fixed(0));
        let up = async |id| {
            let event = Draft::from(Counted::Up(1)).encode().expect("JSON");
            log.push_event(&key(id), Place::End, event).await.expect("pushed");
        };
        let own = Aggregate::<Counters>::new(key("own"));
        let reader = Reader::new(&log, &own.key, None);
        let others = Others::new(&reader, &own);
        up("a").await;
        assert_eq!(others.get("a").await.expect("a"), 1);
        for id in ["a", "own"] {
            up(id).await;
        }
        assert_eq!(others.get("a").await.expect("a"), 2);
        assert_eq!(others.get("own").await.expect("the own one"), 1);
        let versions = others.versions();
        assert_eq!((versions[&key("a")], versions[&key("own")]), (Version(1), Version::NONE));
    }
}
