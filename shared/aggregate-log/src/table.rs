//! The log in a table of Castore's single-table layout.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{Put, ReturnValuesOnConditionCheckFailure, TransactWriteItem};
use futures::StreamExt;
use futures::future::join_all;
use futures::stream::BoxStream;
use ringfence::StoreError;
use ringfence_dynamo::{Clock, Meter, Retry};

use crate::item::{EVENT_STORE_ID, VERSION, text};
use crate::key::check_store;
use crate::list::{self, Of};
use crate::push::{Entry, Prepared, check};
use crate::read::Gaps;
use crate::{
    AggregateError, AggregateKey, GetEvents, List, ListAggregateIds, Listed, NewEvent, Place, Push,
    PushEvent, PushEventGroup, Range, StoredEvent, Version, read,
};

/// Event stores in one DynamoDB table. Clones share one meter and the known gaps.
#[derive(Clone, Debug)]
pub struct Table {
    pub(crate) dynamo: ringfence_dynamo::Table,
    clock: Clock,
    pub(crate) retry: Retry,
    pub(crate) gaps: Gaps,
}

impl Table {
    /// The stores in the table `name`. The client's own retries must be off
    /// ([`ringfence_dynamo::client_from_env`]), so that every attempt is counted once.
    #[must_use]
    pub fn new(client: Client, name: impl Into<String>, clock: Clock) -> Self {
        let dynamo = ringfence_dynamo::Table::new(client, name);
        Self { dynamo, clock, retry: Retry::default(), gaps: Gaps::new() }
    }

    /// The same, but it tries as often and as long as `retry` says. A deadline is set here.
    #[must_use]
    pub fn retrying(self, retry: Retry) -> Self {
        Self { retry, ..self }
    }

    /// What the requests cost so far.
    #[must_use]
    pub fn meter(&self) -> &Meter {
        self.dynamo.meter()
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

    async fn push(&self, group: &[Push]) -> Result<Vec<StoredEvent>, AggregateError> {
        check(group)?;
        let mut attempts = self.retry.start();
        loop {
            let firsts = join_all(group.iter().map(|push| self.first(push))).await;
            // The error is of the first in the group that is refused, not of the first to answer.
            let firsts = firsts.into_iter().collect::<Result<Vec<_>, _>>()?;
            let (now_ms, push_id) = (self.clock.now_ms(), self.clock.uuid().simple().to_string());
            let prepared = Prepared::new(group, &firsts, now_ms, push_id)?;
            let conflict = match self.send(&prepared).await {
                Err(AggregateError::Conflict(conflict)) => conflict,
                sent => return sent.map(|()| prepared.events),
            };
            // No decision rests on the end of an aggregate, so its end by now will do as well.
            let anywhere =
                group.iter().any(|push| push.key == conflict.key && push.place == Place::End);
            if !anywhere {
                return Err(AggregateError::Conflict(conflict));
            }
            if !attempts.again().await {
                let (attempts, over) = (attempts.made(), Some(conflict.into()));
                return Err(StoreError::Contention { attempts, over }.into());
            }
        }
    }

    /// Sends until the outcome is known.
    pub(crate) async fn send(&self, prepared: &Prepared) -> Result<(), AggregateError> {
        let put = |entry: &Entry| entry.put(self.dynamo.name());
        let send = async || match prepared.entries.as_slice() {
            // A single event needs no transaction, which would cost twice as much.
            [entry] => self.dynamo.put(put(entry)).await,
            entries => {
                let action = |entry| TransactWriteItem::builder().put(put(entry)).build();
                let actions = entries.iter().map(action).collect();
                self.dynamo.transact(actions, &prepared.push_id).await
            }
        };
        let Err(gave_up) = self.retry.run(send).await else { return Ok(()) };
        let verdict = prepared.verdict(&gave_up.failure);
        verdict.unwrap_or_else(|| Err(gave_up.writing("pushing events").into()))
    }
}

impl Entry {
    fn put(&self, table: &str) -> Put {
        let put = Put::builder().table_name(table).set_item(Some(self.item.clone()));
        let put = match self.forced {
            true => put,
            false => put
                .condition_expression(IS_FREE)
                .expression_attribute_names("#version", VERSION)
                .return_values_on_condition_check_failure(
                    ReturnValuesOnConditionCheckFailure::AllOld,
                ),
        };
        put.build().expect("table and item are set")
    }
}

/// No event has this version yet.
const IS_FREE: &str = "attribute_not_exists(#version)";

impl GetEvents for Table {
    fn get_events<'a>(
        &'a self,
        key: &'a AggregateKey,
        range: Range,
    ) -> BoxStream<'a, Result<StoredEvent, AggregateError>> {
        read::events(self, key, range).boxed()
    }
}

impl PushEvent for Table {
    async fn push_event(
        &self,
        key: &AggregateKey,
        place: Place,
        event: NewEvent,
    ) -> Result<StoredEvent, AggregateError> {
        let pushed = self.push(&[Push { key: key.clone(), place, events: vec![event] }]).await?;
        Ok(pushed.into_iter().next().expect("one event was pushed"))
    }
}

impl PushEventGroup for Table {
    async fn push_event_group(&self, group: Vec<Push>) -> Result<Vec<StoredEvent>, AggregateError> {
        self.push(&group).await
    }
}

impl ListAggregateIds for Table {
    async fn list_aggregate_ids(&self, store: &str, list: &List) -> Result<Listed, AggregateError> {
        check_store(store)?;
        list::page(self, Of { name: EVENT_STORE_ID, value: text(store) }, list).await
    }
}
