//! The new events of an aggregate.

use futures::TryStreamExt;
use ringfence::Place;
use ringfence_aggregate_log::{AggregateKey, Range, Table};
use ringfence_dynamo::{Item, Retry, item_bytes};

use crate::error::{IndexError, StreamError};
use crate::news::{LOOKS_MAX, Mark, NEWS_BYTES_MAX, News, next};
use crate::partition::Partition;

/// The version of an aggregate's first event.
const FIRST: u64 = 1;

/// The events after version `after`, without gaps. Reads are strong, yet the events of one group may
/// become visible one by one. So where an event is missing, it looks again; if the event stays missing,
/// that is an error.
pub(crate) async fn news(
    log: &Table,
    partition: &Partition,
    key: &AggregateKey,
    after: Option<u64>,
    retry: Retry,
) -> Result<News, IndexError> {
    let mut attempts = retry.attempts_max(LOOKS_MAX).start();
    loop {
        let wanted = next(after, FIRST);
        let (items, more) = look(log, key, wanted).await.map_err(StreamError::from)?;
        let mut news = News::of(partition, items, more.then_some(Mark::End));
        let gap = (wanted..).zip(&news.fresh).position(|(n, f)| f.position.version() != Some(n));
        match gap {
            None => return Ok(news),
            // The next call looks for the missing event.
            Some(whole @ 1..) => {
                news.fresh.truncate(whole);
                return Ok(News { more: Some(Mark::End), failed: None, ..news });
            }
            Some(0) if attempts.again().await => {}
            Some(0) => {
                let found = news.fresh.first().and_then(|fresh| fresh.position.version());
                let found = found.unwrap_or_default();
                if attempts.made() < LOOKS_MAX {
                    return Err(StreamError::OutOfTime { partition: partition.id.clone() }.into());
                }
                let partition = partition.id.clone();
                return Err(StreamError::Gap { partition, wanted, found }.into());
            }
        }
    }
}

/// Some items from a version on, and whether there may be more.
async fn look(
    log: &Table,
    key: &AggregateKey,
    from: u64,
) -> Result<(Vec<Item>, bool), ringfence_aggregate_log::AggregateError> {
    let range = Range { min_version: Some(from), ..Range::default() };
    let mut found = std::pin::pin!(log.items(key, range));
    let (mut items, mut bytes) = (Vec::new(), 0);
    while let Some(item) = found.try_next().await? {
        bytes += item_bytes(&item);
        items.push(item);
        if bytes >= NEWS_BYTES_MAX {
            return Ok((items, true));
        }
    }
    Ok((items, false))
}
