//! The events of several aggregates in one order.

use futures::future::join_all;
use futures::stream::{BoxStream, Stream, StreamExt, try_unfold};
use ringfence_core::{LogError, SequencedEvent};

/// The events of all sources, merged in fold order. Each source keeps its own order.
pub(crate) fn merged<'a>(
    sources: Vec<BoxStream<'a, Result<SequencedEvent, LogError>>>,
) -> impl Stream<Item = Result<SequencedEvent, LogError>> + 'a {
    let sources: Vec<_> = sources.into_iter().map(StreamExt::peekable).map(Box::pin).collect();
    try_unfold(sources, |mut sources| async move {
        // All sources read at the same time.
        join_all(sources.iter_mut().map(|source| source.as_mut().peek())).await;
        let mut first = None;
        for (n, source) in sources.iter_mut().enumerate() {
            let place = match source.as_mut().peek().await {
                None => continue,
                // An error comes first.
                Some(Err(_)) => None,
                Some(Ok(event)) => Some(event.place()),
            };
            if first.as_ref().is_none_or(|(of_first, _)| place < *of_first) {
                first = Some((place, n));
            }
        }
        let Some((_, n)) = first else { return Ok(None) };
        let event = sources[n].next().await.transpose()?;
        Ok(event.map(|event| (event, sources)))
    })
}
