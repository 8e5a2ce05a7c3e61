//! The end of the index: where the next page begins.
//!
//! Only the lease names the end, as a hint. A query backwards finds the last page of an epoch first, and only the last
//! epoch has a last page that is not sealed. An `Index` remembers an epoch that has begun, so usually one query is
//! enough. A new `Index` looks at epoch 1, 2, 4, 8, … until one is missing, and then halves the steps: of a thousand
//! epochs it looks at twenty at most.

use std::sync::atomic::Ordering;

use ringfence_aws::Retry;

use crate::checkpoint::{Checkpoint, EPOCH_ENTRIES_MAX};
use crate::error::{FeedError, failed};
use crate::index::Index;
use crate::item::Page;
use crate::read::{Direction, missing, query};

const FINDING: &str = "finding the end of the index";

impl Index {
    /// The checkpoint after the last entry.
    ///
    /// # Errors
    /// A request that fails for good or too often.
    pub async fn end(&self) -> Result<Checkpoint, FeedError> {
        let last = self.last_pages(Checkpoint::START, 1, true, Retry::default()).await?;
        last.first().map_or(Ok(Checkpoint::START), Page::end)
    }

    /// The pages that begin at `from` or later, the last one first: all that were put before this call, and perhaps
    /// later ones. If there are more than `pages_max`, or the last one is of a later epoch than others, some are left
    /// out.
    pub(crate) async fn last_pages(
        &self,
        from: Checkpoint,
        pages_max: i32,
        strong: bool,
        retry: Retry,
    ) -> Result<Vec<Page>, FeedError> {
        let (mut epoch, mut offset) = from.place();
        let known = self.epoch.load(Ordering::Relaxed);
        if known > epoch {
            (epoch, offset) = (known, 0);
        }
        let mut sealed = Vec::new();
        loop {
            let last = Direction::Back { from: offset, pages_max: Some(pages_max), strong };
            let query = || query(self, epoch, EPOCH_ENTRIES_MAX, last);
            let items = retry.run(query).await.map_err(failed(FINDING))?;
            let pages = items.into_iter().map(|item| Page::of(epoch, item));
            let pages = pages.collect::<Result<Vec<_>, _>>()?;
            let Some(last) = pages.first() else { return Ok(sealed) };
            self.epoch.fetch_max(epoch, Ordering::Relaxed);
            if !last.sealed {
                return Ok(pages);
            }
            sealed = pages;
            (epoch, offset) = (self.last_epoch(epoch, retry).await?.max(epoch + 1), 0);
        }
    }

    /// The pages between two places of an epoch at which pages begin, the last one first, read strongly.
    pub(crate) async fn pages_between(
        &self,
        from: Checkpoint,
        to: Checkpoint,
        retry: Retry,
    ) -> Result<Vec<Page>, FeedError> {
        let ((epoch, first), (_, mut offset)) = (from.place(), to.place());
        let mut pages = Vec::new();
        while offset > first {
            let back = Direction::Back { from: first, pages_max: None, strong: true };
            let query = || query(self, epoch, offset - 1, back);
            let items = retry.run(query).await.map_err(failed(FINDING))?;
            if items.is_empty() {
                return Err(missing(epoch, offset));
            }
            for item in items {
                let page = Page::of(epoch, item)?;
                if page.n() != offset {
                    return Err(missing(epoch, offset));
                }
                offset = page.i;
                pages.push(page);
            }
        }
        Ok(pages)
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
