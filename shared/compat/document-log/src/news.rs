//! The new events of a document's stream.

use std::collections::BTreeMap;
use std::error::Error;

use futures::TryStreamExt;
use ringfence_aws::{Item, Retry};
use ringfence_core::{Consistency, Envelope, LogKind};
use ringfence_log::news::{Found, StreamError, bounded, dense};

use crate::attributes::I;
use crate::{
    Batch, Direction, DocumentError, DocumentLog, DynamoStore, ItemError, StreamName, TimelineEvent,
};

/// The number of looks at a stream that seems to lack events. Each look makes several reads.
const LOOKS_MAX: u32 = 3;

/// The events after index `after`, without gaps. Every event enters through the Tip, so one read of the Tip usually has
/// all of them. If events have moved to calves, it reads them there.
///
/// If the first events were pruned before the stream was ever indexed, it begins with the first event that is left, in
/// the stream or in `known`. If events after `after` were pruned, that is an error.
pub(crate) async fn news(
    log: &DocumentLog<DynamoStore>,
    stream: &StreamName,
    after: Option<u64>,
    known: &BTreeMap<u64, Item>,
    retry: Retry,
) -> Result<Found, StreamError> {
    let left_ms = retry.left().map(|left| u64::try_from(left.as_millis()).unwrap_or(u64::MAX));
    let deadline_ms = left_ms.map(|left| log.clock.machine_ms().saturating_add(left));
    let envelope = Envelope { deadline_ms, ..Envelope::default() };
    let wanted = LogKind::Documents.slot_after(after);
    let mut attempts = retry.attempts_max(LOOKS_MAX).start();
    loop {
        let torn = match look(log, stream, wanted, &envelope).await {
            Err(error) if is_torn(&error) => error,
            looked => return looked.map_err(unread("stream")),
        };
        if attempts.again().await {
            continue;
        }
        if attempts.made() < LOOKS_MAX {
            return Err(StreamError::OutOfTime { partition: stream.partition() });
        }
        return match torn {
            DocumentError::Pruned { first, .. } if after.is_none() => {
                begin(log, stream, first, known, &envelope).await.map_err(unread("stream"))
            }
            error => Err(unread("stream")(error)),
        };
    }
}

/// The events of a stream that was never indexed and has lost the events before `first`. Images may show some lost
/// events; then the stream begins with them. If images up to `first` are missing, the result ends there: they may still
/// come, or a later known image shows that they do not.
async fn begin(
    log: &DocumentLog<DynamoStore>,
    stream: &StreamName,
    first: u64,
    known: &BTreeMap<u64, Item>,
    envelope: &Envelope,
) -> Result<Found, DocumentError> {
    let mut lost: BTreeMap<_, _> =
        known.range(..first).map(|(n, item)| (*n, item.clone())).collect();
    let begin = lost.keys().next().copied().unwrap_or(first);
    let mut shown = dense(&mut lost, begin);
    let end = begin + shown.len() as u64;
    if end != first {
        return Ok((shown, known.range(end..).next().is_some()));
    }
    let (left, more) = look(log, stream, first, envelope).await?;
    shown.extend(left);
    Ok((shown, more))
}

/// Whether the error may mean that not all of a transaction's items are visible yet.
fn is_torn(error: &DocumentError) -> bool {
    use DocumentError::{Hole, NoTip, Pruned};
    matches!(error, Hole { .. } | NoTip { .. } | Pruned { .. })
}

async fn look(
    log: &DocumentLog<DynamoStore>,
    stream: &StreamName,
    from: u64,
    envelope: &Envelope,
) -> Result<Found, DocumentError> {
    let tip = log.tip(stream, Consistency::Strong, envelope).await?;
    let tip = tip.ok_or_else(|| DocumentError::NoTip { stream: stream.clone() })?;
    if from >= tip.base() {
        return Ok((in_tip(stream, tip, from).collect(), false));
    }
    let (range, forward) = (from..tip.version, Direction::Forward);
    let found = log.read(stream, range, forward, Consistency::Strong, envelope);
    bounded(found.map_ok(|event| event.to_item(stream)), I).await
}

fn in_tip(stream: &StreamName, tip: Batch, from: u64) -> impl Iterator<Item = (u64, Item)> {
    let events = (tip.base()..).zip(tip.events).filter(move |(index, _)| *index >= from);
    events.map(|(index, event)| (index, TimelineEvent { index, event }.to_item(stream)))
}

pub(crate) fn unread(what: &'static str) -> impl Fn(DocumentError) -> StreamError {
    move |error| {
        let is_transient = matches!(error, DocumentError::Store(_)) && !is_of_item(&error);
        StreamError::Unread { what, is_transient, source: error.into() }
    }
}

/// Whether the cause is an item that can't be decoded, which does not change with time.
fn is_of_item(error: &DocumentError) -> bool {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if error.is::<ItemError>() {
            return true;
        }
        cause = error.source();
    }
    false
}
