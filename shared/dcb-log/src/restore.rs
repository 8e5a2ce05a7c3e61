//! Restores events from a copy of the log to their places (rule 8).

use std::collections::BTreeMap;

use ringfence_core::{
    CommandRecord, Effect, Envelope, FilingError, KeyReused, LogError, SequencedEvent,
};

use crate::append::commit;
use crate::log::DcbLog;
use crate::outcome::End;
use crate::record;
use crate::transaction::{Draft, Mint};

impl DcbLog {
    /// Puts an event into the slot that it had, with its version, metadata and time, and files it as every event is.
    /// If one of its fences has a later event by now, the event gets a later time. An id names a slot, so the restore
    /// needs no marker. `record` is given if an item recorded the event's command. The event is added to that item,
    /// unless the item would have expired. The caller must ensure that the events before it in its partition and in
    /// its append are there and have earlier times.
    ///
    /// # Errors
    /// [`LogError::Conflict`] if its slot is taken; [`LogError::KeyReused`] if another command has its key;
    /// [`FilingError::Misplaced`] if the catalog files it in another partition; otherwise the errors of
    /// [`ringfence_core::EventLog::append`].
    pub async fn restore(
        &self,
        event: SequencedEvent,
        record: Option<CommandRecord>,
    ) -> Result<SequencedEvent, LogError> {
        let mut draft = self.copy(event, record)?;
        match commit(self, &mut draft, &Envelope::default()).await? {
            End::Committed => Ok(only(draft)),
            End::Recorded(_) => Err(reused(draft)),
            End::Imported => unreachable!("the request has no marker"),
        }
    }

    /// Fails if [`DcbLog::restore`] would fail because of the event alone. Sends no request.
    ///
    /// # Errors
    /// The errors of [`DcbLog::restore`].
    pub fn restorable(
        &self,
        event: SequencedEvent,
        record: Option<CommandRecord>,
    ) -> Result<(), LogError> {
        let mint = Mint { ms: event.at, append_id: self.clock.uuid(), ends: &BTreeMap::new() };
        self.copy(event, record)?.mint(&mint).map(drop)
    }

    fn copy(
        &self,
        event: SequencedEvent,
        record: Option<CommandRecord>,
    ) -> Result<Draft<'_>, LogError> {
        let (id, partition) = (event.id(), event.partition.clone());
        let SequencedEvent { slot, at, .. } = event;
        let copied = record.filter(|record| record::is_kept(record, at, self.clock.now_ms()));
        let marks = usize::from(copied.is_some());
        let mut effect = Effect::copy(&self.catalog, event, marks)?;
        let Some(target) = effect.targets.get_mut(&partition).filter(|_| slot > 0) else {
            let files = effect.targets.keys().next();
            let place =
                files.map_or_else(String::new, |partition| format!("{partition}/1 or later"));
            return Err(FilingError::Misplaced { event: id, place }.into());
        };
        target.seen = Some(slot - 1);
        Ok(Draft { at: Some(at), copied, ..Draft::new(self, effect) })
    }
}

/// The error if another command has the event's key.
pub(crate) fn reused(draft: Draft<'_>) -> LogError {
    let key = draft.copied.map_or_else(String::new, |record| record.key);
    KeyReused { key, event: None }.into()
}

/// The copied event.
pub(crate) fn only(draft: Draft<'_>) -> SequencedEvent {
    draft.into_events().next().expect("one event is copied")
}
