//! What is new in the stream of a document.

use futures::TryStreamExt;
use ringfence::{Consistency, Envelope};
use ringfence_document_log::{Batch, Direction, DocumentError, Recorded, StreamName};
use ringfence_dynamo::{Item, Retry, item_bytes};

use crate::Partition;
use crate::error::{IndexError, StreamError};
use crate::logs::{Logs, Mark, NEWS_BYTES_MAX, News, next};

/// The index of a stream's first event.
const FIRST: u64 = 0;

/// The events behind index `after`, without gaps. Every event enters through the Tip, so one read of
/// the Tip is mostly all; what has moved to calves since is read there.
///
/// A stream whose first events were pruned before it was ever indexed begins with the first that is
/// left. Pruned behind `after`, they are missing, which is an error.
pub(crate) async fn news(
    logs: &Logs,
    partition: &Partition,
    stream: &StreamName,
    after: Option<u64>,
    retry: Retry,
) -> Result<News, IndexError> {
    let left_ms = retry.left().map(|left| u64::try_from(left.as_millis()).unwrap_or(u64::MAX));
    let deadline_ms = left_ms.map(|left| logs.clock().now_ms().saturating_add(left));
    let envelope = Envelope { deadline_ms, ..Envelope::default() };
    let log = logs.documents()?;
    let from = next(after, FIRST);
    let tip = log.tip(stream, Consistency::Strong, &envelope).await;
    let Some(tip) = tip.map_err(StreamError::from)? else { return Ok(News::default()) };
    if from >= tip.base() {
        return Ok(News::of(partition, in_tip(stream, tip, from), None));
    }
    let read = match read(logs, stream, from..tip.version, &envelope).await {
        Err(StreamError::Documents(DocumentError::Pruned { first, .. })) if after.is_none() => {
            read(logs, stream, first..tip.version, &envelope).await
        }
        read => read,
    };
    let (items, more) = read?;
    Ok(News::of(partition, items, more.then_some(Mark::End)))
}

fn in_tip(stream: &StreamName, tip: Batch, from: u64) -> Vec<Item> {
    let events = (tip.base()..).zip(tip.events).filter(|(index, _)| *index >= from);
    events.map(|(index, event)| Recorded { index, event }.to_item(stream)).collect()
}

/// Some of the events, and whether there are more.
async fn read(
    logs: &Logs,
    stream: &StreamName,
    range: std::ops::Range<u64>,
    envelope: &Envelope,
) -> Result<(Vec<Item>, bool), StreamError> {
    let (log, end) = (logs.documents()?, range.end);
    let mut found = log.read(stream, range, Direction::Forward, Consistency::Strong, envelope);
    let (mut items, mut bytes) = (Vec::new(), 0);
    while let Some(event) = found.try_next().await? {
        let item = event.to_item(stream);
        bytes += item_bytes(&item);
        items.push(item);
        if bytes >= NEWS_BYTES_MAX {
            return Ok((items, event.index + 1 < end));
        }
    }
    Ok((items, false))
}
