//! Lists rows that could not be written, and folds them again.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::operation::query::builders::QueryInputBuilder;
use aws_sdk_dynamodb::types::AttributeValue;
use futures::TryStreamExt;
use ringfence_dynamo::Retry;
use ringfence_feed::{Checkpoint, Until};

use crate::batch::Touched;
use crate::fold::Folding;
use crate::project::{Projector, retired};
use crate::row::{
    Becomes, Content, PARKED, Parked, VIEW, ViewTable, Write, decode, failed, key, partition,
};
use crate::{Definition, Generation, ViewError};

/// Rows that are folded in one pass over the index.
const PASS_ROWS_MAX: usize = 100;

/// How many entries a pass reads between two reports of its progress.
const TOLD_ENTRIES: u64 = 1_000;

/// A parked row, and the checkpoint at which it was parked.
type ParkedRow = (String, Checkpoint, Parked);

/// A parked row that is folded again.
struct Refolded {
    was: Checkpoint,
    row: Folding,
}

/// The result of a retry of a view's parked rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Retried {
    /// How many are shown again.
    pub shown: u64,
    /// The ids of those that still can't be written, each with the reason.
    pub left: Vec<(String, Parked)>,
}

impl Projector {
    /// The parked rows of the generation that is served, in the order of their ids. If there are any, it
    /// reads (and pays for) all rows of the view.
    ///
    /// # Errors
    /// The view table can't be read, or holds items that this crate did not write.
    pub async fn parked(&self, view: &Definition) -> Result<Vec<(String, Parked)>, ViewError> {
        let Some(registered) = self.table.registered(view.name, true).await? else {
            return Ok(Vec::new());
        };
        if registered.parked == 0 {
            return Ok(Vec::new());
        }
        let rows = partition(view.name, registered.live);
        let parked = self.table.parked(&rows, None, usize::MAX).await?;
        Ok(parked.into_iter().map(|(id, _, parked)| (id, parked)).collect())
    }

    /// Folds the parked rows of the served generation again, from the first event on, and shows those that can be
    /// written now. Projectors may go on meanwhile. It reads the index once for each
    /// 100 rows.
    ///
    /// # Errors
    /// As [`Projector::run`]; rows that are not shown yet stay parked.
    pub async fn retry(
        &self,
        view: &Definition,
        told: &(dyn Fn(Checkpoint) + Send + Sync),
    ) -> Result<Retried, ViewError> {
        let mut retried = Retried::default();
        let Some(registered) = self.table.registered(view.name, true).await? else {
            return Ok(retried);
        };
        let rows = partition(view.name, registered.live);
        let mut after = None;
        loop {
            let parked = self.table.parked(&rows, after.as_deref(), PASS_ROWS_MAX).await?;
            let Some((last, ..)) = parked.last() else { return Ok(retried) };
            after = Some(last.clone());
            self.pass(view, registered.live, parked, told, &mut retried).await?;
        }
    }

    /// Folds some parked rows up to the view's checkpoint, and writes them.
    async fn pass(
        &self,
        view: &Definition,
        live: Generation,
        parked: Vec<ParkedRow>,
        told: &(dyn Fn(Checkpoint) + Send + Sync),
        retried: &mut Retried,
    ) -> Result<(), ViewError> {
        let reader = partition(view.name, live);
        let again = |(id, was, _)| (id, Refolded { was, row: Folding::of(None) });
        let mut rows: BTreeMap<String, Refolded> = parked.into_iter().map(again).collect();
        let mut at = Checkpoint::START;
        let mut attempts = Retry::default().start();
        while !rows.is_empty() {
            let reached = self.checkpoints.reached(&reader).await?;
            let to = reached.checkpoint.unwrap_or_default();
            if to == retired() {
                // Another generation is served now, with rows of its own.
                return Ok(());
            }
            if reached.part.is_some() {
                // An event is being written in several transactions. One of them may already have passed
                // by a parked row of the event, so the row's turn comes when the event is done.
                if attempts.again().await {
                    continue;
                }
                let (view, attempts) = (view.name, attempts.made());
                return Err(ViewError::Contention { view, attempts });
            }
            self.fold_parked(view, &mut rows, at, to, told).await?;
            at = to;
            while let Some((id, Refolded { was, row })) = rows.first_key_value() {
                let becomes = row.clone().end(id);
                if let Becomes::Parked(parked) = becomes {
                    retried.left.push((id.clone(), parked));
                } else {
                    let write = Write { id: id.clone(), was: Some((*was, PARKED)), becomes };
                    let actions = vec![
                        // No projector has gone on meanwhile.
                        self.checkpoints.action(&reader, &reached, &to.into()),
                        self.table.count_parked(view.name, live, -1),
                        write.action(self.table.0.name(), &reader, to, view.shards),
                    ];
                    let token = self.clock.uuid().to_string();
                    if self.table.transact("showing a parked row", actions, &token).await? {
                        retried.shown += 1;
                    } else if self.checkpoints.reached(&reader).await? != reached {
                        break;
                    }
                    // Otherwise another retry has written the row.
                }
                rows.pop_first();
            }
        }
        Ok(())
    }

    /// Folds into the rows the events between two checkpoints.
    async fn fold_parked(
        &self,
        view: &Definition,
        rows: &mut BTreeMap<String, Refolded>,
        from: Checkpoint,
        to: Checkpoint,
        told: &(dyn Fn(Checkpoint) + Send + Sync),
    ) -> Result<(), ViewError> {
        if from >= to {
            return Ok(());
        }
        let mut read: u64 = 0;
        let mut feed = self.index.read(from, Until::Present);
        while let Some(entry) = feed.try_next().await? {
            let checkpoint = entry.checkpoint;
            if checkpoint > to {
                break;
            }
            let touched = Touched::new(view, &self.catalogs, entry)?;
            for id in touched.rows() {
                if let Some(again) = rows.remove(id) {
                    let row = touched.fold(view, id, again.row);
                    rows.insert(id.clone(), Refolded { row, ..again });
                }
            }
            read += 1;
            if read.is_multiple_of(TOLD_ENTRIES) {
                told(checkpoint);
            }
            if checkpoint == to {
                break;
            }
        }
        Ok(())
    }
}

impl ViewTable {
    /// Parked rows of a generation, in the order of their ids: those after the id `after`, at most
    /// `most` of them.
    async fn parked(
        &self,
        view: &str,
        after: Option<&str>,
        most: usize,
    ) -> Result<Vec<ParkedRow>, ViewError> {
        let mut parked = Vec::new();
        let mut start = after.map(|after| key(view, after));
        loop {
            let query = || {
                self.0.query(|query| of_parked(query, view).set_exclusive_start_key(start.clone()))
            };
            let page = Retry::default().run(query).await.map_err(failed("listing parked rows"))?;
            for item in page.items.unwrap_or_default() {
                let (id, stored) = decode(item)?;
                if let Content::Parked(why) = stored.content {
                    parked.push((id, stored.as_of, why));
                }
                if parked.len() == most {
                    return Ok(parked);
                }
            }
            start = page.last_evaluated_key;
            if start.is_none() {
                return Ok(parked);
            }
        }
    }
}

fn of_parked(query: QueryInputBuilder, view: &str) -> QueryInputBuilder {
    query
        .consistent_read(true)
        .key_condition_expression("#view = :view")
        .filter_expression("attribute_exists(#parked)")
        .expression_attribute_names("#view", VIEW)
        .expression_attribute_names("#parked", PARKED)
        .expression_attribute_values(":view", AttributeValue::S(view.to_owned()))
}
