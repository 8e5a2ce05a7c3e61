//! Reads the items of one partition, page by page and strongly, and looks at missing versions.
//!
//! Other writers of this layout leave gaps, so a version can be missing for ever. But a query reads item by item. It
//! can pass a place before an event is put there, and see a later event. It can also see a later event of a transaction
//! and miss an earlier one. So a read that finds a missing version looks at the gap in one `TransactGetItems`. Its keys
//! are the first missing version, the versions directly before the event after the gap, and that event. They are at
//! most as many as one append can put, so the cost does not depend on the width of the gap.
//!
//! This request is serializable with each write and each transaction. It shows the event after the gap, so it comes
//! after the write of this event. It also shows all events at its keys that were written before or in the same
//! transaction:
//!
//! - The request covers a gap of up to 99 versions. If it finds nothing, the gap has no event, whoever wrote the
//!   events.
//! - In a wider gap, the request finds the events that this crate writes. An append puts its events in a row, directly
//!   after the newest event. So if the append of the event after the gap put earlier events too, the version directly
//!   before is one of them. If an append put events directly after the event before the gap, the first missing version
//!   is one of them. The request can miss an event only if other writers left a gap before it and a gap after it, both
//!   while the query ran.
//!
//! If the look finds events, the read returns them in their places. If it finds nothing, the table remembers the gap.
//! Decisions can rely on a remembered gap, because no writer of this crate puts an event into a gap that it has read
//! past.

use aws_sdk_dynamodb::operation::query::builders::QueryInputBuilder;
use aws_sdk_dynamodb::types::AttributeValue;
use futures::stream::{BoxStream, Stream, StreamExt, TryStreamExt, iter, try_unfold};
use ringfence_aws::Item;
use ringfence_core::StoreError;

use crate::gaps::Gap;
use crate::item::{self, AGGREGATE_ID, VERSION, number};
use crate::limits::{GROUP_EVENTS_MAX, VERSION_MAX};
use crate::table::READING_ITEMS;
use crate::{AggregateError, AggregateEvent, AggregateKey, AggregateTable, Range};

/// One look reads at most this many versions directly before the event after a gap.
const BEFORE_MAX: u64 = GROUP_EVENTS_MAX as u64 - 2;

/// A read that is under way.
struct Reading {
    items: BoxStream<'static, Result<Item, AggregateError>>,
    /// The version that follows.
    next: u64,
    /// The number of events still to read.
    left: Option<u32>,
}

/// The events of `key` in `range`. A read in the order of versions skips no event. An error takes the place of an event
/// that can't be decoded.
pub(crate) fn events(
    table: AggregateTable,
    key: AggregateKey,
    range: Range,
) -> impl Stream<Item = Result<AggregateEvent, AggregateError>> + Send {
    let items = items(table.clone(), key.clone(), range, true).boxed();
    let next = range.min_version.unwrap_or(1).max(1);
    // DynamoDB refuses an empty range.
    let is_empty = next > range.max_version.unwrap_or(VERSION_MAX);
    let left = if is_empty { Some(0) } else { range.limit };
    let begin = Reading { items, next, left };
    try_unfold((begin, table, key), move |(mut state, table, key)| async move {
        while state.left != Some(0)
            && let Some(item) = state.items.try_next().await?
        {
            let version = item::version_of(&item);
            let event = match (item::decode_named(item), version) {
                // The events after it can still be read.
                (Err(error), Ok(version)) => {
                    state.next = version.number().saturating_add(1);
                    return Ok(Some((Err(error), (state, table, key))));
                }
                (event, _) => event?,
            };
            let version = event.version.number();
            let gap = (!range.reverse && version > state.next)
                .then(|| (key.clone(), state.next, version))
                .filter(|gap| !table.gaps.has(gap));
            if let Some(gap) = gap {
                let found = look(&table, &gap).await?;
                if found.len() > 1 {
                    state.items = iter(found).map(Ok).chain(state.items).boxed();
                    continue;
                }
                table.gaps.remember(gap);
            }
            state.next = version.saturating_add(1);
            state.left = state.left.map(|left| left.saturating_sub(1));
            return Ok(Some((Ok(event), (state, table, key))));
        }
        Ok(None)
    })
    .map(Result::flatten)
}

/// The events in a gap and the event after it, at one moment.
async fn look(
    table: &AggregateTable,
    (key, first, after): &Gap,
) -> Result<Vec<Item>, AggregateError> {
    let before = after.saturating_sub(BEFORE_MAX).max(first + 1);
    let versions = std::iter::once(*first).chain(before..=*after);
    let keys: Vec<Item> = versions.map(|version| table.stores.key_of(key, version)).collect();
    let found = table.get_together(&keys).await?;
    if found.last().is_none_or(Option::is_none) {
        let source = format!("{key} {after} was there, and is not in a later answer").into();
        return Err(StoreError::Failed { operation: READING_ITEMS, source }.into());
    }
    Ok(found.into_iter().flatten().collect())
}

/// The items of `key` whose versions are in `range`. Each page requests only as many items as are still needed, so that
/// a limit also bounds the cost.
pub(crate) fn items(
    table: AggregateTable,
    key: AggregateKey,
    range: Range,
    strong: bool,
) -> impl Stream<Item = Result<Item, AggregateError>> + Send {
    let begin = (!range.is_empty()).then_some((range, None));
    try_unfold((begin, table, key), move |(state, table, key)| async move {
        let Some((range, start)) = state else { return Ok(None) };
        table.stores.check(key.store())?;
        let partition = table.stores.partition(&key);
        let of_key = |query| {
            of_range(query, partition.clone(), range, start.clone()).consistent_read(strong)
        };
        let query = || table.dynamo.query(of_key);
        let page = table.retry.run(query).await;
        let page = page.map_err(|gave_up| gave_up.during("reading events"))?;
        let items = page.items.unwrap_or_default().into_iter();
        let items: Vec<Item> = items.map(|item| table.stores.read(item)).collect();
        let read = u32::try_from(items.len()).unwrap_or(u32::MAX);
        let range = Range { limit: range.limit.map(|limit| limit.saturating_sub(read)), ..range };
        let next = page.last_evaluated_key.filter(|_| range.limit != Some(0));
        let next = next.map(|key| (range, Some(key)));
        Ok::<_, AggregateError>(Some((items, (next, table, key))))
    })
    .map_ok(|items| iter(items).map(Ok))
    .try_flatten()
}

fn of_range(
    query: QueryInputBuilder,
    partition: AttributeValue,
    range: Range,
    start: Option<Item>,
) -> QueryInputBuilder {
    let query = query
        .scan_index_forward(!range.reverse)
        .expression_attribute_names("#id", AGGREGATE_ID)
        .expression_attribute_values(":id", partition)
        .set_limit(range.limit.map(|limit| i32::try_from(limit).unwrap_or(i32::MAX)))
        .set_exclusive_start_key(start);
    match (range.min_version, range.max_version) {
        (None, None) => query.key_condition_expression("#id = :id"),
        (min, max) => query
            .key_condition_expression("#id = :id AND #version BETWEEN :min AND :max")
            .expression_attribute_names("#version", VERSION)
            .expression_attribute_values(":min", number(min.unwrap_or(0)))
            .expression_attribute_values(":max", number(max.unwrap_or(VERSION_MAX))),
    }
}
