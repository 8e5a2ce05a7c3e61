//! The log itself: what its operations share.

use std::time::Duration;

use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use ringfence::{Consistency, Envelope};
use ringfence_dynamo::{Clock, Retry};

use crate::{Batch, DocumentError, Encoding, Store, StreamName, Streams, TipLimits};

/// Streams, each one document.
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

    /// The same with Tips that calve at these sizes.
    #[must_use]
    pub fn with_limits(self, limits: TipLimits) -> Self {
        Self { limits, ..self }
    }

    /// The same with bodies written in this encoding; every encoding is read.
    #[must_use]
    pub fn with_encoding(self, encoding: Encoding) -> Self {
        Self { encoding, ..self }
    }

    /// Where the items are.
    #[must_use]
    pub fn store(&self) -> &S {
        &self.store
    }

    /// The Tip of a stream; none if nothing was ever written to it.
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
        tip.map_err(|gave_up| DocumentError::of("reading the Tip", gave_up))
    }

    /// Every stream that has an item, in no order, each once. Reads the whole table.
    pub fn streams<'a>(
        &'a self,
        envelope: &'a Envelope,
    ) -> BoxStream<'a, Result<StreamName, DocumentError>> {
        let pages = stream::try_unfold((true, None), move |(more, after)| async move {
            if !more {
                return Ok::<_, DocumentError>(None);
            }
            let page = self.retry(envelope).run(|| self.store.streams(after.clone())).await;
            let Streams { names, next } =
                page.map_err(|gave_up| DocumentError::of("listing streams", gave_up))?;
            // The items of a stream follow on each other, also from one page to the next.
            let mut before = after.map(|(stream, _)| stream);
            let mut names = names;
            names.retain(|name| before.replace(name.clone()).as_ref() != Some(name));
            let names = stream::iter(names.into_iter().map(Ok));
            Ok(Some((names, (next.is_some(), next))))
        });
        pages.try_flatten().boxed()
    }

    /// How long and how often to try on behalf of a command.
    pub(crate) fn retry(&self, envelope: &Envelope) -> Retry {
        match envelope.deadline_ms {
            None => Retry::default(),
            Some(deadline) => {
                let left_ms = deadline.saturating_sub(self.clock.now_ms());
                Retry::default().within(Duration::from_millis(left_ms))
            }
        }
    }
}
