//! Strong reads of every item of a table, for code that looks at the whole table.

use futures::stream::{Stream, StreamExt, TryStreamExt, iter, try_unfold};
use ringfence_aws::Item;

use crate::{AggregateError, AggregateTable};

/// The items, page by page.
pub(crate) fn items(
    table: &AggregateTable,
) -> impl Stream<Item = Result<Item, AggregateError>> + Send + '_ {
    try_unfold(Some(None), move |start: Option<Option<Item>>| async move {
        let Some(start) = start else { return Ok(None) };
        let scan = || {
            let start = start.clone();
            table.dynamo.scan(|scan| scan.consistent_read(true).set_exclusive_start_key(start))
        };
        let page = table.retry.run(scan).await;
        let page = page.map_err(|gave_up| gave_up.during("scanning the table"))?;
        let next = page.last_evaluated_key.map(Some);
        let items = page.items.unwrap_or_default().into_iter();
        let items: Vec<Item> = items.map(|item| table.stores.read(item)).collect();
        Ok::<_, AggregateError>(Some((items, next)))
    })
    .map_ok(|items| iter(items).map(Ok))
    .try_flatten()
}
