//! Reading the items of one partition, page by page, strongly.

use aws_sdk_dynamodb::operation::query::builders::QueryInputBuilder;
use futures::stream::{BoxStream, Stream, StreamExt, TryStreamExt, iter, try_unfold};
use ringfence::StoreError;
use ringfence_dynamo::{Attempts, Item};

use crate::gaps::Gap;
use crate::item::{self, AGGREGATE_ID, VERSION, number, text};
use crate::limits::VERSION_MAX;
use crate::{AggregateError, AggregateEvent, AggregateKey, AggregateTable, Range};

/// How often a read looks at a gap before it believes it.
const LOOKS_MAX: u32 = 4;
/// A read that is under way.
struct Look {
    items: BoxStream<'static, Result<Item, AggregateError>>,
    /// The version that follows, and how many events are still asked for.
    range: Range,
    next: u64,
    /// The gap at which the read stands, and how often it has looked at it.
    gap: Option<(Gap, Attempts)>,
}

/// The events of `key` in `range`.
///
/// The events of one transaction may become visible one by one, even to a strong read. A decision could
/// then read a later event without an earlier one. So where a version is missing, a read in the order of
/// versions looks again. A version that stays missing was never there: other writers of this layout
/// leave gaps. Such a gap is remembered. A gap that has become smaller is another gap: its events are
/// becoming visible, so it gets as many looks as a new one.
pub(crate) fn events(
    table: AggregateTable,
    key: AggregateKey,
    range: Range,
) -> impl Stream<Item = Result<AggregateEvent, AggregateError>> + Send {
    let look = move |table: &AggregateTable, key: &AggregateKey, range| {
        items(table.clone(), key.to_string(), range).boxed()
    };
    let next = range.min_version.unwrap_or(1).max(1);
    let begin = Look { items: look(&table, &key, range), range, next, gap: None };
    try_unfold((begin, table, key), move |(mut state, table, key)| async move {
        let looks = || table.retry.attempts_max(LOOKS_MAX).start();
        loop {
            let Some(item) = state.items.try_next().await? else { return Ok(None) };
            let event = item::decode_named(item)?;
            let version = event.version.number();
            let gap = (!range.reverse && version > state.next)
                .then(|| (key.clone(), state.next, version))
                .filter(|gap| !table.gaps.has(gap));
            if let Some(gap) = gap {
                let begun = state.gap.take().filter(|(of, _)| *of == gap);
                let mut looks = begun.map_or_else(looks, |(_, looks)| looks);
                if looks.again().await {
                    state.gap = Some((gap, looks));
                    let range = Range { min_version: Some(state.next), ..state.range };
                    state.items = look(&table, &key, range);
                    continue;
                }
                if looks.made() < LOOKS_MAX {
                    let (operation, attempts) = ("reading events", looks.made());
                    let source = format!("no time was left to look for version {}", state.next);
                    let source = source.into();
                    return Err(StoreError::Unavailable { operation, attempts, source }.into());
                }
                table.gaps.remember(gap);
            }
            state.next = version.saturating_add(1);
            state.range.limit = state.range.limit.map(|limit| limit.saturating_sub(1));
            return Ok(Some((event, (state, table, key))));
        }
    })
}

/// The items of `partition` whose versions are in `range`. Each page is asked for no more items than are
/// still needed, so that a limit also bounds what is read and paid for.
pub(crate) fn items(
    table: AggregateTable,
    partition: String,
    range: Range,
) -> impl Stream<Item = Result<Item, AggregateError>> + Send {
    let begin = (!range.is_empty()).then_some((range, None));
    try_unfold((begin, table, partition), move |(state, table, partition)| async move {
        let Some((range, start)) = state else { return Ok(None) };
        let query =
            || table.dynamo.query(|query| of_range(query, &partition, range, start.clone()));
        let page = table.retry.run(query).await;
        let page = page.map_err(|gave_up| gave_up.during("reading events"))?;
        let items = page.items.unwrap_or_default();
        let read = u32::try_from(items.len()).unwrap_or(u32::MAX);
        let range = Range { limit: range.limit.map(|limit| limit.saturating_sub(read)), ..range };
        let next = page.last_evaluated_key.filter(|_| range.limit != Some(0));
        let next = next.map(|key| (range, Some(key)));
        Ok::<_, AggregateError>(Some((items, (next, table, partition))))
    })
    .map_ok(|items| iter(items).map(Ok))
    .try_flatten()
}

fn of_range(
    query: QueryInputBuilder,
    partition: &str,
    range: Range,
    start: Option<Item>,
) -> QueryInputBuilder {
    let query = query
        .consistent_read(true)
        .scan_index_forward(!range.reverse)
        .expression_attribute_names("#id", AGGREGATE_ID)
        .expression_attribute_values(":id", text(partition))
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
