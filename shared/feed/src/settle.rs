//! Settles pages: moves the progress of each of their partitions to the partition's last event in them.
//!
//! Each move is a single request. Anybody can send it again at any time, because a checkpoint only grows. A transaction
//! would gain nothing: its items become visible one by one.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::Update;
use futures::future::ready;
use futures::stream::{StreamExt, TryStreamExt, iter};
use ringfence_aws::{Failure, Item, Retry, Table};
use tokio::task::JoinSet;

use crate::checkpoint::Checkpoint;
use crate::error::{FeedError, failed};
use crate::item::{CHECKPOINT, Progress, Reached, progress_key};
use crate::partition::Partition;

/// Moves under way at once.
const MOVES_AT_ONCE: usize = 128;

/// Pages that are settled together.
#[derive(Default)]
pub(crate) struct Group {
    pub(crate) reached: Reached,
    /// Where they end.
    pub(crate) ends: Vec<Checkpoint>,
}

impl Group {
    /// Adds a page that comes after the others.
    pub(crate) fn add(&mut self, end: Checkpoint, reached: &Reached) {
        self.reached.extend(reached.iter().map(|(of, to)| (of.clone(), to.clone())));
        self.ends.push(end);
    }

    /// The moves that are missing, if this much is stored.
    pub(crate) fn behind<'a>(
        &'a self,
        stored: &'a Reached,
    ) -> impl Iterator<Item = (&'a Partition, &'a Progress)> {
        let is_behind = |(partition, to): &(&Partition, &Progress)| {
            stored.get(*partition).is_none_or(|stored| stored.checkpoint < to.checkpoint)
        };
        self.reached.iter().filter(is_behind)
    }
}

/// Settles pages while later ones are put. Pages that are put meanwhile wait, and a partition moves once for all of
/// them. Dropping it stops it.
pub(crate) struct Settling {
    table: Table,
    retry: Retry,
    waiting: Group,
    running: JoinSet<Result<Group, FeedError>>,
}

impl Settling {
    pub(crate) fn new(table: Table, retry: Retry) -> Self {
        Self { table, retry, waiting: Group::default(), running: JoinSet::new() }
    }

    /// Settles a page that comes after all that were added before.
    pub(crate) fn add(&mut self, end: Checkpoint, reached: &Reached) {
        self.waiting.add(end, reached);
        self.go_on();
    }

    fn go_on(&mut self) {
        if self.running.is_empty() && !self.waiting.ends.is_empty() {
            let (table, retry) = (self.table.clone(), self.retry);
            let group = std::mem::take(&mut self.waiting);
            self.running.spawn(async move {
                settle(&table, &group.reached, retry).await?;
                Ok(group)
            });
        }
    }

    /// Waits for the next pages that are settled. `None` if all are.
    pub(crate) async fn next(&mut self) -> Option<Result<Group, FeedError>> {
        let done = self.running.join_next().await?;
        self.go_on();
        Some(done.expect("settling does not panic"))
    }

    /// The next pages that are settled, if any are by now.
    pub(crate) fn ready(&mut self) -> Option<Result<Group, FeedError>> {
        let done = self.running.try_join_next()?;
        self.go_on();
        Some(done.expect("settling does not panic"))
    }
}

/// Moves each partition to its progress, unless it has come further. If the table refuses some moves for now, the
/// others are made, and then those again: what is not moved has to be read again. It gives up if nothing moves any
/// more.
pub(crate) async fn settle(
    table: &Table,
    reached: impl IntoIterator<Item = (&Partition, &Progress)>,
    retry: Retry,
) -> Result<(), FeedError> {
    let advance = |update: Update| async move {
        match retry.run(|| table.update(update.clone(), None)).await {
            Err(gave_up) if matches!(gave_up.failure, Failure::Condition(_)) => Ok(None),
            Err(gave_up) if gave_up.failure.is_transient() => Ok(Some((update, gave_up))),
            Err(gave_up) => Err(failed("moving a progress")(gave_up)),
            Ok(_) => Ok(None),
        }
    };
    let of_table = |(partition, progress)| update(table.name(), partition, progress);
    let mut moves: Vec<_> = reached.into_iter().map(of_table).collect();
    let mut attempts = retry.start();
    loop {
        let before = moves.len();
        let made = iter(moves).map(advance).buffer_unordered(MOVES_AT_ONCE);
        let mut refused: Vec<_> = made.try_filter_map(|it| ready(Ok(it))).try_collect().await?;
        let Some((last, gave_up)) = refused.pop() else { return Ok(()) };
        if refused.len() + 1 < before {
            attempts = retry.start();
        }
        if !attempts.again().await {
            return Err(failed("moving a progress")(gave_up));
        }
        moves = refused.into_iter().map(|(update, _)| update).chain([last]).collect();
    }
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
