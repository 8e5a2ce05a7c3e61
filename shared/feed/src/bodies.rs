//! Fetches the bodies of the events that a reader wants from their logs.
//!
//! A first read is eventually consistent, at half the price. An event that it does not show, or shows with another
//! mark, is read again strongly. If its log does not have it then, it is an event that can't be read: no reader passes
//! over it in silence.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use futures::future::ready;
use futures::stream::{BoxStream, Stream, StreamExt, TryStreamExt, iter, once};
use ringfence_aws::BATCH_KEYS_MAX;
use ringfence_log::{EntryError, news::StreamError};

use crate::checkpoint::Checkpoint;
use crate::entry::{Entry, FeedStep, KnownEntry};
use crate::error::{BodyError, FeedError};
use crate::index::Index;
use crate::mark::Mark;
use crate::reference::{BLOCK_BYTES, Body, Reference};

/// Requests for bodies under way, each for [`BATCH_KEYS_MAX`] events. A reader holds the events of one more.
const FETCHES_AT_ONCE: usize = 2;
/// The most blocks that one of them brings: 4 MB.
const FETCH_BLOCKS_MAX: u64 = (4 * 1_024 * 1_024 / BLOCK_BYTES) as u64;

/// Says whether a reader wants an event: only then is its body fetched.
pub type Wants = Arc<dyn Fn(&Reference) -> bool + Send + Sync>;

/// References with the checkpoint after each.
pub type References = Vec<(Checkpoint, Reference)>;

impl Index {
    /// The events of some entries, in their order. If one can't be read, the reason comes with it.
    ///
    /// # Errors
    /// A request that fails for good or too often.
    pub async fn events(&self, references: References) -> Result<Vec<KnownEntry>, FeedError> {
        let steps = self.steps(once(ready(Ok(references))), Arc::new(|_| true));
        let events = steps.map(FeedStep::or_known).try_filter_map(|(_, event)| ready(Ok(event)));
        events.try_collect().await
    }

    /// The steps of a reader over references, in their order.
    pub(crate) fn steps(
        &self,
        references: impl Stream<Item = Result<References, FeedError>> + Send + 'static,
        wants: Wants,
    ) -> BoxStream<'static, Result<FeedStep, FeedError>> {
        let (index, wanted) = (self.clone(), wants.clone());
        let chunks = references.map_ok(move |some| iter(chunks(some, &wanted)).map(Ok));
        let fetch = move |chunk: Result<References, FeedError>| {
            let (index, wants) = (index.clone(), wants.clone());
            async move { index.fetch(chunk?, &wants).await }
        };
        let fetched = chunks.try_flatten().map(fetch).buffered(FETCHES_AT_ONCE);
        fetched.map_ok(iter).try_flatten().boxed()
    }

    /// The steps over some references. An event that can't be read is an error in its place.
    async fn fetch(
        &self,
        references: References,
        wants: &Wants,
    ) -> Result<Vec<Result<FeedStep, FeedError>>, FeedError> {
        let (mut found, mut others) = (HashMap::new(), HashSet::new());
        for strong in [false, true] {
            for log in self.logs.iter() {
                let kind = log.source.facts().kind;
                let marks: HashMap<_, _> = references
                    .iter()
                    .map(|(_, reference)| reference)
                    .filter(|reference| reference.partition.log == kind && wants(reference))
                    .filter_map(|it| Some(((it.partition.id.clone(), it.slot), it.mark()?)))
                    .filter(|(place, _)| !found.contains_key(place))
                    .collect();
                if marks.is_empty() {
                    continue;
                }
                let places = marks.keys().map(|(id, slot)| (id, *slot)).collect();
                let items = log.items(places, strong).await;
                for item in items.map_err(|error| FeedError::Body(Arc::new(error)))? {
                    let Some(place) = log.source.place(&item) else { continue };
                    if marks.get(&place) == Some(&&Mark::of(log.source, &item)) {
                        found.insert(place, item);
                    } else {
                        others.insert(place);
                    }
                }
            }
        }
        let step = |(checkpoint, reference): (Checkpoint, Reference)| {
            if !wants(&reference) {
                return Ok(FeedStep::Passed(checkpoint, reference));
            }
            let known = reference.known();
            let place = (known.partition.clone(), known.slot);
            let log = self.logs.iter().find(|it| it.source.facts().kind == reference.partition.log);
            let item = match reference.body {
                Body::Here(item) => Some(item),
                Body::InLog(..) => found.remove(&place),
            };
            let event = match (log, item) {
                (None, _) => Err(StreamError::NoLog.into()),
                (Some(log), Some(item)) => {
                    log.source.event(item).map_err(|error| EntryError::from(error).into())
                }
                (Some(_), None) if others.contains(&place) => Err(BodyError::Another.into()),
                (Some(_), None) => Err(BodyError::Gone.into()),
            };
            let event = event.map_err(|source| FeedError::Undecodable {
                before: checkpoint.previous().unwrap_or_default(),
                known: Box::new(Entry { checkpoint, event: known }),
                source,
            })?;
            Ok(FeedStep::Event(Entry { checkpoint, event }))
        };
        Ok(references.into_iter().map(step).collect())
    }
}

/// The references in parts for whose bodies one request is enough.
fn chunks(references: References, wants: &Wants) -> Vec<References> {
    let (mut chunks, mut wanted, mut blocks) = (Vec::new(), 0, 0);
    for (checkpoint, reference) in references {
        let of_log = Some(&reference).filter(|it| it.mark().is_some() && wants(it));
        let (is_fetched, size) = of_log.map_or((0, 0), |it| (1, it.blocks()));
        let fits = wanted + is_fetched <= BATCH_KEYS_MAX && blocks + size <= FETCH_BLOCKS_MAX;
        if chunks.is_empty() || !fits {
            chunks.push(Vec::new());
            (wanted, blocks) = (0, 0);
        }
        wanted += is_fetched;
        blocks += size;
        chunks.last_mut().expect("there is one").push((checkpoint, reference));
    }
    chunks
}
