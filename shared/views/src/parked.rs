//! Lists rows that could not be written, and folds them again.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_dynamodb::operation::query::builders::QueryInputBuilder;
use aws_sdk_dynamodb::types::AttributeValue;
use futures::StreamExt;
use ringfence_aws::{Attempts, Retry};
use ringfence_feed::{Checkpoint, Until};

use crate::batch::Touched;
use crate::fold::Folding;
use crate::keys::{Keys, VIEW};
use crate::project::{Projector, retired};
use crate::row::{
    Becomes, Content, PARKED, Parked, TOMBSTONE_MS, ViewTable, Was, Write, decode, failed,
};
use crate::{Definition, Generation, ViewError};

/// Rows that are folded in one pass over the index.
pub(crate) const PASS_ROWS_MAX: usize = 100;

/// How many entries a pass reads between two reports of its progress.
const REPORT_ENTRIES: u64 = 1_000;

/// The id of a parked row or of a parked event, its state, and why it is parked.
type ParkedRow = (String, Was, Parked);

/// The result of a retry of what a view has parked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Retried {
    /// How many rows are shown again.
    pub shown: u64,
    /// The ids of rows that still can't be written, each with the reason.
    pub left: Vec<(String, Parked)>,
    /// How many events the rows show now.
    pub events: u64,
    /// Events that still can't be read.
    pub events_left: Vec<Parked>,
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
        let keys = Keys::of(view, registered.live);
        let parked = self.table.parked(&keys, None, usize::MAX).await?;
        let parked: BTreeMap<_, _> =
            parked.into_iter().map(|(id, _, parked)| (id, parked)).collect();
        Ok(parked.into_iter().collect())
    }

    /// Folds again, from the first event on, the parked rows of the served generation and the rows of its parked
    /// events, and shows those that can be written now. Projectors may go on meanwhile. It reads the index once for
    /// each 100 rows.
    ///
    /// # Errors
    /// As [`Projector::run`]; rows that are not shown yet stay parked.
    pub async fn retry(
        &self,
        view: &Definition,
        report: &(dyn Fn(Checkpoint) + Send + Sync),
    ) -> Result<Retried, ViewError> {
        let mut retried = Retried::default();
        let Some(registered) = self.table.registered(view.name, true).await? else {
            return Ok(retried);
        };
        self.retry_events(view, registered.live, report, &mut retried).await?;
        let keys = Keys::of(view, registered.live);
        let mut after = None;
        loop {
            let parked = self.table.parked(&keys, after.as_deref(), PASS_ROWS_MAX).await?;
            let Some((last, ..)) = parked.last() else { return Ok(retried) };
            after = Some(last.clone());
            let parked = parked.into_iter().map(|(id, ..)| id).collect();
            self.pass(view, registered.live, parked, true, report, &mut retried).await?;
        }
    }

    /// Folds some rows up to the view's checkpoint, and writes them: only rows that are still parked, or all.
    pub(crate) async fn pass(
        &self,
        view: &Definition,
        live: Generation,
        ids: BTreeSet<String>,
        parked_only: bool,
        report: &(dyn Fn(Checkpoint) + Send + Sync),
        retried: &mut Retried,
    ) -> Result<(), ViewError> {
        let keys = Keys::of(view, live);
        let reader = &keys.reader;
        let mut rows: BTreeMap<String, Folding> =
            ids.into_iter().map(|id| (id, Folding::of(None))).collect();
        let mut at = Checkpoint::START;
        let mut attempts = Retry::default().start();
        while !rows.is_empty() {
            let reached = self.checkpoints.load(reader).await?;
            let to = reached.unwrap_or_default();
            if to == retired() {
                // Another generation is served now, with other rows.
                return Ok(());
            }
            self.fold_parked(view, &mut rows, at, to, report).await?;
            at = to;
            while let Some((id, row)) = rows.first_key_value() {
                let stored = self.table.item(keys.key(id), true).await?.map(decode).transpose()?;
                let (was, content) = stored.map(|(_, row)| (row.was, row.content)).unzip();
                let was_parked = matches!(content, Some(Some(Content::Parked(_))));
                if was.as_ref().is_some_and(|was: &Was| was.as_of > to) {
                    // The row shows an event that the view has not reached, or has reached by now.
                    if self.checkpoints.load(reader).await? == reached {
                        again(&mut attempts, view).await?;
                    }
                    break;
                }
                let becomes = row.clone().end(id);
                match becomes {
                    // Another retry has shown it.
                    _ if parked_only && !was_parked => {}
                    Becomes::Parked(parked) if was_parked => {
                        retried.left.extend(parked_only.then(|| (id.clone(), parked)));
                    }
                    becomes => {
                        let is_parked = matches!(becomes, Becomes::Parked(_));
                        let (id, token) = (id.clone(), self.clock.uuid().to_string());
                        let write = Write { id, was, becomes, retried: Some(token.clone()) };
                        let goes_ms = Some(self.clock.now_ms() + TOMBSTONE_MS);
                        let mut actions = vec![
                            // No projector has gone on meanwhile.
                            self.checkpoints.action(reader, reached, to),
                            write.action(self.table.0.name(), &keys, to, goes_ms),
                        ];
                        let more = i64::from(is_parked) - i64::from(was_parked);
                        if more != 0 {
                            actions.push(self.table.count_parked(view.name, live, more));
                        }
                        if more > 0 {
                            actions.push(self.checkpoints.leave(reader));
                        }
                        if !self.table.transact("folding a row again", actions, &token).await? {
                            if self.checkpoints.load(reader).await? != reached {
                                break;
                            }
                            again(&mut attempts, view).await?;
                            continue;
                        }
                        retried.shown += u64::from(more < 0);
                    }
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
        rows: &mut BTreeMap<String, Folding>,
        from: Checkpoint,
        to: Checkpoint,
        report: &(dyn Fn(Checkpoint) + Send + Sync),
    ) -> Result<(), ViewError> {
        if from >= to {
            return Ok(());
        }
        let mut read: u64 = 0;
        let of = *view;
        let mut feed =
            self.index.read_where(from, Until::Present, move |it| of.wants(&it.event_type));
        while let Some(step) = feed.next().await {
            let touched = Touched::new(view, &self.catalogs, step)?;
            let checkpoint = touched.checkpoint();
            if checkpoint > to {
                break;
            }
            for id in touched.rows() {
                if let Some(row) = rows.remove(id) {
                    rows.insert(id.clone(), touched.fold(view, id, row));
                }
            }
            read += 1;
            if read.is_multiple_of(REPORT_ENTRIES) {
                report(checkpoint);
            }
            if checkpoint == to {
                break;
            }
        }
        Ok(())
    }
}

/// Waits for another attempt.
async fn again(attempts: &mut Attempts, view: &Definition) -> Result<(), ViewError> {
    match attempts.again().await {
        true => Ok(()),
        false => Err(ViewError::Contention { view: view.name, attempts: attempts.made() }),
    }
}

impl ViewTable {
    /// At most `most` parked items, shard by shard and there in the order of their ids, after the item `after`.
    pub(crate) async fn parked(
        &self,
        keys: &Keys,
        after: Option<&str>,
        most: usize,
    ) -> Result<Vec<ParkedRow>, ViewError> {
        let mut parked = Vec::new();
        let mut start = after.map(|after| keys.key(after));
        for shard in keys.shards().skip_while(|n| after.is_some_and(|id| *n < keys.shard_of(id))) {
            let view = keys.shard(shard);
            loop {
                let query = || {
                    let start = start.clone();
                    self.0.query(|query| of_parked(query, &view).set_exclusive_start_key(start))
                };
                let page = Retry::default().run(query).await;
                let page = page.map_err(failed("listing parked rows"))?;
                for item in page.items.unwrap_or_default() {
                    let (id, stored) = decode(item)?;
                    if let Some(Content::Parked(why)) = stored.content {
                        parked.push((id, stored.was, why));
                    }
                    if parked.len() == most {
                        return Ok(parked);
                    }
                }
                start = page.last_evaluated_key;
                if start.is_none() {
                    break;
                }
            }
        }
        Ok(parked)
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
