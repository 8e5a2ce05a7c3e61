//! Reading the items of one partition, page by page, strongly.

use aws_sdk_dynamodb::operation::query::QueryOutput;
use aws_sdk_dynamodb::types::ReturnConsumedCapacity;
use futures::stream::{Stream, StreamExt, TryStreamExt, iter, try_unfold};
use ringfence_dynamo::{Failure, Item, Kind};

use crate::item::{AGGREGATE_ID, VERSION, number, text};
use crate::limits::VERSION_MAX;
use crate::{AggregateError, Range, Table};

/// The items of `partition` whose versions are in `range`. Each page is asked for what is still
/// missing and no more, so that a limit bounds what is read, and paid for, as well.
pub(crate) fn items(
    table: &Table,
    partition: String,
    range: Range,
) -> impl Stream<Item = Result<Item, AggregateError>> + Send + '_ {
    let begin = (!range.is_empty()).then_some((range, None));
    try_unfold((begin, partition), move |(state, partition)| async move {
        let Some((range, start)) = state else { return Ok(None) };
        let page = table.retry.run(|| query(table, &partition, range, start.clone())).await;
        let page = page.map_err(|gave_up| gave_up.during("reading events"))?;
        let items = page.items.unwrap_or_default();
        let read = u32::try_from(items.len()).unwrap_or(u32::MAX);
        let range = Range { limit: range.limit.map(|limit| limit.saturating_sub(read)), ..range };
        let next = page.last_evaluated_key.filter(|_| range.limit != Some(0));
        let next = next.map(|key| (range, Some(key)));
        Ok::<_, AggregateError>(Some((items, (next, partition))))
    })
    .map_ok(|items| iter(items).map(Ok))
    .try_flatten()
}

async fn query(
    table: &Table,
    partition: &str,
    range: Range,
    start: Option<Item>,
) -> Result<QueryOutput, Failure> {
    table.meter.sent(Kind::Read);
    let mut query = table
        .client
        .query()
        .table_name(&table.name)
        .consistent_read(true)
        .scan_index_forward(!range.reverse)
        .expression_attribute_names("#id", AGGREGATE_ID)
        .expression_attribute_values(":id", text(partition))
        .set_limit(range.limit.map(|limit| i32::try_from(limit).unwrap_or(i32::MAX)))
        .set_exclusive_start_key(start)
        .return_consumed_capacity(ReturnConsumedCapacity::Indexes);
    query = match (range.min_version, range.max_version) {
        (None, None) => query.key_condition_expression("#id = :id"),
        (min, max) => query
            .key_condition_expression("#id = :id AND #version BETWEEN :min AND :max")
            .expression_attribute_names("#version", VERSION)
            .expression_attribute_values(":min", number(min.unwrap_or(0)))
            .expression_attribute_values(":max", number(max.unwrap_or(VERSION_MAX))),
    };
    let page = query.send().await?;
    table.meter.consumed(Kind::Read, page.consumed_capacity());
    Ok(page)
}
