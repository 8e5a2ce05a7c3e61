//! Reads the index backwards.

use ringfence_dynamo::Retry;

use crate::checkpoint::{Checkpoint, EPOCH_ENTRIES_MAX};
use crate::error::{FeedError, failed};
use crate::index::{Entry, Index};
use crate::item::Page;
use crate::read::{Direction, entries, query};

impl Index {
    /// The last entries before a checkpoint that is not after the end, the latest first. There are `entries_max` of them, or fewer if the
    /// index begins before that. The reads are strong. Each brings whole pages of the index, so the first and the
    /// last can cost more than the entries that are asked for.
    ///
    /// # Errors
    /// A request that fails for good or too often, or an entry that can't be read.
    pub async fn before(
        &self,
        checkpoint: Checkpoint,
        entries_max: usize,
    ) -> Result<Vec<Entry>, FeedError> {
        let mut found = Vec::with_capacity(entries_max);
        let (mut epoch, mut offset) = checkpoint.place();
        while found.len() < entries_max {
            if offset == 0 {
                let Some(earlier) = epoch.checked_sub(1) else { break };
                (epoch, offset) = (earlier, EPOCH_ENTRIES_MAX);
            }
            let left = entries_max - found.len();
            let pages_max = i32::try_from(left).unwrap_or(i32::MAX);
            let query = || query(self, epoch, offset - 1, Direction::Back { from: 0, pages_max });
            let items = Retry::default().run(query).await.map_err(failed("reading the index"))?;
            if items.is_empty() {
                offset = 0;
            }
            for item in items {
                let mut page = Page::of(epoch, item)?;
                let before = usize::try_from(offset.saturating_sub(page.i)).unwrap_or(usize::MAX);
                page.entries.truncate(before);
                offset = page.i;
                let mut entries = entries(page).collect::<Result<Vec<_>, _>>()?;
                entries.reverse();
                found.append(&mut entries);
            }
        }
        found.truncate(entries_max);
        Ok(found)
    }
}
