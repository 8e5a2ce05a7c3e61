//! Pruning: deletes the oldest events of a stream.

use ringfence_aws::Failure;
use ringfence_core::{Consistency, Envelope, StoreError};

use crate::{
    Batch, Direction, DocumentError, DocumentLog, Expect, ItemQuery, Store, StreamName, TipChange,
    Write,
};

/// The result of a prune.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Events that were deleted.
    pub deleted: u64,
    /// Events that stay for now, because their calf also has later events: a calf is never rewritten.
    pub deferred: u64,
    /// The index of the first event that is left, or of the next one.
    pub first: u64,
}

/// The oldest item that a prune leaves, and the index of its first event.
enum Left {
    Calf(u64),
    Tip(u64),
    Nothing,
}

impl<S: Store> DocumentLog<S> {
    /// Deletes the events before index `before`: whole calves, oldest first, so that an interruption leaves no gap. If
    /// no calf is left, it then deletes events in the Tip. Unfolds stay.
    ///
    /// # Errors
    /// [`DocumentError::NoTip`], and nothing is deleted; or a request failed. Then the deleted events stay deleted, and
    /// the prune can run again.
    pub async fn prune(
        &self,
        stream: &StreamName,
        before: u64,
        envelope: &Envelope,
    ) -> Result<Pruned, DocumentError> {
        let mut attempts = self.retry(envelope).start();
        let mut began = None;
        let no_tip = || DocumentError::NoTip { stream: stream.clone() };
        if self.tip(stream, Consistency::Strong, envelope).await?.is_none() {
            // The stream can be repaired from its calves.
            match self.prune_calves(stream, 0, envelope, &mut began).await? {
                Left::Nothing => return Ok(Pruned::default()),
                Left::Calf(_) => return Err(no_tip()),
                Left::Tip(_) => {}
            }
        }
        loop {
            let calves = self.prune_calves(stream, before, envelope, &mut began).await?;
            let ended = |first: u64, deferred: u64| {
                let deleted = first - began.unwrap_or(first);
                Ok(Pruned { deleted, deferred, first })
            };
            let seen = match calves {
                Left::Calf(first) => return ended(first, before.saturating_sub(first)),
                Left::Tip(base) => base,
                Left::Nothing => return Err(no_tip()),
            };
            // A calving in between may have made a calf that this round has not seen.
            let tip = self.tip(stream, Consistency::Strong, envelope).await?;
            if let Some(tip) = tip.filter(|tip| tip.base() == seen) {
                let first = before.min(tip.version).max(seen);
                if first == seen || self.trim(&tip, first - seen, envelope).await? {
                    return ended(first, 0);
                }
            }
            if !attempts.again().await {
                let attempts = attempts.made();
                return Err(StoreError::Contention { attempts, over: None }.into());
            }
        }
    }

    /// Deletes calves from the oldest on, and returns the oldest item that is left. `began` is the index at which the
    /// stream began.
    async fn prune_calves(
        &self,
        stream: &StreamName,
        before: u64,
        envelope: &Envelope,
        began: &mut Option<u64>,
    ) -> Result<Left, DocumentError> {
        let mut beyond = None;
        loop {
            let query = ItemQuery {
                stream,
                direction: Direction::Forward,
                beyond,
                items_max: None,
                consistency: Consistency::Strong,
            };
            let page = self.retry(envelope).run(|| self.store.query(query)).await;
            let page = page.map_err(|gave_up| gave_up.during("reading calves"))?;
            for batch in page.batches {
                began.get_or_insert(batch.base());
                if batch.is_tip() {
                    return Ok(Left::Tip(batch.base()));
                }
                if batch.version > before {
                    return Ok(Left::Calf(batch.base()));
                }
                let retry = self.retry(envelope);
                let deleted = retry.run(|| self.store.delete(stream, batch.key)).await;
                deleted.map_err(|gave_up| gave_up.during("deleting a calf"))?;
                beyond = Some(batch.key);
            }
            if !page.more {
                return Ok(Left::Nothing);
            }
        }
    }

    /// Takes the oldest events out of the Tip, if it has not changed since the read. Nothing is appended, so `a` is 0,
    /// and readers of the table's stream report nothing.
    async fn trim(
        &self,
        tip: &Batch,
        gone: u64,
        envelope: &Envelope,
    ) -> Result<bool, DocumentError> {
        let gone = usize::try_from(gone).unwrap_or(usize::MAX).min(tip.events.len());
        let etag = self.clock.uuid().to_string();
        let write = Write {
            calf: None,
            change: TipChange::Replace,
            expect: match &tip.etag {
                Some(etag) => Expect::Etag(etag.clone()),
                None => Expect::Version { version: tip.version, held: tip.events.len() as u64 },
            },
            tip: Batch {
                etag: Some(etag),
                appended: 0,
                events: tip.events[gone..].to_vec(),
                ..tip.clone()
            },
        };
        match self.retry(envelope).run(|| self.store.write(&write)).await {
            Ok(()) => Ok(true),
            // An earlier send of ours may be the cause; another round finds out.
            Err(gave_up) if matches!(gave_up.failure, Failure::Condition(_)) => Ok(false),
            Err(gave_up) => Err(gave_up.during("trimming the Tip").into()),
        }
    }
}
