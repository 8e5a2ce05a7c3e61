//! Commands that take effect once: a command's events are its record.
//!
//! A search looks for events of an earlier command with the same key: first in the Tip that was read, then in the
//! calves, backwards. An append requires the version that was searched, so check and effect are one. After a conflict,
//! the search covers only new events.

use ringfence_core::{CommandRecord, Consistency, Envelope, StoreError};
use serde_json::Value;

use crate::read::{TORN_ATTEMPTS_MAX, Walk, torn_retry};
use crate::{Batch, DocumentError, DocumentLog, Store, TimelineEvent};

/// A search for the events of an earlier command with the same key.
pub(crate) struct Search<'a> {
    record: &'a CommandRecord,
    /// The search covered the events before this index, without result.
    searched: u64,
}

impl<'a> Search<'a> {
    pub(crate) fn new(record: &'a CommandRecord) -> Self {
        Self { record, searched: 0 }
    }

    /// The command's events in the stream up to `tip`, if any. Pruned events are not found.
    ///
    /// # Errors
    /// They can't be read, or are another command's.
    pub(crate) async fn find<S: Store>(
        &mut self,
        log: &DocumentLog<S>,
        tip: &Batch,
        envelope: &Envelope,
    ) -> Result<Vec<TimelineEvent>, DocumentError> {
        let mut found = self.within(tip)?;
        // A command's events are one append, so they are in one item.
        if found.is_empty() && tip.base() > self.searched {
            found = self.before(log, tip, envelope).await?;
        }
        self.searched = self.searched.max(tip.version);
        Ok(found)
    }

    /// Searches the calves before `tip`.
    async fn before<S: Store>(
        &self,
        log: &DocumentLog<S>,
        tip: &Batch,
        envelope: &Envelope,
    ) -> Result<Vec<TimelineEvent>, DocumentError> {
        // A replica may not show the newest calves yet. A strong read may not show a calf that is being written.
        let (mut looks, mut consistency) =
            (torn_retry(log.retry(envelope)).start(), Consistency::Eventual);
        loop {
            let looked = self.look(log, tip, consistency, envelope).await;
            match looked {
                Ok(Some(found)) => return Ok(found),
                Err(error) if !error.is_torn() => return Err(error),
                Ok(None) | Err(_) if looks.again().await => consistency = Consistency::Strong,
                Ok(None) | Err(_) if looks.made() < TORN_ATTEMPTS_MAX => {
                    let (operation, attempts) = ("searching for an earlier run", looks.made());
                    let source = "no time was left to look again".into();
                    return Err(StoreError::Unavailable { operation, attempts, source }.into());
                }
                // Calves that no look finds were pruned.
                Ok(None) => return Ok(Vec::new()),
                Err(error) => return Err(error),
            }
        }
    }

    /// Looks through the calves once; `None` if not all of them are there.
    async fn look<S: Store>(
        &self,
        log: &DocumentLog<S>,
        tip: &Batch,
        consistency: Consistency,
        envelope: &Envelope,
    ) -> Result<Option<Vec<TimelineEvent>>, DocumentError> {
        let walk = Walk::back(log, &tip.stream, consistency, envelope).behind(tip.base());
        // Each calf has an event.
        let mut walk = walk.pages_of(tip.base() - self.searched);
        while let Some(calf) = walk.next().await? {
            let found = self.within(&calf)?;
            if !found.is_empty() || calf.base() <= self.searched {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn within(&self, batch: &Batch) -> Result<Vec<TimelineEvent>, DocumentError> {
        let mut found = Vec::new();
        for (index, event) in (batch.base()..).zip(&batch.events) {
            if index < self.searched {
                continue;
            }
            let meta = event.meta.json().map_err(|source| DocumentError::Body {
                stream: batch.stream.clone(),
                index,
                event_type: event.event_type.clone(),
                source,
            })?;
            let meta = meta.unwrap_or(Value::Null);
            if self.record.wrote(|mark| meta.get(mark)?.as_str())? {
                found.push(TimelineEvent { index, event: event.clone() });
            }
        }
        Ok(found)
    }
}
