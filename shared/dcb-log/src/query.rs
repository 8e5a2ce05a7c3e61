//! Queries of people and tools; no decision rests on one.

use std::collections::BTreeMap;

use futures::future::ready;
use futures::stream::{BoxStream, StreamExt, TryStreamExt, iter, once};
use ringfence::{LogError, Page, Reading, SequencedEvent};
use ringfence_dynamo::Retry;

use crate::log::DcbLog;
use crate::read::merged;

impl DcbLog {
    /// The page of a query's events, eventually consistent. A query that needs a scan reads the
    /// whole table before its first event, and holds as many events as the page's limit allows.
    ///
    /// # Errors
    /// A request that fails, or an item of one of the query's types that can't be decoded.
    pub fn query<'a>(
        &'a self,
        reading: &'a Reading,
        page: &'a Page,
    ) -> BoxStream<'a, Result<SequencedEvent, LogError>> {
        let matches = |event: &SequencedEvent| ready(reading.plan.matches(event));
        let limit = page.limit.unwrap_or(usize::MAX);
        if !reading.scan {
            let events = merged(self, &reading.plan, page, Retry::default());
            return events.try_filter(matches).take(limit).boxed();
        }
        let kept = async move {
            let kept = BTreeMap::new();
            let keep = async |mut kept, event| {
                page.keep(&mut kept, event);
                Ok(kept)
            };
            self.scan().try_filter(matches).try_fold(kept, keep).await
        };
        once(kept).map_ok(|kept| iter(page.ordered(kept)).map(Ok)).try_flatten().boxed()
    }
}
