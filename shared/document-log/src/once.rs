//! Once: a command's events are the record that it was carried out.
//!
//! The events that a decision rests on are searched for those of an earlier command with the same key:
//! first in the Tip that was read, then, backwards, in the calves. Since an append requires the version
//! that was searched, check and effect are one. After a conflict only what is new is searched.

use ringfence::{CommandRecord, Consistency, Envelope};
use serde_json::Value;

use crate::read::Walk;
use crate::{Batch, DocumentError, DocumentLog, Recorded, Store};

/// A search for the events of an earlier command with the same key.
pub(crate) struct Search<'a> {
    record: &'a CommandRecord,
    /// The events before this index were searched, without result.
    searched: u64,
}

impl<'a> Search<'a> {
    pub(crate) fn new(record: &'a CommandRecord) -> Self {
        Self { record, searched: 0 }
    }

    /// The command's events in the stream up to `tip`, none if it has none there. What was pruned is
    /// not found.
    ///
    /// # Errors
    /// They can't be read, or are another command's.
    pub(crate) async fn find<S: Store>(
        &mut self,
        log: &DocumentLog<S>,
        tip: &Batch,
        envelope: &Envelope,
    ) -> Result<Vec<Recorded>, DocumentError> {
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
    ) -> Result<Vec<Recorded>, DocumentError> {
        // A replica may not have the newest calves yet. What a strong read does not find is pruned.
        'reads: for consistency in [Consistency::Eventual, Consistency::Strong] {
            let walk = Walk::back(log, &tip.stream, consistency, envelope).behind(tip.base());
            // Each calf has an event.
            let mut walk = walk.pages_of(tip.base() - self.searched);
            loop {
                let calf = match walk.next().await {
                    Ok(Some(calf)) => calf,
                    Ok(None) => continue 'reads,
                    Err(error) if error.is_torn() && consistency == Consistency::Eventual => {
                        continue 'reads;
                    }
                    Err(error) => return Err(error),
                };
                let found = self.within(&calf)?;
                if !found.is_empty() || calf.base() <= self.searched {
                    return Ok(found);
                }
            }
        }
        Ok(Vec::new())
    }

    fn within(&self, batch: &Batch) -> Result<Vec<Recorded>, DocumentError> {
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
            if self.record.wrote(&meta.unwrap_or(Value::Null))? {
                found.push(Recorded { index, event: event.clone() });
            }
        }
        Ok(found)
    }
}
