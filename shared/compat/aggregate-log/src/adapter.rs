//! The operations of Castore's storage adapter.

use futures::future::join_all;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use ringfence_core::{Catalog, Reads, SequencedEvent, State};

use crate::event::whole;
use crate::list;
use crate::push::{Prepared, check};
use crate::{
    AggregateError, AggregateEvent, AggregateKey, AggregatePage, AggregateTable, ListOptions,
    NewAggregateEvent, Push, PushPlace, Range, Version, read,
};

impl AggregateTable {
    /// The events in `range`, in the order of their versions. It shows every event acknowledged before the read began.
    /// Fails with the first page that can't be read, and with an item that can't be decoded. Needs `dynamodb:Query` on
    /// the table, and `dynamodb:GetItem` to look at missing versions.
    pub fn get_events(
        &self,
        key: &AggregateKey,
        range: Range,
    ) -> BoxStream<'static, Result<AggregateEvent, AggregateError>> {
        read::events(self.clone(), key.clone(), range).boxed()
    }

    /// Folds the aggregate's events up to `max_version`, or all of them. `catalog` is the catalog of the aggregate's
    /// context. As in slices, each event has the newest shape of its type. Events that the state does not read are
    /// skipped.
    ///
    /// # Errors
    /// As [`AggregateTable::get_events`], and an event that the state can't decode.
    pub async fn get_aggregate<S: State>(
        &self,
        catalog: &Catalog,
        key: &AggregateKey,
        max_version: Option<u64>,
    ) -> Result<Aggregate<S>, AggregateError> {
        let range = Range { max_version, ..Range::default() };
        let mut events = self.get_events(key, range);
        let mut aggregate = Aggregate { version: Version::NONE, state: S::default() };
        while let Some(event) = events.try_next().await? {
            aggregate.version = event.version;
            let event = SequencedEvent::from(event);
            if S::Reads::TYPES.contains(&&*event.event_type) {
                let event = catalog.current(whole(event, catalog))?;
                let read = S::Reads::decode(&event);
                let read =
                    read.map_err(|source| AggregateError::undecodable(event.id(), source))?;
                aggregate.state = aggregate.state.evolve(read);
            }
        }
        Ok(aggregate)
    }

    /// Adds the event at its place, in one conditional put. Needs `dynamodb:PutItem` on the table; [`PushPlace::At`]
    /// and [`PushPlace::End`] also `dynamodb:Query`.
    ///
    /// # Errors
    /// [`AggregateError::Conflict`] if another event is there, [`AggregateError::Gap`] if its
    /// predecessor is not; then nothing is written.
    pub async fn push_event(
        &self,
        key: &AggregateKey,
        place: PushPlace,
        event: NewAggregateEvent,
    ) -> Result<AggregateEvent, AggregateError> {
        let push = Push { key: key.clone(), place, events: vec![event] };
        let pushed = pushed(&[(self, &push)]).await?;
        Ok(pushed.into_iter().next().expect("one event was pushed"))
    }

    /// Adds all events or none, with one timestamp. A group names each aggregate once; its aggregates may be of several
    /// stores. The answer is in the order of the group. Needs the permissions of [`AggregateTable::push_event`]: a
    /// transaction of puts needs only `dynamodb:PutItem`.
    ///
    /// # Errors
    /// As [`AggregateTable::push_event`], for the first refused aggregate of the group; gaps come before conflicts.
    /// [`AggregateError::Invalid`] if the group is empty, names an aggregate twice, or has two timestamps.
    pub async fn push_event_group(
        &self,
        group: Vec<Push>,
    ) -> Result<Vec<AggregateEvent>, AggregateError> {
        pushed(&group.iter().map(|push| (self, push)).collect::<Vec<_>>()).await
    }

    /// One page of a store's aggregates, by the time of their first events. A new aggregate may appear late. Needs
    /// `dynamodb:Query` on the index `initialEvents`.
    ///
    /// # Errors
    /// The store's name is not valid, the token is not from a list, or the request failed.
    pub async fn list_aggregate_ids(
        &self,
        store: &str,
        list: &ListOptions,
    ) -> Result<AggregatePage, AggregateError> {
        self.stores.check(store)?;
        list::page(self, self.stores.first_events(store), list).await
    }

    async fn newest(&self, key: &AggregateKey) -> Result<Version, AggregateError> {
        let newest = self.get_events(key, Range::NEWEST).next().await.transpose()?;
        Ok(newest.map_or(Version::NONE, |event| event.version))
    }

    async fn first(&self, push: &Push) -> Result<u64, AggregateError> {
        let newest = match push.place.needs_newest() {
            true => self.newest(&push.key).await?,
            false => Version::NONE,
        };
        push.place.first(&push.key, newest)
    }
}

/// Adds all events or none, with one timestamp. Each push goes to the table beside it. A table may have either layout.
/// All tables are in one account and one Region. The first table's clock gives the time, its client sends the
/// transaction, and its meter counts it. Otherwise as [`AggregateTable::push_event_group`].
///
/// # Errors
/// As [`AggregateTable::push_event_group`].
pub async fn push_to_tables(
    group: &[(&AggregateTable, Push)],
) -> Result<Vec<AggregateEvent>, AggregateError> {
    pushed(&group.iter().map(|(table, push)| (*table, push)).collect::<Vec<_>>()).await
}

async fn pushed(group: &[(&AggregateTable, &Push)]) -> Result<Vec<AggregateEvent>, AggregateError> {
    check(group)?;
    let (sender, _) = group[0];
    let mut attempts = sender.retry.start();
    loop {
        let firsts = join_all(group.iter().map(|(table, push)| table.first(push))).await;
        // Returns the error of the first refused push of the group, not of the first answer.
        let firsts = firsts.into_iter().collect::<Result<Vec<_>, _>>()?;
        let (now_ms, push_id) = (sender.clock.now_ms(), sender.clock.uuid().simple().to_string());
        let prepared = Prepared::new(group, &firsts, now_ms, push_id)?;
        let conflict = match sender.send(&prepared).await {
            Err(AggregateError::Conflict(conflict)) => conflict,
            sent => return sent.and_then(|()| prepared.events()),
        };
        // No decision depends on the end of an aggregate, so the push goes to the new end.
        let is_at_end = |push: &Push| push.key == conflict.key && push.place == PushPlace::End;
        if !group.iter().any(|(_, push)| is_at_end(push)) {
            return Err(AggregateError::Conflict(conflict));
        }
        attempts.contend(Some(conflict.into())).await?;
    }
}

/// An aggregate, folded from its events up to some version.
#[derive(Debug)]
pub struct Aggregate<S> {
    /// The version of the last event.
    pub version: Version,
    /// The state after it.
    pub state: S,
}
