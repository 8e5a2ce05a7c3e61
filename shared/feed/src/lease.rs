//! The lease on the end of the index: indexers that are in each other's way put pages one after another.
//!
//! If several put a page at one end, all but one are refused, and a refusal costs as much as the page. So where pages
//! cost more than the lease, or are refused again and again, they take it first, and give it back when their pages are
//! there, before these are settled. They leave in it where to read on, and later which of their pages are settled. An
//! indexer that is alone, or has few events at a time, never asks for the lease.
//!
//! The lease is a hint. It may be lost, taken over or late, and its end may be old or wrong: the condition of each put
//! guards the index, and an end of the lease only says where to read. The `settled` pages in it are settled.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue, Update};
use ringfence_aws::{Failure, Retry};

use crate::checkpoint::Checkpoint;
use crate::indexer::{End, Indexer};
use crate::item::{END, Left, OWNER, P, S, SETTLED, UNTIL, lease_key, number, numbers, text};

/// For how many rounds an indexer takes the lease after another one was in its way.
pub(crate) const CROWD: u32 = 16;
/// The lease is over after this time in milliseconds, if it is not given back.
const HELD_MS: u64 = 2_000;
/// How often an indexer asks for the lease before it goes on without: for some 30 seconds.
const ASKS_MAX: u32 = 150;

/// The turn of a round.
pub(crate) struct Turn<'a> {
    indexer: &'a Indexer,
    retry: Retry,
    /// When it took the lease, or may have taken it.
    taken_ms: Option<u64>,
    /// The ends of pages that the lease said to be settled.
    settled: Vec<Checkpoint>,
}

impl<'a> Turn<'a> {
    pub(crate) fn new(indexer: &'a Indexer, retry: Retry) -> Self {
        Self { indexer, retry, taken_ms: None, settled: Vec::new() }
    }

    /// Takes the lease. Waits while another indexer has it, at most for half of the time that is left. Returns where
    /// the last holder's page ended, and the place before which all pages are settled.
    pub(crate) async fn take(&mut self, end: &mut End) -> Option<(Checkpoint, Checkpoint)> {
        let half = self.retry.left().map(|left| left / 2);
        for ask in 1..=ASKS_MAX {
            match self.ask().await {
                Ok(page) => return page,
                Err(Failure::Condition(_)) => end.crowd = CROWD,
                Err(failure) if failure.is_transient() => {}
                Err(_) => return None,
            }
            // The longer it has waited, the more others wait: it asks less often.
            let wait = 1 + ask.min(12) / 3;
            if self.retry.left() < half || !self.retry.pause(wait).await {
                return None;
            }
        }
        None
    }

    /// Whether it has the lease, or may have it.
    pub(crate) fn is_taken(&self) -> bool {
        self.taken_ms.is_some()
    }

    /// The ends of pages that the lease said to be settled.
    pub(crate) fn settled(&self) -> &[Checkpoint] {
        &self.settled
    }

    /// Asks again which pages are settled, and keeps the lease for longer. Returns whether it still has it.
    pub(crate) async fn look(&mut self) -> bool {
        drop(self.ask().await);
        self.is_taken()
    }

    /// Keeps the lease for longer, if half of its time is over.
    pub(crate) async fn keep(&mut self) {
        let half_ms = self.taken_ms.map(|ms| ms + HELD_MS / 2);
        if half_ms.is_some_and(|ms| ms < self.indexer.now_ms()) {
            drop(self.ask().await);
        }
    }

    /// Asks for the lease once. Returns the last holder's page, as [`Turn::take`].
    async fn ask(&mut self) -> Result<Option<(Checkpoint, Checkpoint)>, Failure> {
        let now_ms = self.indexer.now_ms();
        let take = self.taken(now_ms);
        let (table, once) = (&self.indexer.index.table, self.retry.attempts_max(1));
        let asked = once.run(|| table.update(take.clone(), Some(ReturnValue::AllOld))).await;
        let asked = asked.map_err(|gave_up| gave_up.failure);
        // If the answer is lost, it may have it.
        self.taken_ms = match &asked {
            Err(failure) if !failure.is_transient() => None,
            _ => Some(now_ms),
        };
        let left = asked?.as_ref().map(Left::of).unwrap_or_default();
        self.settled = left.settled;
        Ok(left.page)
    }

    /// Gives the lease back, with the end of the page that was put, and the place before which that says that all pages
    /// are settled. If that fails, the others wait until the lease is over. Returns whether it had the lease.
    pub(crate) async fn give(&mut self, page: Option<(Checkpoint, Checkpoint)>) -> bool {
        if self.taken_ms.take().is_none() {
            return false;
        }
        let (mut what, mut names) = ("REMOVE #owner, #until".to_owned(), vec![OWNER, UNTIL]);
        let mut values = vec![(OWNER, text(self.indexer.owner()))];
        if let Some((end, s)) = page {
            what += " SET #end = :end, #s = :s";
            names.extend([END, S]);
            values.extend([(END, number(end)), (S, number(s))]);
            // The page says so.
            self.settled.retain(|end| *end <= s);
            if !self.settled.is_empty() {
                what += " DELETE #settled :settled";
                names.push(SETTLED);
                values.push((SETTLED, numbers(&self.settled)));
            }
        }
        let give = self.update(&what, "#owner = :owner", &names, values);
        drop(self.retry.run(|| self.indexer.index.table.update(give.clone(), None)).await);
        true
    }

    /// Leaves in the lease which pages are settled. If that fails, others find it out.
    pub(crate) async fn announce(&self, settled: &[Checkpoint]) {
        let values = vec![(SETTLED, numbers(settled))];
        let add = "ADD #settled :settled";
        let add = self.update(add, "attribute_exists(#p)", &[P, SETTLED], values);
        drop(self.retry.run(|| self.indexer.index.table.update(add.clone(), None)).await);
    }

    fn taken(&self, now_ms: u64) -> Update {
        // Only a clock that is wrong says a time after the latest.
        let values = vec![
            (OWNER, text(self.indexer.owner())),
            (UNTIL, number(now_ms + HELD_MS)),
            ("now", number(now_ms)),
            ("latest", number(now_ms + 2 * HELD_MS)),
        ];
        let free =
            "attribute_not_exists(#owner) OR #owner = :owner OR #until < :now OR #until > :latest";
        self.update("SET #owner = :owner, #until = :until", free, &[OWNER, UNTIL], values)
    }

    fn update(
        &self,
        what: &str,
        condition: &str,
        names: &[&str],
        values: Vec<(&str, AttributeValue)>,
    ) -> Update {
        let names = names.iter().map(|name| (format!("#{name}"), (*name).to_owned()));
        let values = values.into_iter().map(|(name, value)| (format!(":{name}"), value));
        Update::builder()
            .table_name(self.indexer.index.table.name())
            .set_key(Some(lease_key()))
            .update_expression(what)
            .condition_expression(condition)
            .set_expression_attribute_names(Some(names.collect()))
            .set_expression_attribute_values(Some(values.collect::<HashMap<_, _>>()))
            .build()
            .expect("table, key and expression are set")
    }
}
