//! The capabilities of a log, each a trait: code that needs a part of a log asks for that part, and its
//! role allows no more.
//!
//! | capability | needs |
//! |---|---|
//! | [`GetEvents`] | `dynamodb:Query` on the table |
//! | [`PushEvent`] | `dynamodb:PutItem` on the table; [`Place::At`] and [`Place::End`] also `dynamodb:Query` |
//! | [`PushEventGroup`] | the same: a transaction of puts needs `dynamodb:PutItem` alone |
//! | [`ListAggregateIds`] | `dynamodb:Query` on the index `initialEvents` |

use futures::stream::BoxStream;

use crate::{
    AggregateError, AggregateKey, List, Listed, NewEvent, Place, Push, Range, StoredEvent,
};

/// Reads the events of an aggregate.
pub trait GetEvents: Sync {
    /// The events in `range`, in the order of their versions. It shows every event that was
    /// acknowledged before it began. Fails with the first page that can't be read, and with an
    /// item that can't be decoded.
    fn get_events<'a>(
        &'a self,
        key: &'a AggregateKey,
        range: Range,
    ) -> BoxStream<'a, Result<StoredEvent, AggregateError>>;
}

/// Adds one event.
pub trait PushEvent: Sync {
    /// Adds the event at its place, in one conditional put.
    ///
    /// # Errors
    /// [`AggregateError::Conflict`] if another event is there, [`AggregateError::Gap`] if its
    /// predecessor is not; then nothing is written.
    fn push_event(
        &self,
        key: &AggregateKey,
        place: Place,
        event: NewEvent,
    ) -> impl Future<Output = Result<StoredEvent, AggregateError>> + Send;
}

/// Adds events of several aggregates, of several stores.
pub trait PushEventGroup: Sync {
    /// Adds all of the events or none, with one timestamp. The group names each aggregate once. The
    /// answer is in the order of the group.
    ///
    /// # Errors
    /// As [`PushEvent::push_event`], for the first aggregate of the group that refuses, gaps before
    /// conflicts. [`AggregateError::Invalid`] if the group is empty, names an aggregate twice, or has
    /// two timestamps.
    fn push_event_group(
        &self,
        group: Vec<Push>,
    ) -> impl Future<Output = Result<Vec<StoredEvent>, AggregateError>> + Send;
}

/// Lists the aggregates of a store.
pub trait ListAggregateIds: Sync {
    /// One page of the aggregates, by the time of their first events. A new aggregate may appear late.
    fn list_aggregate_ids(
        &self,
        store: &str,
        list: &List,
    ) -> impl Future<Output = Result<Listed, AggregateError>> + Send;
}

/// A whole log.
pub trait AggregateLog: GetEvents + PushEvent + PushEventGroup + ListAggregateIds {}

impl<L: GetEvents + PushEvent + PushEventGroup + ListAggregateIds> AggregateLog for L {}
