//! Every item of a table, strongly, for what looks at the whole of it.

use aws_sdk_dynamodb::operation::scan::ScanOutput;
use aws_sdk_dynamodb::types::ReturnConsumedCapacity;
use futures::stream::{Stream, StreamExt, TryStreamExt, iter, try_unfold};
use ringfence_dynamo::{Failure, Item, Kind};

use crate::{AggregateError, Table};

/// The items, page by page.
pub(crate) fn items(table: &Table) -> impl Stream<Item = Result<Item, AggregateError>> + Send + '_ {
    try_unfold(Some(None), move |start: Option<Option<Item>>| async move {
        let Some(start) = start else { return Ok(None) };
        let page = table.retry.run(|| scan(table, start.clone())).await;
        let page = page.map_err(|gave_up| gave_up.during("scanning the table"))?;
        let next = page.last_evaluated_key.map(Some);
        Ok::<_, AggregateError>(Some((page.items.unwrap_or_default(), next)))
    })
    .map_ok(|items| iter(items).map(Ok))
    .try_flatten()
}

async fn scan(table: &Table, start: Option<Item>) -> Result<ScanOutput, Failure> {
    table.meter.sent(Kind::Read);
    let page = table
        .client
        .scan()
        .table_name(&table.name)
        .consistent_read(true)
        .set_exclusive_start_key(start)
        .return_consumed_capacity(ReturnConsumedCapacity::Indexes)
        .send()
        .await?;
    table.meter.consumed(Kind::Read, page.consumed_capacity());
    Ok(page)
}
