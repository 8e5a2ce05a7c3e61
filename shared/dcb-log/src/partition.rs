//! Reads a partition: its events one after another, and its end.

use std::ops::RangeInclusive;

use aws_sdk_dynamodb::operation::query::builders::QueryInputBuilder;
use futures::stream::{Stream, StreamExt, TryStreamExt, iter, try_unfold};
use ringfence_aws::{Item, Retry};
use ringfence_core::{BoundaryId, LogError};

use crate::item::{AT, ID, POSITION, number, slot, text, whole};
use crate::log::DcbLog;

impl DcbLog {
    /// The items of the partition's events in some slots, one page after the other. Even if the read is strong, the
    /// events of one append may become visible one by one, so there can be gaps. A caller that reads to the end must
    /// ignore the events after a gap.
    ///
    /// # Errors
    /// A page can't be read.
    pub fn items_in<'a>(
        &'a self,
        partition: &'a BoundaryId,
        slots: RangeInclusive<u64>,
        strong: bool,
        retry: Retry,
    ) -> impl Stream<Item = Result<Item, LogError>> + Send + 'a {
        let (first, last) = slots.into_inner();
        try_unfold(Some(None), move |start: Option<Option<Item>>| async move {
            let Some(start) = start else { return Ok(None) };
            let query = || {
                let start = start.clone();
                self.table.query(move |query| {
                    of_partition(query, partition)
                        .key_condition_expression(
                            "#id = :id AND #position BETWEEN :first AND :last",
                        )
                        .expression_attribute_names("#position", POSITION)
                        .expression_attribute_values(":first", number(first))
                        .expression_attribute_values(":last", number(last))
                        .consistent_read(strong)
                        .set_exclusive_start_key(start)
                })
            };
            let page = retry.run(query).await;
            let page = page.map_err(|gave_up| gave_up.during("reading a partition"))?;
            let next = page.last_evaluated_key.map(Some);
            Ok::<_, LogError>(Some((page.items.unwrap_or_default(), next)))
        })
        .map_ok(|items| iter(items).map(Ok))
        .try_flatten()
    }
}

/// Slot and time of a partition's last event; `None` if it has no events. A writer can try the slot after it. A
/// decision can't rely on it, because events before it may not be visible yet.
pub(crate) async fn last(
    log: &DcbLog,
    partition: &BoundaryId,
    strong: bool,
    retry: Retry,
) -> Result<Option<(u64, u64)>, LogError> {
    let query = || {
        log.table.query(|query| {
            of_partition(query, partition)
                .key_condition_expression("#id = :id")
                .consistent_read(strong)
                .scan_index_forward(false)
                .limit(1)
        })
    };
    let page = retry.run(query).await;
    let page = page.map_err(|gave_up| gave_up.during("reading the end of a partition"))?;
    let last = page.items.unwrap_or_default().into_iter().next();
    Ok(last.and_then(|item| Some((slot(&item)?, whole(&item, AT).unwrap_or(0)))))
}

fn of_partition(query: QueryInputBuilder, partition: &BoundaryId) -> QueryInputBuilder {
    query
        .expression_attribute_names("#id", ID)
        .expression_attribute_values(":id", text(partition.as_str()))
}
