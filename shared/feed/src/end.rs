//! The end of the index: where the next page begins.
//!
//! No item says it. The last page of an epoch is the one that a query backwards finds first, and the last
//! epoch is the one whose last page is not sealed. An index remembers an epoch that has begun, so one
//! query is mostly all. Who begins without that looks at epoch 1, 2, 4, 8, … for as long as there is one,
//! and then halves the steps: of a thousand epochs at most twenty are looked at.

use std::sync::atomic::Ordering;

use ringfence_dynamo::Retry;

use crate::checkpoint::{Checkpoint, EPOCH_ENTRIES_MAX};
use crate::error::{FeedError, failed};
use crate::index::Index;
use crate::item::Page;
use crate::read::{Direction, last_page_of, query};

const FINDING: &str = "finding the end of the index";

impl Index {
    /// The checkpoint after the last entry.
    ///
    /// # Errors
    /// A request that fails for good or too often.
    pub async fn end(&self) -> Result<Checkpoint, FeedError> {
        let last = self.last_page(Retry::default()).await?;
        last.map_or(Ok(Checkpoint::START), |page| page.end())
    }

    /// The last page that was put before this call, or one that was put since; `None` if there is none.
    pub(crate) async fn last_page(&self, retry: Retry) -> Result<Option<Page>, FeedError> {
        let mut epoch = self.epoch.load(Ordering::Relaxed);
        let mut sealed = None;
        while let Some(page) = last_page_of(self, epoch, EPOCH_ENTRIES_MAX, FINDING, retry).await? {
            self.epoch.fetch_max(epoch, Ordering::Relaxed);
            if !page.sealed {
                return Ok(Some(page));
            }
            sealed = Some(page);
            epoch = self.last_epoch(epoch, retry).await?.max(epoch + 1);
        }
        Ok(sealed)
    }

    /// The last epoch that has begun, if `epoch` has; as a replica has it, so there may be a later one.
    async fn last_epoch(&self, mut epoch: u64, retry: Retry) -> Result<u64, FeedError> {
        let (mut step, mut grows) = (1, true);
        while step > 0 {
            let first = || query(self, epoch + step, 0, Direction::First);
            let begun = !retry.run(first).await.map_err(failed(FINDING))?.is_empty();
            epoch += if begun { step } else { 0 };
            grows &= begun;
            step = if grows { step * 2 } else { step / 2 };
        }
        Ok(epoch)
    }
}
