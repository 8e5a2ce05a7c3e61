//! Settles a page: moves the progress of each of its partitions to its last event in the page.
//!
//! The partition of the page's last entry moves after all others. So its progress alone tells whether the page is
//! settled.
//!
//! Each move is a single request. Anybody can send it again at any time, because a checkpoint only grows. A transaction
//! would gain nothing: its items become visible one by one.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::Update;
use futures::stream::{StreamExt, TryStreamExt, iter};
use ringfence_aws::{Failure, Item, Retry, Table};

use crate::error::{FeedError, failed};
use crate::item::{CHECKPOINT, Progress, progress_key};
use crate::partition::Partition;

/// Moves under way at once.
const MOVES_AT_ONCE: usize = 128;

/// Moves each partition to its progress, unless it has come further; the partition of the last entry comes last.
pub(crate) async fn settle(
    table: &Table,
    reached: impl IntoIterator<Item = (&Partition, &Progress)>,
    retry: Retry,
) -> Result<(), FeedError> {
    let advance = |(partition, progress): (&Partition, &Progress)| {
        let update = update(table.name(), partition, progress);
        async move {
            match retry.run(|| table.update(update.clone(), None)).await {
                Err(gave_up) if !matches!(gave_up.failure, Failure::Condition(_)) => {
                    Err(failed("moving a progress")(gave_up))
                }
                _ => Ok(()),
            }
        }
    };
    let mut reached: Vec<_> = reached.into_iter().collect();
    reached.sort_unstable_by_key(|(_, progress)| progress.checkpoint);
    let Some(last) = reached.pop() else { return Ok(()) };
    let others: Vec<_> = reached.into_iter().map(advance).collect();
    iter(others).buffer_unordered(MOVES_AT_ONCE).try_collect::<()>().await?;
    advance(last).await
}

fn update(table: &str, partition: &Partition, progress: &Progress) -> Update {
    let mut names = HashMap::new();
    let mut values = Item::new();
    let mut sets = Vec::new();
    for (name, value) in progress.attributes() {
        names.insert(format!("#{name}"), name.to_owned());
        values.insert(format!(":{name}"), value);
        sets.push(format!("#{name} = :{name}"));
    }
    Update::builder()
        .table_name(table)
        .set_key(Some(progress_key(&partition.id)))
        .update_expression(format!("SET {}", sets.join(", ")))
        .condition_expression(format!(
            "attribute_not_exists(#{CHECKPOINT}) OR #{CHECKPOINT} < :{CHECKPOINT}"
        ))
        .set_expression_attribute_names(Some(names))
        .set_expression_attribute_values(Some(values))
        .build()
        .expect("table, key and expression are set")
}
