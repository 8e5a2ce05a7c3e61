//! Every event of the table, for tools and exports; no decision can rest on it.

use aws_sdk_dynamodb::types::ReturnConsumedCapacity;
use futures::stream::{BoxStream, StreamExt, TryStreamExt, iter, try_unfold};
use ringfence::{LogError, SequencedEvent};
use ringfence_dynamo::{Failure, Item, Kind, Retry};

use crate::item::EVENT;
use crate::log::{DcbLog, failed};
use crate::read::decode_named;

impl DcbLog {
    /// Every event, page by page, in no order. An append that is under way may show in part, and
    /// the whole table is read and paid for.
    ///
    /// # Errors
    /// A page that can't be read, or an item that says it is an event and can't be decoded.
    pub fn scan(&self) -> BoxStream<'_, Result<SequencedEvent, LogError>> {
        try_unfold(Some(None), async |start: Option<Option<Item>>| {
            let Some(start) = start else { return Ok(None) };
            let page = Retry::default().run(|| self.scan_page(start.clone())).await;
            let (items, next) = page.map_err(|gave_up| failed("scanning the table", gave_up))?;
            Ok::<_, LogError>(Some((items, next.map(Some))))
        })
        .map_ok(|items| iter(items).map(|item| decode_named(&self.catalog, item)))
        .try_flatten()
        .boxed()
    }

    async fn scan_page(&self, start: Option<Item>) -> Result<(Vec<Item>, Option<Item>), Failure> {
        self.meter.sent(Kind::Read);
        let page = self
            .client
            .scan()
            .table_name(&self.table)
            .filter_expression("attribute_exists(#event)")
            .expression_attribute_names("#event", EVENT)
            .set_exclusive_start_key(start)
            .return_consumed_capacity(ReturnConsumedCapacity::Indexes)
            .send()
            .await?;
        self.meter.consumed(Kind::Read, page.consumed_capacity());
        Ok((page.items.unwrap_or_default(), page.last_evaluated_key))
    }
}
