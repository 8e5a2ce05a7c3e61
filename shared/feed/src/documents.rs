//! The new events of a document's stream.

use futures::TryStreamExt;
use ringfence::{Consistency, Envelope};
use ringfence_document_log::{
    Batch, Direction, DocumentError, DocumentLog, DynamoStore, Recorded, StreamName,
};
use ringfence_dynamo::{Clock, Item, Retry, item_bytes};

use crate::error::{IndexError, StreamError};
use crate::news::{Mark, NEWS_BYTES_MAX, News, next};
use crate::partition::Partition;

/// The index of a stream's first event.
const FIRST: u64 = 0;
/// How often to look at a stream that seems to lack events; each look makes several reads.
const LOOKS_MAX: u32 = 3;

/// The events after index `after`, without gaps. Every event enters through the Tip, so one read of the
/// Tip mostly brings all of them. Those that have moved to calves since are read there.
///
/// A stream whose first events were pruned before it was ever indexed begins with the first that is
/// left. If events after `after` were pruned, they are missing, which is an error.
pub(crate) async fn news(
    log: &DocumentLog<DynamoStore>,
    clock: &Clock,
    partition: &Partition,
    stream: &StreamName,
    after: Option<u64>,
    retry: Retry,
) -> Result<News, IndexError> {
    let left_ms = retry.left().map(|left| u64::try_from(left.as_millis()).unwrap_or(u64::MAX));
    let deadline_ms = left_ms.map(|left| clock.now_ms().saturating_add(left));
    let envelope = Envelope { deadline_ms, ..Envelope::default() };
    let mut attempts = retry.attempts_max(LOOKS_MAX).start();
    loop {
        let torn = match look(log, partition, stream, next(after, FIRST), &envelope).await {
            Err(StreamError::Documents(error)) if is_torn(&error) => error,
            looked => return Ok(looked?),
        };
        if attempts.again().await {
            continue;
        }
        if attempts.made() < LOOKS_MAX {
            return Err(StreamError::OutOfTime { partition: partition.id.clone() }.into());
        }
        return match torn {
            DocumentError::Pruned { first, .. } if after.is_none() => {
                Ok(look(log, partition, stream, first, &envelope).await?)
            }
            error => Err(StreamError::Documents(error).into()),
        };
    }
}

/// Whether the error may mean that not all of a transaction's items are visible yet.
fn is_torn(error: &DocumentError) -> bool {
    use DocumentError::{Hole, NoTip, Pruned};
    matches!(error, Hole { .. } | NoTip { .. } | Pruned { .. })
}

async fn look(
    log: &DocumentLog<DynamoStore>,
    partition: &Partition,
    stream: &StreamName,
    from: u64,
    envelope: &Envelope,
) -> Result<News, StreamError> {
    let tip = log.tip(stream, Consistency::Strong, envelope).await?;
    let tip = tip.ok_or_else(|| DocumentError::NoTip { stream: stream.clone() })?;
    if from >= tip.base() {
        return Ok(News::of(partition, in_tip(stream, tip, from), None));
    }
    let (items, more) = read(log, stream, from..tip.version, envelope).await?;
    Ok(News::of(partition, items, more.then_some(Mark::End)))
}

fn in_tip(stream: &StreamName, tip: Batch, from: u64) -> Vec<Item> {
    let events = (tip.base()..).zip(tip.events).filter(|(index, _)| *index >= from);
    events.map(|(index, event)| Recorded { index, event }.to_item(stream)).collect()
}

/// Some of the events, and whether there are more.
async fn read(
    log: &DocumentLog<DynamoStore>,
    stream: &StreamName,
    range: std::ops::Range<u64>,
    envelope: &Envelope,
) -> Result<(Vec<Item>, bool), StreamError> {
    let end = range.end;
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
