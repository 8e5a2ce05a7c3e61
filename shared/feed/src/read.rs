//! Reads the index forward, and fetches pages ahead.
//!
//! Pages never change, and a page is taken only if it begins where the one before it ends. So a replica's answer is as
//! good as any other. If it lacks a page, there is a hole or an end. Only then a strong read follows, at twice the
//! price. Where the reader's first page begins is looked for only if no page begins at its checkpoint.

use std::time::Duration;

use aws_sdk_dynamodb::operation::query::builders::QueryInputBuilder;
use futures::future::ready;
use futures::stream::{BoxStream, StreamExt, unfold};
use ringfence_aws::{Failure, Item, Retry};
use tokio::sync::mpsc::{Sender, channel};

use crate::bodies::References;
use crate::checkpoint::{Checkpoint, EPOCH_ENTRIES_MAX};
use crate::entry::{Entry, FeedStep};
use crate::error::{FeedError, failed};
use crate::index::{Index, Until};
use crate::item::{I, P, Page, checkpoint, epoch_id, number, text};
use crate::reference::Reference;

/// How many answers wait for the reader, besides the one that it has and the one that is being fetched.
const AHEAD_MAX: usize = 1;
/// The first pause of a reader that has everything; doubled as long as nothing comes.
const PAUSE_FIRST: Duration = Duration::from_millis(50);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_millis(1_600);
/// The longest pause where a person watches.
const PAUSE_WATCHED_MAX: Duration = Duration::from_millis(200);
/// How many strong answers, over some seconds, may have a hole.
const HOLES_MAX: u32 = 8;

type Pages = Result<Vec<Page>, FeedError>;

impl Index {
    /// The events after a checkpoint, in order: as [`Index::read_where`] for a reader that wants all.
    #[must_use]
    pub fn read(
        &self,
        from: Checkpoint,
        until: Until,
    ) -> BoxStream<'static, Result<Entry, FeedError>> {
        let steps = self.read_where(from, until, |_| true);
        steps.filter_map(|step| ready(step.map(FeedStep::event).transpose())).boxed()
    }

    /// The entries after a checkpoint, in order. The bodies of the events that are wanted come from their logs, a half
    /// read unit for each up to 4 KB; the others are passed. A task reads one answer (1 MB) ahead while the last one is
    /// consumed, and ends with the stream. It needs a tokio runtime. The stream ends after its first error, unless that
    /// is an event that can't be read.
    #[must_use]
    pub fn read_where(
        &self,
        from: Checkpoint,
        until: Until,
        wants: impl Fn(&Reference) -> bool + Send + Sync + 'static,
    ) -> BoxStream<'static, Result<FeedStep, FeedError>> {
        let index = self.clone();
        let (sender, receiver) = channel::<Pages>(AHEAD_MAX);
        tokio::spawn(async move {
            let closed = sender.clone();
            tokio::select! {
                biased; // a reader that has gone asks for nothing more
                () = closed.closed() => {}
                () = send(&index, from, until, &sender) => {}
            }
        });
        let references = unfold(receiver, |mut receiver| async {
            let pages = receiver.recv().await?;
            let references = pages
                .and_then(|pages| pages.into_iter().map(references).collect::<Result<Vec<_>, _>>());
            Some((references.map(|pages| pages.concat()), receiver))
        });
        self.steps(references, std::sync::Arc::new(wants))
            .scan(false, |ended, step| {
                let ends = step.as_ref().is_err_and(|error| !error.is_of_event());
                let ended = std::mem::replace(ended, ends);
                ready((!ended).then_some(step))
            })
            .boxed()
    }

    /// How many entries lie between two checkpoints; 0 unless `until` lies after `from`. Checkpoints that differ by 3
    /// in one epoch have 3 entries between them. For each epoch that ends between them, its last page is read, because
    /// an epoch may end with fewer entries than a checkpoint counts for it.
    ///
    /// # Errors
    /// A request that fails for good or too often.
    pub async fn count(&self, from: Checkpoint, until: Checkpoint) -> Result<u64, FeedError> {
        if until <= from {
            return Ok(0);
        }
        let ((first, before), (last, after)) = (from.place(), until.place());
        let mut entries = after;
        for epoch in first..last {
            entries += epoch_entries(self, epoch).await?;
        }
        Ok(entries.saturating_sub(before))
    }
}

/// The references of a page, each with the checkpoint after it.
pub(crate) fn references(page: Page) -> Result<References, FeedError> {
    let Page { epoch, i, entries, .. } = page;
    (i + 1..).zip(entries).map(|(n, entry)| Ok((checkpoint(epoch, n)?, entry))).collect()
}

/// Sends answers until the end, until an error, or until the reader has gone.
async fn send(index: &Index, from: Checkpoint, until: Until, sender: &Sender<Pages>) {
    let mut place = Place::of(from);
    // A page begins there, or the place was looked for.
    let mut is_found = place.i == 0;
    let (mut strong, mut pause, mut holes) = (false, PAUSE_FIRST, 0);
    let pause_max = if until == Until::Watched { PAUSE_WATCHED_MAX } else { PAUSE_MAX };
    loop {
        match place.next(index, strong).await {
            Err(error) => return drop(sender.send(Err(error)).await),
            Ok(Answer::Pages(pages)) => {
                if sender.send(Ok(pages)).await.is_err() {
                    return;
                }
                (is_found, strong, pause, holes) = (true, false, PAUSE_FIRST, 0);
                if matches!(until, Until::Past(page) if (place.epoch, place.i) > page.place()) {
                    return;
                }
            }
            Ok(Answer::End | Answer::Hole) if !is_found => match Place::find(index, from).await {
                Ok(found) => (is_found, strong, place) = (true, found == place, found),
                Err(error) => return drop(sender.send(Err(error)).await),
            },
            Ok(Answer::End | Answer::Hole) if !strong => strong = true,
            Ok(Answer::End) if matches!(until, Until::Present | Until::Past(_)) => return,
            Ok(Answer::Hole) if holes == HOLES_MAX => {
                return drop(sender.send(Err(missing(place.epoch, place.i))).await);
            }
            Ok(answer) => {
                holes += u32::from(matches!(answer, Answer::Hole));
                tokio::time::sleep(pause).await;
                (strong, pause) = (false, pause_max.min(pause * 2));
            }
        }
    }
}

/// The answer to a read from a place on.
enum Answer {
    /// At least one page.
    Pages(Vec<Page>),
    /// Nothing.
    End,
    /// Only later pages: the pages between are not visible yet, or gone.
    Hole,
}

/// The entries of an epoch that has ended, from its last page.
async fn epoch_entries(index: &Index, epoch: u64) -> Result<u64, FeedError> {
    let (end, retry) = (EPOCH_ENTRIES_MAX, Retry::default());
    let last = last_page_of(index, epoch, end, "reading the end of an epoch", retry).await?;
    Ok(last.map_or(0, |page| page.n()))
}

/// The last page of an epoch that begins at or before the offset.
pub(crate) async fn last_page_of(
    index: &Index,
    epoch: u64,
    offset: u64,
    operation: &'static str,
    retry: Retry,
) -> Result<Option<Page>, FeedError> {
    let query = || query(index, epoch, offset, Direction::last(0, 1));
    let items = retry.run(query).await.map_err(failed(operation))?;
    items.into_iter().next().map(|item| Page::of(epoch, item)).transpose()
}

/// Where the next page begins, and how many of its entries were read before.
#[derive(PartialEq)]
struct Place {
    epoch: u64,
    i: u64,
    skip: u64,
}

impl Place {
    /// The place of a checkpoint at which a page begins. Most do, because a page is written at the end.
    fn of(from: Checkpoint) -> Self {
        let (epoch, i) = from.place();
        Self { epoch, i, skip: 0 }
    }

    /// The place of any checkpoint. It may lie within a page, or at the end of an epoch with fewer entries
    /// than [`EPOCH_ENTRIES_MAX`].
    async fn find(index: &Index, from: Checkpoint) -> Result<Self, FeedError> {
        let (epoch, offset) = from.place();
        let (what, retry) = ("finding a checkpoint", Retry::default());
        Ok(match last_page_of(index, epoch, offset, what, retry).await? {
            Some(page) if page.n() > offset => Self { epoch, i: page.i, skip: offset - page.i },
            Some(page) if page.sealed => Self { epoch: epoch + 1, i: 0, skip: 0 },
            _ => Self::of(from),
        })
    }

    /// The pages of one answer from here on, up to the first that does not begin where the one before it ends.
    async fn next(&mut self, index: &Index, strong: bool) -> Result<Answer, FeedError> {
        let query = || query(index, self.epoch, self.i, Direction::Forward { strong });
        let items = Retry::default().run(query).await.map_err(failed("reading the index"))?;
        let found = items.len();
        let mut pages = Vec::with_capacity(found);
        for item in items {
            let mut page = Page::of(self.epoch, item)?;
            if page.i != self.i {
                break;
            }
            self.i = page.n();
            let skip = usize::try_from(std::mem::take(&mut self.skip)).unwrap_or(usize::MAX);
            page.i += page.entries.drain(..skip.min(page.entries.len())).len() as u64;
            if page.sealed {
                *self = Self { epoch: self.epoch + 1, i: 0, skip: 0 };
                pages.push(page);
                break;
            }
            pages.push(page);
        }
        Ok(match (pages.is_empty(), found) {
            (false, _) => Answer::Pages(pages),
            (true, 0) => Answer::End,
            (true, _) => Answer::Hole,
        })
    }
}

/// The error of an index without the page that begins or ends at an offset.
pub(crate) fn missing(epoch: u64, offset: u64) -> FeedError {
    let item = format!("{} {offset}", epoch_id(epoch));
    FeedError::Malformed { item, problem: "it is missing, but later pages are there" }
}

#[derive(Clone, Copy)]
pub(crate) enum Direction {
    /// From the offset on.
    Forward { strong: bool },
    /// The first page that begins at or after the offset, as a replica has it.
    First,
    /// The pages that begin at or before the offset and not before `from`, the last one first.
    Back { from: u64, pages_max: Option<i32>, strong: bool },
}

impl Direction {
    /// The last pages, strongly.
    pub(crate) fn last(from: u64, pages_max: i32) -> Self {
        Self::Back { from, pages_max: Some(pages_max), strong: true }
    }
}

pub(crate) async fn query(
    index: &Index,
    epoch: u64,
    offset: u64,
    direction: Direction,
) -> Result<Vec<Item>, Failure> {
    let (from, strong, pages_max) = match direction {
        Direction::Forward { strong } => (None, strong, None),
        Direction::First => (None, false, Some(1)),
        Direction::Back { from, pages_max, strong } => (Some(number(from)), strong, pages_max),
    };
    let of_pages = |query: QueryInputBuilder| {
        query
            .key_condition_expression(match from {
                Some(_) => "#p = :p AND #i BETWEEN :from AND :i",
                None => "#p = :p AND #i >= :i",
            })
            .expression_attribute_names("#p", P)
            .expression_attribute_names("#i", I)
            .expression_attribute_values(":p", text(epoch_id(epoch)))
            .expression_attribute_values(":i", number(offset))
            .set_scan_index_forward(from.is_some().then_some(false))
            .set_limit(pages_max)
            .consistent_read(strong)
    };
    let of_pages = |query| match &from {
        Some(from) => of_pages(query).expression_attribute_values(":from", from.clone()),
        None => of_pages(query),
    };
    Ok(index.table.query(of_pages).await?.items.unwrap_or_default())
}
