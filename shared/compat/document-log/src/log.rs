//! The log, and the settings of its operations.

use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use ringfence_aws::{Clock, Retry};
use ringfence_core::{Consistency, Envelope};

use crate::{
    Batch, DocumentError, Encoding, Head, ItemError, Store, StreamName, Streams, TipLimits,
};

/// Streams. Each stream is one document.
#[derive(Debug)]
pub struct DocumentLog<S> {
    pub(crate) store: S,
    pub(crate) clock: Clock,
    pub(crate) limits: TipLimits,
    pub(crate) encoding: Encoding,
}

impl<S: Store> DocumentLog<S> {
    /// The streams in `store`.
    #[must_use]
    pub fn new(store: S, clock: Clock) -> Self {
        Self { store, clock, limits: TipLimits::default(), encoding: Encoding::default() }
    }

    /// The same log, with Tips that calve at these sizes.
    #[must_use]
    pub fn with_limits(self, limits: TipLimits) -> Self {
        Self { limits, ..self }
    }

    /// The same log, with this encoding for writes. Reads accept every encoding.
    #[must_use]
    pub fn with_encoding(self, encoding: Encoding) -> Self {
        Self { encoding, ..self }
    }

    /// The store of the items.
    #[must_use]
    pub fn store(&self) -> &S {
        &self.store
    }

    /// The Tip of a stream; `None` if nothing was ever written to it.
    ///
    /// # Errors
    /// The request failed.
    pub async fn tip(
        &self,
        stream: &StreamName,
        consistency: Consistency,
        envelope: &Envelope,
    ) -> Result<Option<Batch>, DocumentError> {
        let tip = self.retry(envelope).run(|| self.store.tip(stream, consistency)).await;
        Ok(tip.map_err(|gave_up| gave_up.during("reading the Tip"))?)
    }

    /// Every stream that has an item, each once and in no order. An item that belongs to no stream is an error. Reads
    /// the whole table.
    pub fn streams<'a>(
        &'a self,
        envelope: &'a Envelope,
    ) -> BoxStream<'a, Result<Result<Head, ItemError>, DocumentError>> {
        let start = Some((None, None));
        let pages = stream::try_unfold(start, move |state: Option<(_, Option<Head>)>| async move {
            let Some((after, held)) = state else { return Ok::<_, DocumentError>(None) };
            let page = self.retry(envelope).run(|| self.store.streams(after.clone())).await;
            let Streams { heads, next } =
                page.map_err(|gave_up| gave_up.during("listing streams"))?;
            // The next page may begin with more items of the last stream.
            let (mut last, mut listed) = (held, Vec::new());
            for head in heads {
                match (head, &mut last) {
                    (Err(error), _) => listed.push(Err(error)),
                    (Ok(head), Some(last)) if last.stream == head.stream => {
                        *last = Head { first: last.first.min(head.first), ..head };
                    }
                    (Ok(head), last) => listed.extend(last.replace(head).map(Ok)),
                }
            }
            let state = match next {
                Some(next) => Some((Some(next), last)),
                None => {
                    listed.extend(last.map(Ok));
                    None
                }
            };
            Ok(Some((stream::iter(listed.into_iter().map(Ok)), state)))
        });
        pages.try_flatten().boxed()
    }

    /// The retries of a command.
    pub(crate) fn retry(&self, envelope: &Envelope) -> Retry {
        Retry::of(envelope, &self.clock)
    }
}
