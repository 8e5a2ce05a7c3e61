//! Queries for people and tools. Decisions never rest on them.

use std::collections::{BTreeMap, HashMap};

use futures::future::ready;
use futures::stream::{BoxStream, StreamExt, TryStreamExt, iter, once};
use ringfence_aws::Retry;
use ringfence_core::{LogError, Page, Reading, SequencedEvent};

use crate::get::get_all;
use crate::item::{key, place_of};
use crate::log::DcbLog;
use crate::read::{decode_named, merged};

impl DcbLog {
    /// The events of one page of a query, eventually consistent. A query that needs a scan reads the whole table
    /// before its first event. It holds as many events as the page's limit allows.
    ///
    /// # Errors
    /// A request fails. An item that can't be decoded gives an error, and the events after it follow.
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
            let (mut kept, mut failed) = (BTreeMap::new(), Vec::new());
            let mut events = self.scan().try_filter(matches);
            while let Some(event) = events.next().await {
                match event {
                    Ok(event) => page.keep(&mut kept, event),
                    Err(error @ LogError::Undecodable { .. }) => failed.push(Err(error)),
                    Err(error) => return Err(error),
                }
            }
            Ok((kept, failed))
        };
        let ordered = |(kept, failed)| iter(failed).chain(iter(page.ordered(kept)).map(Ok));
        once(kept).map_ok(ordered).try_flatten().boxed()
    }
    /// Reads the events' own items, which have the metadata that no index shows, and keeps the order. The read is
    /// eventually consistent. An event whose item it misses stays unchanged.
    ///
    /// # Errors
    /// A request fails. An item that can't be decoded gives an error in its place.
    pub async fn whole(
        &self,
        events: Vec<SequencedEvent>,
    ) -> Result<Vec<Result<SequencedEvent, LogError>>, LogError> {
        let keys = events.iter().map(|event| key(event.partition.as_str(), event.slot)).collect();
        let items = get_all(self, Retry::default(), keys, false).await?.into_iter();
        let mut found: HashMap<_, _> =
            items.filter_map(|item| Some((place_of(&item)?, item))).collect();
        let whole =
            |event: SequencedEvent| match found.remove(&(event.partition.clone(), event.slot)) {
                Some(item) => decode_named(&self.catalog, item),
                None => Ok(event),
            };
        Ok(events.into_iter().map(whole).collect())
    }
}
