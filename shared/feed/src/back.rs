//! Reads the index backwards.

use std::sync::Arc;

use futures::future::ready;
use futures::stream::{BoxStream, StreamExt, once, try_unfold};
use ringfence_aws::Retry;

use crate::bodies::References;
use crate::checkpoint::{Checkpoint, EPOCH_ENTRIES_MAX};
use crate::entry::{Entry, FeedStep};
use crate::error::{FeedError, failed};
use crate::index::Index;
use crate::item::Page;
use crate::read::{Direction, query, references};
use crate::reference::Reference;

/// The pages of the first answer. Later answers have more.
const PAGES_FIRST: usize = 4;

impl Index {
    /// The last `entries_max` entries before a checkpoint, the latest first; fewer if the index has fewer. The
    /// checkpoint may not be after the end. The reads of the index are strong. They bring whole pages, so they can cost
    /// more than the entries.
    ///
    /// # Errors
    /// A request that fails for good or too often. An event that can't be read is an error in its place.
    pub async fn before(
        &self,
        checkpoint: Checkpoint,
        entries_max: usize,
    ) -> Result<Vec<Result<Entry, FeedError>>, FeedError> {
        let found = self.references(checkpoint, entries_max, true).await?;
        let mut steps = self.steps(once(ready(Ok(found))), Arc::new(|_: &Reference| true));
        let mut entries = Vec::new();
        while let Some(step) = steps.next().await {
            match step.map(FeedStep::event) {
                Err(error) if !error.is_of_event() => return Err(error),
                step => entries.extend(step.transpose()),
            }
        }
        Ok(entries)
    }

    /// The last `entries_max` entries before a checkpoint, without their bodies, the latest first. The checkpoint may
    /// not be after the end. The number of pages in a request follows from the entries that the pages before had.
    ///
    /// # Errors
    /// A request that fails for good or too often.
    pub async fn references(
        &self,
        before: Checkpoint,
        entries_max: usize,
        strong: bool,
    ) -> Result<References, FeedError> {
        let (mut found, mut pages, mut place) = (References::new(), 0, Place::of(before));
        while found.len() < entries_max {
            let left = entries_max - found.len();
            let wanted = (left * pages).checked_div(found.len()).unwrap_or(left.min(PAGES_FIRST));
            let wanted = wanted.clamp(1, left);
            let pages_max = i32::try_from(wanted).unwrap_or(i32::MAX);
            let Some(mut entries) = place.next(self, Some(pages_max), strong).await? else { break };
            pages += wanted;
            found.append(&mut entries);
        }
        found.truncate(entries_max);
        Ok(found)
    }

    /// The last entry before a checkpoint, without its body, by a strong read; `None` at the start.
    ///
    /// # Errors
    /// A request that fails for good or too often.
    pub async fn last_before(
        &self,
        checkpoint: Checkpoint,
    ) -> Result<Option<Reference>, FeedError> {
        let found = Place::of(checkpoint).next(self, Some(1), true).await?;
        Ok(found.and_then(|found| found.into_iter().next()).map(|(_, reference)| reference))
    }

    /// The events before a checkpoint, the latest first: as [`Index::read_back_where`] for a reader that wants all.
    #[must_use]
    pub fn read_back(&self, from: Checkpoint) -> BoxStream<'static, Result<Entry, FeedError>> {
        let steps = self.read_back_where(from, |_| true);
        steps.filter_map(|step| ready(step.map(FeedStep::event).transpose())).boxed()
    }

    /// The entries before a checkpoint, the latest first. The checkpoint may not be after the end. Reads are eventually
    /// consistent, at half the price, and strong where a page or an event is missing. The stream ends after its first
    /// error, unless that is an event that can't be read.
    #[must_use]
    pub fn read_back_where(
        &self,
        from: Checkpoint,
        wants: impl Fn(&Reference) -> bool + Send + Sync + 'static,
    ) -> BoxStream<'static, Result<FeedStep, FeedError>> {
        let index = self.clone();
        let first = (Place::of(from), PAGES_FIRST);
        let answers = try_unfold(first, move |(mut place, pages)| {
            let index = index.clone();
            async move {
                // Most readers want only the latest entries.
                let pages_max = i32::try_from(pages).ok();
                let found = place.next(&index, pages_max, false).await?;
                Ok(found.map(|found| (found, (place, pages.saturating_mul(4)))))
            }
        });
        self.steps(answers, Arc::new(wants))
    }
}

/// The end of the entries that are still to be read.
struct Place {
    epoch: u64,
    offset: u64,
}

impl Place {
    fn of(checkpoint: Checkpoint) -> Self {
        let (epoch, offset) = checkpoint.place();
        Self { epoch, offset }
    }

    /// The entries of one answer, the latest first; `None` where the index begins.
    async fn next(
        &mut self,
        index: &Index,
        pages_max: Option<i32>,
        mut strong: bool,
    ) -> Result<Option<References>, FeedError> {
        loop {
            if self.offset == 0 {
                let Some(earlier) = self.epoch.checked_sub(1) else { return Ok(None) };
                (self.epoch, self.offset) = (earlier, EPOCH_ENTRIES_MAX);
            }
            let back = Direction::Back { from: 0, pages_max, strong };
            let query = || query(index, self.epoch, self.offset - 1, back);
            let items = Retry::default().run(query).await.map_err(failed("reading the index"))?;
            let mut found = Vec::new();
            for item in items {
                let mut page = Page::of(self.epoch, item)?;
                // An epoch may end with fewer entries than a checkpoint counts for it.
                let is_next =
                    page.n() >= self.offset || self.offset == EPOCH_ENTRIES_MAX && page.sealed;
                if !strong && !is_next {
                    break;
                }
                let before =
                    usize::try_from(self.offset.saturating_sub(page.i)).unwrap_or(usize::MAX);
                page.entries.truncate(before);
                self.offset = page.i;
                found.extend(references(page)?.into_iter().rev());
            }
            match (found.is_empty(), strong) {
                (false, _) => return Ok(Some(found)),
                (true, false) => strong = true,
                (true, true) => self.offset = 0,
            }
        }
    }
}
